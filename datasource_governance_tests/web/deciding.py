"""People who decide on the pages of a governed webserver, over a real world."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from dagster._core.workspace.context import WorkspaceProcessContext

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Decision
from datasource_governance.domain.stage import Stage
from datasource_governance.web.decisions import decision_pages
from datasource_governance.web.gateway import Gateway
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.web.serving import (
    Answer,
    Serving,
    serving,
    unique_actor,
    with_accounts,
)
from datasource_governance_tests.world import World

REASON = "zq-canary-reason: agreed with the carrier"
CELL = "zq-canary-cell"
APPROVERS = ("approver-1", "approver-2", "approver-3")
PEOPLE = (*APPROVERS, "creator", "operator", "viewer")
"""Accounts, named after their roles over all datasources; `creator` is steward and approver."""
TABLE = pa.table({"id": [1, 1, 2], "note": [CELL, CELL, None]})
QUALITY = policy_document(
    rule("not_null", id="note-present", field="note", severity="warning"),
    rule("unique", id="id-once", field="id", severity="warning"),
    rule("row_count", id="some-rows"),
)
"""Over `TABLE` the first fails in row 3, the second in rows 1 and 2, both with a warning."""


@dataclass(frozen=True)
class Deciding:
    """One datasource of a world, whose waiting stages people decide about in a browser."""

    world: World
    serving: Serving

    def corner(self) -> "Deciding":
        """Return the same world with a datasource of its own, which is not declared yet."""
        return replace(self, world=replace(self.world, datasource=unique_name("orders")))

    def newcomer(self, role: Role) -> str:
        """Return a new person with an account and one role, over this datasource alone."""
        name = unique_actor()
        self.world.admit(name)
        self.world.grant(name, role, self.world.datasource)
        with_accounts(self.serving.settings, name)
        return name

    def elsewhere(self) -> "Deciding":
        """Return the same world with another datasource, which is declared."""
        other = self.corner()
        other.world.declare()
        return other

    def look(self, name: str, stage: Stage, query: str = "") -> Answer:
        return self.serving.client(name).get(f"/governance/stages/{stage.id}{query}")

    def post(
        self, name: str, stage: Stage, verdict: str = "approve", reason: str = REASON, **changed
    ) -> Answer:
        """Post the form that a person was shown, with what the test changes of it.

        Whoever is shown no form posts the one that another approver would be shown.
        """
        client = self.serving.client(name)
        shown = client.get(f"/governance/stages/{stage.id}").text
        fields = hidden_fields(shown) or self.subject(stage) | {"token": client.form_token()}
        fields |= {"verdict": verdict, "reason": reason, **changed}
        return client.post_form(f"/governance/stages/{stage.id}/decision", fields, Accept=HTML)

    def subject(self, stage: Stage) -> dict[str, str]:
        tenant = self.world.application.settings.tenant
        return {
            "datasource": stage.datasource,
            "stage_fingerprint": stage.fingerprint(tenant),
            "quality_policy_hash": stage.quality_policy_hash,
            "approval_policy_hash": stage.approval_policy_hash or "",
            "base": stage.base or "",
        }

    def decisions(self, stage: Stage) -> list[Decision]:
        with self.world.application.work() as work:
            return [*work.decisions.about(stage.id)]


HTML = "text/html"


def hidden_fields(page: str) -> dict[str, str]:
    """Return the hidden fields of the form that decides; none where there is no such form."""
    form = re.search(r'<form method="post" action="/governance/.*?</form>', page, re.DOTALL)
    hidden = re.findall(
        r'<input type="hidden" name="(\w+)" value="([^"]*)">', form[0] if form else ""
    )
    return {name: html.unescape(value) for name, value in hidden}


def alert(answer: Answer) -> str:
    """Return the one sentence with which a page refuses."""
    (said,) = re.findall(r'<p role="alert"[^>]*>(.*?)</p>', answer.text)
    return html.unescape(said)


def status(answer: Answer) -> str:
    """Return the one sentence that tells what was recorded."""
    (said,) = re.findall(r'<p role="status">(.*?)</p>', answer.text)
    return html.unescape(said)


@contextmanager
def deciding(
    world: World, context: WorkspaceProcessContext, directory: Path, *, registered: bool = True
) -> Iterator[Deciding]:
    """Serve the decision pages over a world, to people with accounts."""
    world.admit("viewer", Role.VIEWER)
    world.admit("creator", Role.APPROVER)
    settings = with_accounts(WebSettings(directory=directory), *PEOPLE)
    application = world.application
    gateway = (
        world.gateway(directory) if registered else Gateway(directory, application.settings.tenant)
    )
    pages = decision_pages(application, gateway)
    with serving(context, settings, application, gateway=gateway, pages=pages) as running:
        yield Deciding(world, running)
