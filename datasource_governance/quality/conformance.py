"""The conformance suite: what every quality provider must answer, as the native evaluator does.

For a provider of your own, one test says it all:

    def test_conforms():
        assert check_conformance(MyPlugin()) == []

Source: SPEC section 14; facts on the quality plugin, 10.7.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from typing_extensions import override

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.validation import RuleOutcome, Status, Validation
from datasource_governance.quality.conformance_data import (
    EDGES,
    MIXED,
    POSITION,
    ROW_COUNT,
    edge_frame,
)
from datasource_governance.quality.conformance_rules import edge_rules
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.sources.sql.selection import quoted

ROWS, EMPTY = "rows", "empty"
"""The data sets: every edge there is, and the same columns without a row."""
SCHEMA = 'conformance "of" quality'
"""Where the tables of the suite are, for as long as it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCase:
    """What is expected of one rule over one data set; its rule's id names what it is about."""

    dataset: str
    expected: RuleOutcome

    @property
    def id(self) -> str:
        """Data set and rule."""
        return f"{self.dataset}: {self.expected.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonconformity:
    """A case that a provider answers in another way; `found` is None where it says nothing."""

    case: ConformanceCase
    found: RuleOutcome | None

    @override
    def __str__(self) -> str:
        """Return case, expectation and finding as one line."""
        found = "nothing" if self.found is None else _told(self.found)
        return f"{self.case.id}: expected {_told(self.case.expected)}, found {found}"


def conformance_cases() -> tuple[ConformanceCase, ...]:
    """Return every rule over every data set, with what the native evaluator finds.

    Rules of all seven types are among them; a provider is asked those about rows.
    """
    return (*_cases(ROWS), *_cases(EMPTY))


def check_conformance(
    plugin: DataQualityPlugin, url: str | None = None, datasets: Collection[str] = (ROWS, EMPTY)
) -> list[Nonconformity]:
    """Return where a provider differs from the native evaluator; nothing if it conforms.

    Status, reason, fields and the count of affected rows must be the same, and row numbers where
    the provider tells any. A rule of a type that it does not evaluate must be `error`; one about a
    field of an `inexact_types` may be.

    Args:
        plugin: The provider, as it would be used.
        url: A database in which the suite may make a schema of its own, which it removes again; the
            provider reads tables of it. Without it tables in memory are read.
        datasets: The data sets to check; each is one run of the provider.

    Raises:
        PluginExecutionError: as `execute_checks`; the provider cannot run at all.
    """
    if url is None:
        frames = {name: edge_frame(empty=name == EMPTY) for name in datasets}
        return [one for name, frame in frames.items() for one in _compared(plugin, name, frame)]
    from datasource_governance.sources.sql.read import SqlSource

    with _tables(url):
        tables = {name: SqlSource(url, table=name, schema=SCHEMA) for name in datasets}
        return [one for name, table in tables.items() for one in _compared(plugin, name, table)]


def _compared(plugin: DataQualityPlugin, dataset: str, data: object) -> list[Nonconformity]:
    in_memory = type(data).__name__ != "SqlSource"
    asked = [
        one for one in expectations(_policy(dataset)) if in_memory or MIXED not in one.rule.fields
    ]
    found = {check.id: check for check in plugin.execute_checks(data, asked).checks}
    cases = {case.expected.id: case for case in _cases(dataset)}
    return [
        Nonconformity(case=cases[one.id], found=found.get(one.id))
        for one in asked
        if not _conforms(plugin, cases[one.id], found.get(one.id))
    ]


def _conforms(plugin: DataQualityPlugin, case: ConformanceCase, found: RuleOutcome | None) -> bool:
    if found is None:
        return False
    if case.expected.type not in plugin.kinds:
        return found.status is Status.ERROR
    if found.status is Status.ERROR:
        return bool(plugin.inexact_types & _types(case))
    known = found if found.rows is not None else replace(found, rows=case.expected.rows)
    return known == case.expected


def _types(case: ConformanceCase) -> set[DataType]:
    """Return the logical types of the fields that a case is about."""
    schema = _native(case.dataset).schema
    return {field.type for field in schema.fields if field.name in case.expected.fields}


@cache
def _policy(dataset: str) -> QualityPolicy:
    rules = edge_rules(empty=dataset == EMPTY)
    return parse_quality_policy({"version": "conformance", "rules": rules})


@cache
def _native(dataset: str) -> Validation:
    from datasource_governance.evaluation.evaluate import validate

    return validate(_policy(dataset), edge_frame(empty=dataset == EMPTY))


def _cases(dataset: str) -> Iterator[ConformanceCase]:
    for outcome in _native(dataset).rules:
        yield ConformanceCase(dataset=dataset, expected=outcome)


def _told(outcome: RuleOutcome) -> str:
    return " ".join(
        str(fact)
        for fact in (outcome.status, outcome.reason, outcome.affected, outcome.rows)
        if fact is not None
    )


@contextmanager
def _tables(url: str) -> Iterator[None]:
    """Make the data sets tables of a schema of their own, and drop it in the end."""
    drop = f"DROP SCHEMA IF EXISTS {quoted(SCHEMA)} CASCADE"
    _run(
        url, [drop, f"CREATE SCHEMA {quoted(SCHEMA)}", *_table(EMPTY, 0), *_table(ROWS, ROW_COUNT)]
    )
    try:
        yield
    finally:
        _run(url, [drop])


def _table(name: str, rows: int) -> Iterator[str]:
    relation = f"{quoted(SCHEMA)}.{quoted(name)}"
    columns = ", ".join(f"{quoted(column)} {one.sql_type}" for column, one in EDGES.items())
    yield f"CREATE TABLE {relation} ({columns}, PRIMARY KEY ({quoted(POSITION)}))"
    for place in range(rows):
        cells = ", ".join(_literal(one.cells[place], one.sql_type) for one in EDGES.values())
        yield f"INSERT INTO {relation} VALUES ({cells})"  # noqa: S608 - our own cells


def _literal(cell: object, sql_type: str) -> str:
    if cell is None:
        return "NULL"
    spelled = str(cell).replace("'", "''")
    return f"CAST('{spelled}' AS {sql_type})"


def _run(url: str, statements: Sequence[str]) -> None:
    from sqlalchemy import NullPool, create_engine

    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        # Without parameters a driver leaves percent signs alone.
        plain = connection.execution_options(no_parameters=True)
        for statement in statements:
            plain.exec_driver_sql(statement)
