"""A person with a browser: signs in without a script, works in Dagster's UI, reads refusals."""

import pytest
from playwright.sync_api import Browser, Page, expect

from datasource_governance_tests.web.serving import LOCATION, PASSWORD, Serving

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.slow]
_MILLISECONDS = 60_000
PHONE = {"width": 360, "height": 640}
STAGE_JOB = f"/locations/__repository__@{LOCATION}/jobs/stage_orders"


def opened(browser: Browser, **options) -> Page:
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(_MILLISECONDS)
    return page


def sign_in(page: Page, governed: Serving, name: str, path: str = "/") -> None:
    """Sign in with the keyboard alone."""
    page.goto(f"http://127.0.0.1:{governed.port}{path}")
    expect(page.get_by_label("Account")).to_be_focused()  # the page focuses it once it is drawn
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/signin" not in url, wait_until="commit")


def test_sign_in_and_out_needs_neither_script_nor_mouse_nor_a_wide_screen(browser, governed):
    page = opened(browser, java_script_enabled=False, viewport=PHONE)
    sign_in(page, governed, "viewer", "/signin")
    page.goto(f"http://127.0.0.1:{governed.port}/signin")
    expect(page.get_by_text("You are viewer")).to_be_visible()
    width = page.locator("html").bounding_box()["width"]

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_label("Password")).to_be_visible()
    assert width <= PHONE["width"]


def test_the_ui_works_behind_the_gate(browser, governed):
    page = opened(browser)
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("response", lambda answer: _note(answer, problems))

    sign_in(page, governed, "steward", "/assets/orders/stage")

    expect(page.get_by_text("orders").first).to_be_visible()
    page.goto(f"http://127.0.0.1:{governed.port}/runs")
    expect(page.get_by_text("Runs").first).to_be_visible()
    page.goto(f"http://127.0.0.1:{governed.port}{STAGE_JOB}")
    expect(page.get_by_role("button", name="Materialize")).to_be_visible()
    page.wait_for_timeout(2_000)  # what a page asks for late is asked for by then
    assert problems == []


def test_what_is_refused_is_shown_in_the_ui(browser, governed):
    page = opened(browser)
    sign_in(page, governed, "viewer", STAGE_JOB)

    page.get_by_role("button", name="Materialize").click()
    page.get_by_text("View error info").click()

    expect(page.get_by_text("needs the role steward").first).to_be_visible()


def _note(answer, problems: list[str]) -> None:
    if answer.status >= 400:
        problems.append(f"{answer.status} {answer.url}")
    elif "/graphql" in answer.url and "errors" in answer.text():
        problems.append(answer.text()[:500])
