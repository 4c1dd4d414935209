"""Approval where people work: signed in to Dagster's UI, each as themselves, without a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from datasource_governance.cli.stage import declaration_of, deliver
from datasource_governance.cli.story import DATASOURCE
from datasource_governance.cli.supervisor import System
from datasource_governance.composition import CODE_LOCATION
from datasource_governance.demo.deliveries import write_deliveries
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance_tests.browser.pages import browser, person
from datasource_governance_tests.laptop import laptop_system, password_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.timeout(900),
]
REASON = "zq-reason: as agreed with the register"
MILLISECONDS = 120_000
"""How long a run or a page of Dagster may take on a busy machine."""


@dataclass(frozen=True)
class Office:
    """A running system and a browser; whoever is named signs in once."""

    system: System
    browser: Browser
    pages: dict[str, Page]

    def __call__(self, name: str) -> Page:
        if name not in self.pages:
            password = password_of(self.system, name)
            self.pages[name] = person(self.browser, self.system.url, name, password)
        return self.pages[name]

    def open(self, name: str, path: str) -> Page:
        page = self(name)
        page.goto(f"{self.system.url}{path}")
        return page

    def stage(self) -> Stage:
        """Return the only stage that there is."""
        with self.system.application.work() as work:
            (stage,) = work.stages.list(DATASOURCE, ())
        return stage


@pytest.fixture(scope="module")
def office(cluster) -> Iterator[Office]:
    with laptop_system(cluster) as system, browser() as started:
        yield Office(system, started, {})


def test_people_bring_a_delivery_into_force_in_the_browser(office):
    steward_stages_a_delivery_from_the_launchpad(office)
    stage = office.stage()
    assert (stage.state, stage.creator) == (StageState.AWAITING_APPROVAL, "casey")

    creator_is_refused_with_a_sentence(office, stage)
    approver_follows_the_link_from_dagster_and_approves(office, stage)
    second_approver_finds_it_among_what_waits_and_approves(office, stage)
    promotion_arrives_on_the_page_and_in_dagster(office, stage)
    whoever_comes_too_late_is_told_so(office, stage)

    assert office.stage().state is StageState.PROMOTED
    assert office.system.application.verify_evidence().holds
    assert decisions(office, stage) == [("alice", "approve"), ("bob", "approve")]


def steward_stages_a_delivery_from_the_launchpad(office):
    application = office.system.application
    deliveries = write_deliveries(application.settings.state / "register")
    declaration = declaration_of(application, DATASOURCE)
    name, _ = deliver(application, declaration, deliveries.first)
    config = f"ops:\n  {DATASOURCE}__stage:\n    config:\n      delivery: {name}\n"

    launchpad = f"/locations/{CODE_LOCATION}/jobs/stage_{DATASOURCE}/playground/setup"
    page = office.open("casey", f"{launchpad}?config={quote(config)}")
    see(page.get_by_text("No errors"))
    page.get_by_text("Launch Run").click()

    page.wait_for_url("**/runs/*")
    see(page.get_by_text("Success", exact=True).first)


def creator_is_refused_with_a_sentence(office, stage):
    page = office.open("casey", f"/governance/stages/{stage.id}")

    refusal = f"actor 'casey' created stage {stage.id} and cannot decide about it"
    see(page.get_by_text(refusal))
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def approver_follows_the_link_from_dagster_and_approves(office, stage):
    page = office.open("alice", f"/assets/{DATASOURCE}/stage")
    page.get_by_role("link", name="decide", exact=True).first.click()
    page.wait_for_url(f"**/governance/stages/{stage.id}")

    decide(page)

    expect(page.get_by_role("status")).to_contain_text("recorded", timeout=MILLISECONDS)
    expect(page.get_by_text(REASON)).to_have_count(0)


def second_approver_finds_it_among_what_waits_and_approves(office, stage):
    page = office.open("bob", "/governance/decisions")
    see(page.get_by_text("you can decide"))
    page.get_by_role("link", name=stage.delivery).click()

    decide(page)

    expect(page.get_by_role("status")).to_contain_text("recorded", timeout=MILLISECONDS)


def promotion_arrives_on_the_page_and_in_dagster(office, stage):
    page = office("bob")
    link = page.get_by_role("link", name="See it in Dagster")
    see(link)
    link.click()

    see(page.get_by_text("alice, bob").first)
    see(page.get_by_text(stage.id).first)


def whoever_comes_too_late_is_told_so(office, stage):
    page = office.open("bob", f"/governance/stages/{stage.id}")

    see(page.get_by_text("You cannot decide:"))


def see(what: Locator) -> None:
    expect(what).to_be_visible(timeout=MILLISECONDS)


def decide(page: Page) -> None:
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name="Approve").click()


def decisions(office, stage) -> list[tuple[str, str]]:
    with office.system.application.work() as work:
        return [(one.actor, str(one.verdict)) for one in work.decisions.about(stage.id)]
