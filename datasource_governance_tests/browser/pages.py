"""A browser signs in, sees what must be on a page and nothing that may not, takes its picture.

It finds a Chromium or, where it may, installs the system's; without one it fails.
"""

import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

SIZE: ViewportSize = {"width": 1400, "height": 900}
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_MILLISECONDS = 60_000


class Pages:
    """The pages of one Dagster UI, as a person who signed in sees them."""

    def __init__(self, page: Page, url: str, unwanted: Collection[str]) -> None:
        self._page = page
        self._url = url
        self._unwanted = unwanted

    def picture(
        self, path: str, *, shows: Sequence[str], at: Path, scroll_to: str | None = None
    ) -> None:
        """Open a page and take its picture, once it shows every text.

        Fails when a text does not appear within a minute, or when the page holds anything unwanted,
        visible or not. `scroll_to` is a Playwright selector of what is to be in the picture.
        """
        self._page.goto(f"{self._url}{path}")
        for text in shows:
            expect(self._page.get_by_text(text).first).to_be_visible(timeout=_MILLISECONDS)
        if scroll_to is not None:
            self._page.locator(scroll_to).last.scroll_into_view_if_needed()
        self._page.wait_for_timeout(1_000)  # what is drawn on a canvas has no text to wait for
        held = self._page.content() + self._page.inner_text("body")
        found = sum(value in held for value in self._unwanted)
        assert found == 0, f"{path} holds {found} unwanted texts"
        at.parent.mkdir(parents=True, exist_ok=True)
        self._page.screenshot(path=at)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a headless browser in which nobody has signed in."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        yield started
        started.close()


@contextmanager
def signed_in(url: str, name: str, password: str, unwanted: Collection[str]) -> Iterator[Pages]:
    """Sign in to the UI at `url` in a new browser; no page may hold a text of `unwanted`."""
    with browser() as started:
        page = person(started, url, name, password)
        page.get_by_text("Hide navigation").click()
        yield Pages(page, url, unwanted)


def person(browser: Browser, url: str, name: str, password: str) -> Page:
    """Return a page on which somebody has signed in, with cookies of its own."""
    context = browser.new_context(viewport=SIZE, timezone_id="UTC", locale="en-GB")
    page = context.new_page()
    page.set_default_timeout(_MILLISECONDS)
    page.goto(url)
    page.get_by_label("Account").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda address: "/signin" not in address, wait_until="commit")
    return page


def chromium() -> str:
    """Return the path of a Chromium; install the system's one if root and none is there."""
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "chromium"], check=False, capture_output=True)
        found = _installed()
    if found is None:
        message = f"none of {', '.join(_NAMES)} is installed, and the browser tests need one"
        raise RuntimeError(message)
    return found


def _installed() -> str | None:
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)
