"""Soda answers as the native evaluator does, and passes nothing that it did not evaluate."""

import datetime as dt

import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.validation import Status
from datasource_governance.evaluation.evaluate import validate
from datasource_governance.quality.providers.soda import SodaPlugin
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres

ODD_TABLE = 'o"dd.${x}{{ y }}/%s naïve'
RELATION = f'"s"".${{z}}"."{ODD_TABLE.replace(chr(34), chr(34) * 2)}"'
CREATED = (
    'CREATE SCHEMA "s"".${z}"',
    f'CREATE TABLE {RELATION} ("${{odd}} ""%s"" é" VARCHAR, x DOUBLE PRECISION)',
    f"INSERT INTO {RELATION} VALUES ('a', 'NaN'), ('A', 0), ('a', NULL), ('é', 1)",
)
FIELD = '${odd} "%s" é'
COUNTS = {"few": 1, "odd codes": 3, "odd repeats": 2, "nan": 2, "range": 3}


@pytest.fixture(scope="module")
def postgres(cluster):
    yield from new_postgres(cluster)


def asked(*rules):
    return expectations(parse_quality_policy({"version": "1", "rules": list(rules)}))


def odd_rules():
    return asked(
        {"id": "few", "type": "row_count", "maximum": 3},
        {"id": "odd codes", "type": "referential", "field": FIELD, "allowed_values": ["é", 1]},
        {"id": "odd repeats", "type": "unique", "field": FIELD},
        {"id": "nan", "type": "not_null", "field": "x"},
        {"id": "range", "type": "range", "field": "x", "minimum": 0.5},
    )


def assert_odd_counts(database):
    database.run(*CREATED)
    source = SqlSource(database.url, table=ODD_TABLE, schema='s".${z}')

    found = SodaPlugin().execute_checks(source, odd_rules()).checks

    assert all(check.status is Status.FAILED for check in found)
    assert {check.id: check.affected or 1 for check in found} == COUNTS


def test_names_of_postgres_that_no_contract_can_hold_are_found(postgres):
    assert_odd_counts(postgres)


def test_names_of_duckdb_that_no_contract_can_hold_are_found(tmp_path):
    assert_odd_counts(new_duckdb(tmp_path))


def test_types_that_duckdb_has_not_are_not_evaluated_but_for_their_nulls():
    table = pa.table(
        {
            "wide": pa.array([1, None, 1], pa.decimal256(60, 2)),
            "half": pa.array([1.0, 1.0, None], pa.float16()),
            "span": pa.array([dt.timedelta(1), None, None], pa.duration("ns")),
            "list": pa.array([[1], [1], None]),
            "time": pa.array([1, 1, None], pa.time64("ns")),
            "kept": pa.array([2**64 - 1, 1, None], pa.uint64()),
        }
    )
    kinds = {
        "null": {"type": "not_null"},
        "unique": {"type": "unique"},
        "range": {"type": "range", "minimum": 1},
        "codes": {"type": "referential", "allowed_values": [1]},
    }
    rules = [
        {**rule, "id": f"{kind} {name}", "field": name}
        for kind, rule in kinds.items()
        for name in table.column_names
    ]
    native = validate(parse_quality_policy({"version": "1", "rules": rules}), table).rules

    found = SodaPlugin().execute_checks(table, asked(*rules)).checks

    for expected, check in zip(native, found, strict=True):
        if check.type == "not_null" or check.fields == ("kept",):
            assert (check.id, check.status, check.affected) == (
                expected.id,
                expected.status,
                expected.affected,
            )
        else:
            assert (check.id, check.status) == (expected.id, Status.ERROR)
