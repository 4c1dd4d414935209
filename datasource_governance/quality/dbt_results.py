"""Read what dbt left of a run, `run_results.json` and `manifest.json`, without dbt.

Taken over are ids, names of tests and columns, severities, statuses and counts. Messages and
compiled SQL quote cells, and are not looked at.

Source: SPEC section 14; facts on the quality plugin, 8.5, 8.6 and 8.8.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.rule_outcome import Reason, RuleOutcome, Status
from datasource_governance.domain.rules import Severity
from datasource_governance.domain.strict_json import pointer
from datasource_governance.domain.test_types import canonical_test_type
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.quality.dbt_artifacts import Artifact, mapping, read_artifact

_STATUSES: Final = MappingProxyType(
    {
        "pass": Status.PASSED,
        "warn": Status.FAILED,
        "fail": Status.FAILED,
        "error": Status.ERROR,
        "skipped": Status.ERROR,
    }
)
_SEVERITIES: Final = MappingProxyType({"error": Severity.ERROR, "warn": Severity.WARNING})
_REASONS: Final = MappingProxyType(
    {
        "not_null": Reason.NULL,
        "unique": Reason.DUPLICATE,
        "referential": Reason.NOT_ALLOWED,
        "relationships": Reason.NOT_ALLOWED,
        "range": Reason.OUT_OF_RANGE,
        "row_count": Reason.ROW_COUNT,
    }
)
_OF_ROWS = frozenset(
    {
        "not_null",
        "relationships",
        "dbt_utils.accepted_range",
        "dbt_utils.expression_is_true",
        "dbt_utils.relationships_where",
        "dbt_expectations.expect_column_values_to_be_between",
        "dbt_expectations.expect_column_values_to_not_be_null",
    }
)
"""Generic tests that find rows. Others find groups or values, or nobody knows what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """What the manifest says of a test; `finds_rows` when each of its failures is one row."""

    id: str
    type: str
    severity: Severity
    fields: tuple[str, ...]
    counts_failures: bool
    finds_rows: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What a run says of a test; `failures` is 0 where it did not run."""

    status: Status
    failures: int


def read_dbt_results(
    run_results: Artifact, manifest: Artifact, model: str | None = None
) -> QualityCheckResult:
    """Return the outcome of every enabled test of a dbt project, in the order of its manifest.

    A test's id is `rule_id` of its `meta`, else dbt's unique id; its type is canonical where that
    is known, and a singular test's name. `affected` is given where failures are rows: for tests
    known to find rows, and for singular tests, whose query returns rows; not where a `limit` or
    another `fail_calc` was configured. A test that the run left out could not be evaluated. As in
    dbt, thresholds decide whether a test passed, so a passed one may have affected rows.

    Args:
        run_results: `run_results.json`, versions 4 to 6.
        manifest: `manifest.json` of the same project, versions 10 to 12.
        model: The name of a model, to return only the tests about it, those between models too.

    Raises:
        UnreadableSourceError: with everything that is wrong: an artifact that is missing, no JSON
            or of another version, results of tests that the manifest does not know, ids that are
            repeated, and values that dbt does not write.
    """
    problems: list[Problem] = []
    ran = read_artifact(run_results, "run-results", problems)
    known = read_artifact(manifest, "manifest", problems)
    if problems:
        raise UnreadableSourceError("dbt results", problems)
    tests = dict(_tests(known, problems))
    results = dict(_results(ran, problems))
    version = mapping(ran.get("metadata")).get("dbt_version")
    if not isinstance(version, str):
        problems.append(_invalid("no version of dbt", "metadata", "dbt_version"))
    problems += _unknown(tests, results)
    problems += _repeated("id", (test.id for test in tests.values()))
    if problems:
        raise UnreadableSourceError("dbt results", problems)
    return QualityCheckResult(
        provider="dbt",
        provider_version=str(version),
        checks=tuple(
            _outcome(test, results.get(name))
            for name, test in tests.items()
            if model is None or _is_about(mapping(known["nodes"])[name], model)
        ),
    )


def _is_about(test: Mapping[str, Any], model: str) -> bool:
    """Tell whether a test reads a model, a seed or a source of that name."""
    read = mapping(test.get("depends_on")).get("nodes")
    nodes = [test.get("attached_node"), *(read if isinstance(read, list) else [])]
    return any(str(node).split(".")[-1] == model for node in nodes)


def _tests(manifest: Mapping[str, Any], problems: list[Problem]) -> Iterator[tuple[str, _Test]]:
    """Yield the enabled tests by their unique ids."""
    for name, node in mapping(manifest.get("nodes")).items():
        config = mapping(mapping(node).get("config"))
        if mapping(node).get("resource_type") == "test" and config.get("enabled") is not False:
            yield name, _test(name, node, config, problems)


def _test(
    name: str, node: Mapping[str, Any], config: Mapping[str, Any], problems: list[Problem]
) -> _Test:
    metadata = mapping(node.get("test_metadata"))
    called = ".".join(str(part) for part in _qualified(metadata)) or str(node.get("name"))
    severity = _SEVERITIES.get(str(config.get("severity", "error")).lower())
    if severity is None:
        problems.append(_invalid("severity is neither error nor warn", "nodes", name, "config"))
    own_id = {**mapping(node.get("meta")), **mapping(config.get("meta"))}.get("rule_id", name)
    if not isinstance(own_id, str) or not own_id:
        problems.append(_invalid("rule_id is not a text", "nodes", name, "config", "meta"))
    return _Test(
        id=str(own_id),
        type=canonical_test_type(called) if metadata else called,
        severity=severity or Severity.ERROR,
        fields=_fields(node.get("column_name"), mapping(metadata.get("kwargs"))),
        counts_failures=config.get("fail_calc", "count(*)") == "count(*)",
        finds_rows=config.get("limit") is None and (not metadata or called in _OF_ROWS),
    )


def _qualified(metadata: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the package, unless it is dbt itself, and the name of a generic test."""
    package, name = metadata.get("namespace"), metadata.get("name")
    if name is None:
        return ()
    return (name,) if package is None or package == "dbt" else (package, name)


def _fields(column: object, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that a test is about: its own one, or those of a combination."""
    if column is None:
        column = arguments.get("column_name")
    if isinstance(column, str):
        return (column,)
    combined = arguments.get("combination_of_columns", arguments.get("column_list"))
    return tuple(map(str, combined)) if isinstance(combined, list) else ()


def _results(
    run_results: Mapping[str, Any], problems: list[Problem]
) -> Iterator[tuple[str, _Result]]:
    """Yield what became of tests, by their unique ids; of models, seeds and the like nothing."""
    listed = run_results.get("results")
    if not isinstance(listed, list):
        problems.append(_invalid("no list of results", "results"))
        return
    entries = [(place, mapping(entry)) for place, entry in enumerate(listed)]
    named = [(place, str(entry.get("unique_id")), entry) for place, entry in entries]
    tests = [one for one in named if one[1].startswith("test.")]
    problems += _repeated("unique_id", (name for _, name, _ in tests))
    for place, name, entry in tests:
        yield name, _result(place, entry, problems)


def _result(place: int, entry: Mapping[str, Any], problems: list[Problem]) -> _Result:
    status, failures = _STATUSES.get(str(entry.get("status"))), entry.get("failures")
    if status is None:
        problems.append(_invalid("not a status of a test", "results", place, "status"))
    if status in {None, Status.ERROR}:
        return _Result(status=Status.ERROR, failures=0)
    # A boolean is an int as well.
    if type(failures) is not int or failures < 0:
        problems.append(_invalid("not a count", "results", place, "failures"))
        return _Result(status=Status.ERROR, failures=0)
    return _Result(status=status or Status.ERROR, failures=failures)


def _outcome(test: _Test, result: _Result | None) -> RuleOutcome:
    status = Status.ERROR if result is None else result.status
    reasons = {Status.ERROR: Reason.NOT_EVALUATED, Status.FAILED: _REASONS.get(test.type)}
    return RuleOutcome(
        id=test.id,
        type=test.type,
        severity=test.severity,
        status=status,
        fields=test.fields,
        affected=None if result is None or status is Status.ERROR else _affected(test, result),
        reason=reasons.get(status),
    )


def _affected(test: _Test, result: _Result) -> int | None:
    """Return how many rows a test found; without failures there is none, whatever it counts."""
    if test.type == "row_count" or not test.counts_failures:
        return None
    return result.failures if test.finds_rows or not result.failures else None


def _unknown(tests: Mapping[str, _Test], results: Mapping[str, _Result]) -> Iterator[Problem]:
    for name in results:
        if name not in tests:
            message = f"{name} has a result, but the manifest has no such test; read one run's both"
            yield Problem(kind="unknown_id", message=message, names=(name,))


def _repeated(what: str, ids: Iterable[str]) -> Iterator[Problem]:
    for name, times in Counter(ids).items():
        if times > 1:
            message = f"{what} {name!r} is there {times} times"
            yield Problem(kind="duplicate_id", message=message, names=(name,))


def _invalid(message: str, *place: str | int) -> Problem:
    return Problem(kind="invalid_value", message=message, pointer=pointer(*place))
