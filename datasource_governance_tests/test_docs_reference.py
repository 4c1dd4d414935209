"""The reference is complete: every word that the package uses for something is in it.

What only strings say, error codes, problem kinds, metadata keys, is read from the source text.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from datasource_governance.domain import (
    approval_policy,
    datasource,
    quality_policy,
    retention_policy,
)
from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.event import CHECKED, EVENT_TYPES, EXPIRING, RESOLVED, VIOLATED
from datasource_governance.domain.evidence import BreakKind
from datasource_governance.domain.materialization import Disposition
from datasource_governance.domain.policy_keys import Record, Variants
from datasource_governance.domain.policy_values import ListOf
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import Change, Classification
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.validation import Outcome, Reason, Status
from datasource_governance.orchestration.check_names import FIXED
from datasource_governance.orchestration.metadata import NAMESPACE
from datasource_governance.receivers import settings as receivers

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "datasource_governance"
# The words of the specification's first section.
WORDS = """
Actor; Artifact reference; Attestation; Base; Canary; Canonical bytes; Checkpoint; Compare-and-swap;
Contract; Datasource; Decision; Disposition; DSSE; Evidence; Fingerprint; In-toto; Legal hold;
Materialization; ODCS; Outbox; Projection; Provenance; Publication; Quorum; Reconciler;
Retention plan; Stage; Tombstone; Validation; Violation
"""


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield every call in the package with the last part of what is called."""
    for node in nodes():
        if isinstance(node, ast.Call):
            called = node.func
            yield getattr(called, "attr", getattr(called, "id", "")), node


def nodes() -> Iterator[ast.AST]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text()))


def texts(values: Iterable[ast.AST]) -> set[str]:
    return {
        value.value
        for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def keyword(call: ast.Call, *names: str) -> list[ast.AST]:
    return [given.value for given in call.keywords if given.arg in names]


def error_codes() -> set[str]:
    raised = texts(value for _, call in calls() for value in keyword(call, "code"))
    own = texts(
        statement.value
        for node in nodes()
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "code"
    )
    return raised | own


def problem_kinds() -> set[str]:
    places = {"report": 0, "_problem": 0, "_name_problem": 0, "refused": 1, "_refused": 1}
    found = {"too_large"}
    for called, call in calls():
        if called == "Problem":
            found |= texts(keyword(call, "kind"))
        if called in places:
            place = places[called]
            found |= texts(call.args[place : place + 1])
        found |= texts(keyword(call, "repeated", "unknown"))
    return {kind for kind in found if re.fullmatch("[a-z_]+", kind)}


def evidence_kinds() -> set[str]:
    return texts(
        value for called, call in calls() if called == "append" for value in keyword(call, "kind")
    )


def event_types() -> set[str]:
    """Return the type of every event that a service records."""
    recorded = (call.args[2:3] for called, call in calls() if called == "record")
    kinds = texts(kind for kinds in recorded for kind in kinds)
    return {f"datasource.{kind}" for kind in kinds | {EXPIRING, CHECKED, VIOLATED, RESOLVED}}


def metadata_keys() -> set[str]:
    spelled = "".join(path.read_text() for path in (PACKAGE / "orchestration").glob("*.py"))
    named = re.sub(r"\{(?:metadata\.)?NAMESPACE\}", NAMESPACE, spelled)
    return set(re.findall(rf'"({NAMESPACE}/[a-z_]+)"', named))


def environment_variables() -> set[str]:
    pattern = re.compile(r"GOVERNANCE_[A-Z_]+|(?:DAGSTER_)?DATABASE_URL")
    return {
        name for text in texts(nodes()) for name in re.findall(rf"\b(?:{pattern.pattern})\b", text)
    }


def keys_of(kind: object) -> set[str]:
    """Return every key that a document of a kind may have, at any depth."""
    if isinstance(kind, Record):
        below = (keys_of(key.kind) for key in kind.keys)
        return {key.name for key in kind.keys}.union(*below)
    if isinstance(kind, Variants):
        return {kind.by}.union(*map(keys_of, kind.records.values()))
    return keys_of(kind.item) if isinstance(kind, ListOf) else set()


def declaration_keys() -> set[str]:
    declaration = datasource._declaration(lambda _name: b"", datasource._no_contract)
    kinds = {key.name: key.kind for key in declaration.keys} | {"csv": datasource._CSV_KEYS}
    return {
        ".".join(path)
        for name, kind in kinds.items()
        for path in ([(name, member) for member in record_keys(kind)] or [(name,)])
    }


def record_keys(kind: object) -> list[str]:
    return [key.name for key in kind.keys] if isinstance(kind, Record) else []


REFERENCE: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "rule types": ("docs/reference/policies.md", lambda: quality_policy.RULES),
    "keys of quality policies": (
        "docs/reference/policies.md",
        lambda: keys_of(quality_policy.QUALITY_POLICY),
    ),
    "keys of approval policies": (
        "docs/reference/policies.md",
        lambda: keys_of(approval_policy.APPROVAL_POLICY),
    ),
    "keys of retention policies": (
        "docs/reference/policies.md",
        lambda: keys_of(retention_policy.RETENTION_POLICY),
    ),
    "logical types": ("docs/reference/policies.md", lambda: DataType),
    "schema changes": ("docs/reference/policies.md", lambda: Change),
    "classes": ("docs/reference/policies.md", lambda: Classification),
    "statuses": ("docs/reference/validation.md", lambda: Status),
    "reasons": ("docs/reference/validation.md", lambda: Reason),
    "outcomes": ("docs/reference/validation.md", lambda: Outcome),
    "stage states": ("docs/reference/states.md", lambda: StageState),
    "verdicts": ("docs/reference/states.md", lambda: Verdict),
    "dispositions": ("docs/reference/states.md", lambda: Disposition),
    "event types": ("docs/reference/events.md", event_types),
    "keys of receivers": (
        "docs/reference/configuration.md",
        lambda: keys_of(receivers._settings(Path(), "", None)) - {"receiver"},
    ),
    "error codes": ("docs/reference/errors.md", error_codes),
    "metadata keys": ("docs/reference/metadata.md", metadata_keys),
    "fixed check names": ("docs/reference/metadata.md", lambda: FIXED),
    "environment variables": ("docs/reference/configuration.md", environment_variables),
    "keys of declarations": ("docs/reference/configuration.md", declaration_keys),
    "roles": ("docs/reference/authority.md", lambda: Role),
    "kinds of breaks": ("docs/explanation/evidence.md", lambda: BreakKind),
    "kinds of evidence": ("docs/explanation/evidence.md", evidence_kinds),
}


@pytest.mark.parametrize("concept", REFERENCE)
def test_reference_names_every_word_of(concept):
    page, words = REFERENCE[concept]
    known, content = sorted(words()), (ROOT / page).read_text()

    missing = [word for word in known if f"`{word}`" not in content]

    assert known
    assert missing == []


def test_receivers_can_choose_among_all_types_of_events():
    assert set(EVENT_TYPES) == event_types()


def test_reference_names_every_problem_kind():
    pages = ("contracts.md", "policies.md", "quality.md", "validation.md")
    content = "".join((ROOT / "docs/reference" / name).read_text() for name in pages)

    assert [kind for kind in sorted(problem_kinds()) if f"`{kind}`" not in content] == []


def test_reference_lists_no_error_code_that_nothing_raises():
    rows = re.findall(
        r"^\| `([a-z_]+)` \|", (ROOT / "docs/reference/errors.md").read_text(), re.MULTILINE
    )

    assert set(rows) == error_codes()


def test_glossary_has_every_word_of_the_specification():
    rows = re.findall(r"^\| ([A-Z][^|]*) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)

    assert rows == [word.strip() for word in WORDS.split(";")]
