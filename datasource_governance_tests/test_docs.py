"""The docs are tests: what they show runs, what they link to is there.

HTML comments before a block, invisible to readers, say what to do with it:

- `file: NAME`: it is a file of that name;
- `run`, `run: exits 1`: it is run by a shell, which ends with that code;
- `stands for: dev`, `stands for: sensor`: it needs a running system; what that does is done here;
- `stands for: bob`: somebody decides in a browser; here bob approves what waits;
- `policy: KIND`: it is a policy of that kind;
- `prints`: it is what the Python block before it prints;
- `shows`: its lines are among those that the commands before it print.

Every Python block runs. Where no Dagster runs, `stage create` and `stage refresh` do it in process.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from datasource_governance.cli.approval import decide
from datasource_governance.cli.demo_accounts import demo_accounts
from datasource_governance.cli.founding import found, signer_of
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.policy_version import POLICIES, PolicyKind
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.strict_json import parse_json
from datasource_governance.services.promotion import (
    PromotionRequest,
    promote_stage,
)
from datasource_governance.services.waiting import WaitingStages

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "datasource_governance"
TESTS = ROOT / "datasource_governance_tests"
BUILT = ROOT / "docs" / "_build"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if BUILT not in page.parents),
]
PARSERS: dict[PolicyKind, Callable[[str], object]] = {
    PolicyKind.QUALITY: parse_quality_policy,
    PolicyKind.APPROVAL: parse_approval_policy,
    PolicyKind.RETENTION: parse_retention_policy,
}

_BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- [^\n]+ -->\n)*)^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^<!-- ([^:\n]+?)(?:: ([^\n]+))? -->$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_MACHINE_PATH = re.compile(r"/(?:home|root|tmp|work|Users|private)/|[A-Z]:\\")
_IN_PROCESS = """
datasource-governance() {
    case "$1 ${2:-}" in "stage create" | "stage refresh") set -- "$@" --in-process ;; esac
    command datasource-governance "$@"
}
"""


@dataclass(frozen=True)
class Block:
    """One fenced block: where its text begins, what it is, and what its marks say."""

    line: int
    language: str
    text: str
    marks: dict[str, str]


def blocks(page: Path) -> list[Block]:
    content = page.read_text()
    return [
        Block(
            line=content.count("\n", 0, found.start("text")),
            language=found["language"],
            text=found["text"],
            marks={name: value or "" for name, value in _MARK.findall(found["marks"])},
        )
        for found in _BLOCK.finditer(content)
    ]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages_with(condition: Callable[[Block], bool]) -> pytest.MarkDecorator:
    pages = [page for page in PAGES if any(map(condition, blocks(page)))]
    return pytest.mark.parametrize("page", pages, ids=name_of)


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    """An empty working directory with the environment of somebody who has just begun."""
    for name in [*os.environ]:
        if name.startswith("GOVERNANCE_") or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GOVERNANCE_DATASOURCES", "datasources")
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files(page: Path, directory: Path) -> None:
    for block in blocks(page):
        if "file" in block.marks:
            path = directory / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


@pages_with(lambda block: block.language == "python")
def test_python_blocks_run_and_print_what_they_say(page, directory, capsys):
    write_files(page, directory)
    namespace: dict[str, object] = {"__name__": "example"}
    printed = ""

    for block in blocks(page):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, page, "exec"), namespace)  # noqa: S102 - our own docs
            printed = capsys.readouterr().out
        if "prints" in block.marks:
            assert printed == block.text


@pytest.mark.postgres
@pytest.mark.slow
@pages_with(lambda block: "run" in block.marks)
def test_commands_work_in_the_order_of_the_page(page, directory, governance_database, monkeypatch):
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", governance_database.application_url)
    write_files(page, directory)
    (directory / "variables").touch()
    printed = ""

    for block in blocks(page):
        if "stands for" in block.marks:
            STAND_INS[block.marks["stands for"]]()
        if "run" in block.marks:
            ended = run(block.text)
            expected = 1 if block.marks["run"] == "exits 1" else 0
            assert ended.returncode == expected, f"{page}:{block.line}\n{ended.stderr}"
            printed = ended.stdout
        if "shows" in block.marks:
            assert lines(block.text) <= lines(printed), f"{page}:{block.line}\n{printed}"


def lines(text: str) -> set[str]:
    return {line.rstrip() for line in text.splitlines()}


def run(commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands in a new shell that knows the variables of the one before."""
    script = f"set -eua\n. ./variables\n{_IN_PROCESS}{commands}export -p > variables\n"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


def stand_in_for_dev() -> None:
    application = found(read_settings())
    demo_accounts(application)
    application.close()


def stand_in_for_sensor() -> None:
    application = Application(read_settings())
    for standings in WaitingStages().overview(application.work()).standings.values():
        for one in standings:
            if one.complete_since:
                promote_stage(
                    application.work(), application.artifacts(), PromotionRequest(stage=one.stage)
                )
    application.close()


def stand_in_for_bob() -> None:
    application = Application(read_settings())
    with application.work() as work:
        waiting = work.stages.list(None, (StageState.AWAITING_APPROVAL,))
    for stage in waiting:
        bob = signer_of(application, "bob")
        decide(application, bob, Verdict.APPROVE, stage.id, "Approved on the page.")
    application.close()


STAND_INS = {"dev": stand_in_for_dev, "sensor": stand_in_for_sensor, "bob": stand_in_for_bob}


@pages_with(lambda block: block.language == "json")
def test_json_blocks_are_strict_json_and_policies_are_valid(page):
    for block in blocks(page):
        if block.language == "json":
            parse_json(block.text)
        if "policy" in block.marks:
            PARSERS[PolicyKind(block.marks["policy"])](block.text)


def test_every_kind_of_policy_has_an_example():
    page = ROOT / "docs/reference/policies.md"

    examples = {block.marks["policy"] for block in blocks(page) if "policy" in block.marks}

    assert examples == set(POLICIES)


def test_concept_table_names_files_that_exist():
    content = (ROOT / "README.md").read_text()
    table = content[content.index("## Where concepts live") : content.index("## Configuration")]
    rows = [line.split("|")[2:5] for line in table.splitlines() if "`" in line and line[0] == "|"]

    missing = [
        name
        for *code, tests in rows
        for folder, cells in ((PACKAGE, code), (TESTS, [tests]))
        for cell in cells
        for name in re.findall(r"`([^`]+)`", cell)
        if not (folder / name).is_file()
    ]

    assert len(rows) > 10
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page):
    targets = [target for target in _LINK.findall(page.read_text()) if "://" not in target]

    assert [target for target in targets if not resolves(page, target)] == []


def resolves(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = page.parent / name if name else page
    return path.is_file() and (not anchor or anchor in anchors(path))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_hold_no_path_of_a_machine(page):
    assert _MACHINE_PATH.findall(page.read_text()) == []
