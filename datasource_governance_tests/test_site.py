"""The docs site builds without a warning, and whoever reads it gets everywhere.

It is built once, as `make docs` builds it, into a folder of the tests.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page, expect

import datasource_governance
from datasource_governance.domain.document_schemas import (
    artifact_reference_schema,
    producer_evidence_schema,
)
from datasource_governance.domain.json_schema import policy_schema
from datasource_governance.domain.policy_version import POLICIES
from datasource_governance_tests.browser.pages import browser

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent / "docs"
# Shown by the page of their folder.
INCLUDED = {DOCS / "adr/README.md"}
SECTIONS = ["Tutorial", "How-to guides", "Reference", "Explanation", "Decisions and changes"]
BUILD = """
import sys
from sphinx.cmd.build import main

code = main(sys.argv[1:])
print(*sorted({"matplotlib", "pandas", "pandera", "polars", "pyarrow"} & set(sys.modules)))
sys.exit(code)
"""


@dataclass
class Read(HTMLParser):
    """What one page of the site links to, loads, and can be linked to at; and its text."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    text: str = ""

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.anchors.add(given["id"])
        if "href" in given:
            (self.loads if tag == "link" else self.links).append(given["href"])
        if "src" in given:
            self.loads.append(given["src"])

    def handle_data(self, data):
        self.text += data


@dataclass(frozen=True)
class Site:
    """A site that was built, and the heavy packages that building it has imported."""

    folder: Path
    imported: list[str]

    def pages(self) -> dict[Path, Read]:
        return {path: read(path) for path in sorted(self.folder.rglob("*.html"))}


def read(path: Path) -> Read:
    page = Read()
    page.feed(path.read_text())
    return page


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-E", "-d", str(folder / "doctrees")]
    ended = subprocess.run(
        [sys.executable, "-c", BUILD, *options, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return Site(folder / "html", ended.stdout.split())


@contextmanager
def opened(path: Path) -> Iterator[tuple[Page, list[str]]]:
    """Open a page of the site in a browser; yield it and the addresses that it asks for."""
    with browser() as started:
        page = started.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        yield page, asked


def test_building_the_site_imports_no_engine(site):
    assert site.imported == []


def test_every_link_and_anchor_within_the_site_leads_somewhere(site):
    pages = site.pages()

    broken = [
        f"{path.relative_to(site.folder)}: {link}"
        for path, page in pages.items()
        for link in [*page.links, *page.loads]
        if not leads_somewhere(pages, path, link)
    ]

    assert sum(len(page.links) for page in pages.values()) > 1000
    assert broken == []


def test_a_link_to_nowhere_is_noticed(site):
    pages = site.pages()
    links = ["tutorial.html", "tutorial.html#declare-it", "nowhere.html", "tutorial.html#nowhere"]

    assert [leads_somewhere(pages, site.folder / "index.html", link) for link in links] == [
        *(True, True),
        *(False, False),
    ]


def leads_somewhere(pages: dict[Path, Read], page: Path, link: str) -> bool:
    address = urlsplit(link)
    if address.scheme:
        return address.scheme == "https"
    target = (page.parent / unquote(address.path)).resolve() if address.path else page
    if not address.fragment:
        return target.is_file()
    return target in pages and unquote(address.fragment) in pages[target].anchors


def test_pages_load_nothing_from_elsewhere(site):
    loads = {address for page in site.pages().values() for address in page.loads}

    assert [address for address in loads if urlsplit(address).netloc] == []


def test_every_page_of_the_docs_is_in_the_sidebar(site):
    links = set(read(site.folder / "index.html").links)

    sources = set(DOCS.rglob("*.md")) - INCLUDED - set((DOCS / "_build").rglob("*"))
    names = {source.relative_to(DOCS).with_suffix(".html").as_posix() for source in sources}

    assert names - links - {"index.html"} == set()


def test_the_library_reference_has_every_public_name(site):
    anchors = read(site.folder / "reference/library/index.html").anchors
    homes = {"GovernanceError": "datasource_governance.errors"}

    names = {
        f"{homes.get(name, 'datasource_governance')}.{name}"
        for name in datasource_governance.__all__
    }

    assert names - anchors == set()


@pytest.mark.parametrize("kind", POLICIES)
def test_the_schema_of_a_policy_is_shown_as_it_is_printed(site, kind):
    text = read(site.folder / "reference/schemas/index.html").text
    start = text.index("{", text.index(f"{kind.capitalize()} policy"))

    shown, _ = json.JSONDecoder().raw_decode(text, start)

    assert shown == policy_schema(kind)


@pytest.mark.parametrize(
    ("title", "schema"),
    [
        ("Artifact reference", artifact_reference_schema),
        ("Producer evidence", producer_evidence_schema),
    ],
)
def test_the_schema_of_what_producers_send_is_shown(site, title, schema):
    text = read(site.folder / "reference/schemas/index.html").text
    start = text.index("{", text.index(title))

    shown, _ = json.JSONDecoder().raw_decode(text, start)

    assert shown == schema()


def test_the_changelog_has_what_every_fragment_says(site):
    text = " ".join(read(site.folder / "changelog/index.html").text.split())
    fragments = sorted((DOCS.parent / "changelog.d").glob("*.md"))

    missing = [path.name for path in fragments if not says(text, path.read_text())]

    assert fragments
    assert missing == []


def says(text: str, fragment: str) -> bool:
    words = fragment.replace("`", "").replace("'", "’")  # noqa: RUF001 - as Sphinx prints it
    return " ".join(words.split()) in text


@pytest.mark.browser
def test_the_start_page_shows_the_sidebar_and_asks_for_nothing_elsewhere(site):
    with opened(site.folder / "index.html") as (page, asked):
        sidebar = page.locator("nav.sidebar-tree, .sidebar-tree").first

        assert sidebar.locator("p.caption").all_inner_texts() == [
            section.upper() for section in SECTIONS
        ]
        expect(sidebar.get_by_role("link", name="Tutorial: a month of deliveries")).to_be_visible()
        expect(page.get_by_role("img").first).to_be_visible()
        assert [address for address in asked if not address.startswith("file:")] == []


@pytest.mark.browser
def test_the_search_finds_a_page_by_a_word_of_it(site):
    with opened(site.folder / "index.html") as (page, _):
        page.get_by_placeholder("Search").fill("quorum")
        page.keyboard.press("Enter")

        expect(page.locator("ul.search").get_by_text("States", exact=True)).to_be_visible()


@pytest.mark.browser
def test_the_reader_can_make_it_dark(site):
    with opened(site.folder / "index.html") as (page, _):
        toggle = page.locator("button.theme-toggle:visible").first
        seen = set()
        for _click in range(3):
            toggle.click()
            seen.add(page.locator("body").get_attribute("data-theme"))

        assert seen == {"auto", "light", "dark"}
