"""A person decides in a browser: with the keyboard alone, without a script, on a phone."""

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance_tests.web.deciding import QUALITY, REASON, TABLE, Deciding
from datasource_governance_tests.web.decision_pictures import DESKTOP, PHONE, take_pictures
from datasource_governance_tests.web.test_browser import sign_in
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.slow]
_MILLISECONDS = 60_000
_MOST_TABS = 20


@pytest.fixture
def orders(office) -> Deciding:
    own = office.corner()
    own.world.declare(quality=QUALITY, approval=TWO_APPROVALS)
    return own


def opened(browser: Browser, orders: Deciding, name: str, path: str, **options) -> Page:
    """Open a page as somebody who signs in on the way there, in a browser without scripts."""
    page = browser.new_context(java_script_enabled=False, **options).new_page()
    page.set_default_timeout(_MILLISECONDS)
    sign_in(page, orders.serving, name, path)
    return page


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until something has the focus, and see that it does."""
    expect(wanted).to_be_visible()
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if wanted.evaluate("it => it === document.activeElement"):
            break
    outline = wanted.evaluate("it => getComputedStyle(it).outline")
    assert "3px" in outline, outline


def is_within_the_screen(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_one_decides_on_a_phone_with_the_keyboard_alone_and_sees_the_promotion_arrive(
    browser, orders
):
    stage = orders.world.stage(table=TABLE)
    orders.world.decide("approver-1", stage)
    name = orders.newcomer(Role.APPROVER)

    page = opened(browser, orders, name, "/governance/decisions", viewport=PHONE)
    assert is_within_the_screen(page)
    tab_to(page, page.get_by_role("link", name="delivery.csv"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 more approval is needed.")).to_be_visible()
    assert is_within_the_screen(page)
    tab_to(page, page.get_by_role("link", name="Decide"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Reason"))
    page.keyboard.type(REASON)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")

    recorded = page.get_by_role("status")
    expect(recorded).to_contain_text("Your approval is recorded. The quorum is complete")
    assert REASON not in page.content()
    (made,) = (one for one in orders.decisions(stage) if one.actor == name)
    assert (made.verdict, made.reason) == (Verdict.APPROVE, REASON)

    orders.world.promote(stage)

    link = page.get_by_role("link", name="See it in Dagster")
    expect(link).to_be_visible(timeout=_MILLISECONDS)
    assert link.get_attribute("href") == f"/assets/{stage.datasource}/current"


def test_one_rejects_with_the_keyboard_alone(browser, orders):
    stage = orders.world.stage(table=TABLE)
    page = opened(browser, orders, "approver-2", f"/governance/stages/{stage.id}", viewport=PHONE)

    tab_to(page, page.get_by_label("Reason"))
    page.keyboard.type(REASON)
    tab_to(page, page.get_by_role("button", name="Reject, for good"))
    page.keyboard.press("Space")

    expect(page.get_by_role("status")).to_contain_text("Your rejection is recorded.")
    assert orders.world.present(stage).state == "rejected"


def test_the_creator_is_told_why_there_is_no_form(browser, orders):
    stage = orders.world.stage(table=TABLE)

    page = opened(browser, orders, "creator", f"/governance/stages/{stage.id}", viewport=PHONE)

    expect(page.get_by_text(f"'creator' created stage {stage.id}")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)


def test_a_refusal_has_the_focus_and_the_reason_is_still_there(browser, orders):
    stage = orders.world.stage(table=TABLE)
    page = opened(browser, orders, "approver-2", f"/governance/stages/{stage.id}", viewport=PHONE)

    page.get_by_label("Reason").fill("   ")
    page.get_by_role("button", name="Approve").click()

    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("needs a reason")
    expect(page.get_by_label("Reason")).to_have_value("   ")
    assert is_within_the_screen(page)


def test_wide_tables_scroll_inside_themselves_by_key(browser, orders):
    stage = orders.world.stage(table=TABLE)
    page = opened(browser, orders, "creator", f"/governance/stages/{stage.id}", viewport=PHONE)
    rules = page.get_by_role("region", name="Rules")
    assert rules.evaluate("it => it.scrollWidth > it.clientWidth")

    tab_to(page, rules)
    page.keyboard.press("ArrowRight")

    while rules.evaluate("it => it.scrollLeft") == 0:  # the time limit of the test ends this
        page.wait_for_timeout(100)
    assert is_within_the_screen(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_background(browser, orders, scheme):
    stage = orders.world.stage(table=TABLE)
    orders.world.decide("approver-1", stage)
    path = f"/governance/stages/{stage.id}"

    page = opened(browser, orders, "approver-2", path, viewport=DESKTOP, color_scheme=scheme)

    assert page.evaluate(LOWEST_CONTRAST) >= 4.5


def test_on_paper_nothing_is_there_to_be_clicked(browser, orders):
    stage = orders.world.stage(table=TABLE)
    page = opened(
        browser, orders, "approver-2", f"/governance/stages/{stage.id}", color_scheme="dark"
    )

    page.emulate_media(media="print")

    expect(page.get_by_text(stage.validation_hash)).to_be_visible()
    expect(page.get_by_role("link")).to_have_count(0)
    expect(page.get_by_role("button")).to_have_count(0)
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


def test_the_pictures_of_the_documentation_can_be_taken(browser, office, tmp_path):
    take_pictures(browser, office.corner(), tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {
        "decision_page.png",
        "decision_phone.png",
    }


# WCAG 2.2, "contrast ratio": of every text with the nearest background that is not transparent.
LOWEST_CONTRAST = """() => {
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
    .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = it => {
    const found = colour(getComputedStyle(it).backgroundColor);
    return found.length === 4 && found[3] === 0 && it.parentElement
      ? behind(it.parentElement) : found;
  };
  const texts = [...document.querySelectorAll('body *')].filter(it => [...it.childNodes]
    .some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim()));
  return Math.min(...texts.map(it => {
    const both = [light(colour(getComputedStyle(it).color)), light(behind(it))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  }));
}"""
