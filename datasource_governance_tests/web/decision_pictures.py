"""Take the pictures of the decision page for the documentation.

    python -m datasource_governance_tests.web.decision_pictures docs/images

Needs nothing but this package with its extras and a Chromium: a server of its own holds a small
world in which one stage is current and the next one waits.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
from playwright.sync_api import Browser, Page, expect

from datasource_governance.domain.actor import Role
from datasource_governance.domain.stage import Stage
from datasource_governance.persistence.embedded import EmbeddedPostgres
from datasource_governance.persistence.provisioning import (
    application_role,
    owner_role,
    provision,
    reader_role,
    retention_role,
)
from datasource_governance.persistence.upgrade import upgrade
from datasource_governance_tests.browser.pages import browser
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.postgres import (
    FOR_TESTS,
    GovernanceDatabase,
    reachable_directory,
)
from datasource_governance_tests.web.deciding import Deciding, deciding
from datasource_governance_tests.web.serving import PASSWORD, with_accounts, workspace
from datasource_governance_tests.world import new_world

DESKTOP = {"width": 1100, "height": 900}
PHONE = {"width": 360, "height": 740}
REASON = "Two new destinations are missing, which the carrier confirmed."
PLACES = ("Klagenfurt am Woerthersee", "Mariazell in der Steiermark")
POLICY = policy_document(
    rule("row_count", id="enough-rows", minimum=3),
    rule("unique", id="parcel-once", field="parcel"),
    rule("range", id="weight", field="weight_kg", minimum=0),
    rule("not_null", id="destination-known", field="destination", severity="warning"),
    version="parcels-v3",
)
APPROVAL = {
    "version": "parcels-promotion-v1",
    "required": True,
    "required_approvals": 2,
    "expires_after_hours": 72,
}
FIRST = pa.table({"parcel": [1, 2, 3], "weight_kg": [2, 4, 7]})
SECOND = pa.table(
    {
        "parcel": [1, 2, 3, 4],
        "weight_kg": [2.5, 4.0, 7.0, 1.2],
        "destination": pa.array([PLACES[0], None, PLACES[1], None], pa.large_string()),
    }
)


def take_pictures(browser: Browser, office: Deciding, directory: Path) -> None:
    """Take `decision_page.png` and `decision_phone.png` of a stage that waits for bob."""
    waiting = _waiting_stage(office)
    page = _signed_in(browser, office, waiting, DESKTOP)
    page.screenshot(path=directory / "decision_page.png", full_page=True)
    page = _signed_in(browser, office, waiting, PHONE)
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("heading", name="Who has decided").evaluate("it => it.scrollIntoView()")
    page.screenshot(path=directory / "decision_phone.png")


def _waiting_stage(office: Deciding) -> Stage:
    world = office.world
    world.admit("dana", Role.STEWARD)
    world.admit("alice", Role.APPROVER)
    world.admit("bob", Role.APPROVER, Role.STEWARD)
    with_accounts(office.serving.settings, "bob")
    world.declare(quality={**POLICY, "rules": POLICY["rules"][:3]}, approval=APPROVAL)
    current = world.stage("dana", FIRST)
    for name in ("alice", "bob"):
        world.decide(name, current)
    world.promote(current)
    world.declare(quality=POLICY, approval=APPROVAL)
    waiting = world.stage("dana", SECOND)
    world.decide("alice", waiting, "zq-reason: agreed by telephone")
    return waiting


def _signed_in(browser: Browser, office: Deciding, stage: Stage, size: dict[str, int]) -> Page:
    page = browser.new_context(viewport=size, java_script_enabled=False).new_page()
    page.goto(f"http://127.0.0.1:{office.serving.port}/governance/stages/{stage.id}")
    page.get_by_label("Account").fill("bob")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("1 more approval is needed.")).to_be_visible()
    assert not any(text in page.content() for text in (*PLACES, "zq-reason"))
    return page


@contextmanager
def _database() -> Iterator[GovernanceDatabase]:
    directory = reachable_directory()
    with EmbeddedPostgres.start(directory / "postgres", settings=FOR_TESTS) as server:
        connections = provision(server.url, governance="governance", dagster="dagster")
        upgrade(server.url)
        yield GovernanceDatabase(
            name="governance",
            admin_url=server.url,
            application_url=connections.governance_url,
            application_role=application_role("governance"),
            owner_role=owner_role("governance"),
            reader_role=reader_role("governance"),
            retention_role=retention_role("governance"),
        )
    shutil.rmtree(directory)


@contextmanager
def _office() -> Iterator[Deciding]:
    with tempfile.TemporaryDirectory() as name, _database() as database:
        directory = Path(name)
        world = new_world(database, directory / "world")
        world.datasource = "parcels"
        with (
            closing(world.application),
            workspace(directory) as context,
            deciding(world, context, directory / "webserver") as office,
        ):
            yield office


def main(directory: Path) -> None:
    """Take the pictures into a directory."""
    with browser() as started, _office() as office:
        take_pictures(started, office, directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
