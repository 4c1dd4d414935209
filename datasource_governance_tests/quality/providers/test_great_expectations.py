"""Great Expectations answers as the native evaluator does, and passes nothing it did not evaluate.

One run costs seconds, so a run has every rule that it can.
"""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import make_url

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.validation import Status
from datasource_governance.evaluation.evaluate import validate
from datasource_governance.quality.providers import great_expectations
from datasource_governance.quality.providers.great_expectations import GreatExpectationsPlugin
from datasource_governance.quality.targets import SqlTarget
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.sources.databases import new_postgres

BEYOND = 2**53 + 1
"""The first whole number that a double cannot hold."""
CODES = [True, 1, 0.1, BEYOND, 2**64 - 1, "1", "a", "", "\u00e9", "nan"]
ODD_NAME = "wei\"rd {x} {{y}} $z ${HOME} :k %s \\ '"
# Each column holds what one way of comparing gets wrong.
COLUMNS = {
    "whole": pa.array([BEYOND, BEYOND - 1, None, BEYOND, 1, None]),
    "small": pa.array([1, 2, None, 1, 0, None], pa.int8()),
    "none_null": pa.array([1, 2, 3, 4, 5, 5], pa.int32()),
    "unsigned": pa.array([2**64 - 1, 2**64 - 2, None, 2**64 - 1, 1, 0], pa.uint64()),
    "decimal": pa.array(
        [Decimal("9" * 37), Decimal("9" * 36), None, None, 1, 0], pa.decimal128(38)
    ),
    "cents": pa.array([Decimal("0.10"), Decimal("0.30"), None, None, 1, 0], pa.decimal128(9, 2)),
    "double": pa.array([0.1, -0.0, 0.0, float("nan"), float("inf"), None]),
    "single": pa.array([0.1, 0.2, None, 1, 16777216, 0.1], pa.float32()),
    "boolean": pa.array([True, False, None, True, None, False]),
    "text": pa.array(["a", "A", "1", None, "", "e\u0301"]),
    "date": pa.array([dt.date(1, 1, 1), None, None, dt.date(9999, 12, 31), None, None]),
    "bytes": pa.array([b"1", b"1", None, b"", b"\0", b"a"]),
    "list": pa.array([[1], [1], None, [], [None], None]),
    "untyped": pa.nulls(6),
    ODD_NAME: pa.array([1, 1, None, 2, 3, 4]),
}
MIXTURE = pd.Series([1, True, "1", 1.0, None, BEYOND], dtype=object)


def table():
    typed = from_data(pa.table(COLUMNS))
    mixed = from_data(pd.DataFrame({"mixture": MIXTURE}))
    return typed.append_column(mixed.schema.field(0), mixed.column(0))


def rules_of(name):
    """Return rules of every type about a field, by name of the case and of the field."""
    asked = {
        "present": {"type": "not_null", "field": name},
        "single": {"type": "unique", "field": name},
        "single, nulls ignored": {"type": "unique", "field": name, "ignore_nulls": True},
        "key": {"type": "unique", "fields": [name, "key"]},
        "key, nulls ignored": {"type": "unique", "fields": ["key", name], "ignore_nulls": True},
        "within": {"type": "range", "field": name, "minimum": 0.1, "maximum": 2},
        "beyond": {"type": "range", "field": name, "minimum": BEYOND, "allow_null": True},
        "codes": {"type": "referential", "field": name, "allowed_values": CODES},
        "no code": {
            "type": "referential",
            "field": name,
            "allowed_values": ["of no field"],
            "allow_null": True,
        },
    }
    return {f"{case}: {name}": rule for case, rule in asked.items()}


def policy_of(names, **more):
    """Return a policy about fields, in which no two rules in a row are about the same one."""
    by_name = [rules_of(name) for name in names]
    rules = {
        key: rule
        for same_case in zip(*map(dict.items, by_name), strict=True)
        for key, rule in same_case
    }
    rules |= {
        "too few": {"type": "row_count", "minimum": 7},
        "as many": {"type": "row_count", "minimum": 6, "maximum": 6},
        "missing": {"type": "not_null", "fields": ["key", "nowhere"]},
        "rows, not cells": {"type": "not_null", "fields": [*names, "key"]},
        **more,
    }
    document = [{"id": key, **rule} for key, rule in rules.items()]
    return parse_quality_policy({"version": "v1", "rules": document})


def checked(policy, data):
    return GreatExpectationsPlugin().execute_checks(data, expectations(policy)).checks


def verdicts(outcomes):
    return [(one.id, one.status, one.affected, one.reason) for one in outcomes]


def test_frames_have_the_outcomes_of_the_native_evaluator_row_for_row():
    rows = table().append_column("key", pa.array([1, 1, 1, 1, None, None]))
    policy = policy_of(table().column_names)

    assert checked(policy, rows) == validate(policy, rows).rules


@pytest.fixture(scope="module")
def server(cluster):
    yield from new_postgres(cluster)


def test_postgres_tables_have_the_native_counts_and_a_query_that_fails_voids_its_rule_only(server):
    odd = ODD_NAME.replace('"', '""')
    server.run(
        'CREATE SCHEMA "a.b"',
        f'CREATE TABLE "a.b"."{odd}" (whole bigint, text text, number float8, key int, '
        f'"{odd}" int)',
        f'INSERT INTO "a.b"."{odd}" VALUES '
        "(9007199254740993, 'a', 0.1, 1, 1), (9007199254740992, 'A', 'NaN', 1, 1), "
        "(9007199254740993, 'a', -0.0, 1, NULL), (NULL, '1', 0, NULL, 2), "
        "(1, NULL, 'Infinity', NULL, 3), (NULL, 'e\u0301', NULL, 2, 4)",
        f'CREATE VIEW "a.b".v AS SELECT *, 1 / (key - key) AS impossible FROM "a.b"."{odd}"',
    )
    names = ["whole", "text", "number", ODD_NAME]
    policy = policy_of(names)
    broken = policy_of(names, impossible={"type": "range", "field": "impossible", "minimum": 0})

    *found, impossible = checked(broken, SqlSource(server.url, table="v", schema="a.b"))

    native = validate(policy, SqlSource(server.url, table=ODD_NAME, schema="a.b")).rules
    assert verdicts(found) == verdicts(native)
    assert impossible.status is Status.ERROR


def test_a_connection_writes_nothing_gives_up_in_time_and_keeps_its_own_options():
    given = "postgresql+psycopg://me:p$w${HOME}@host/db?options=-c+jit%3Doff"
    target = SqlTarget(
        url=given, dialect="postgresql", table="t", schema=None, columns=None, timeout_seconds=3
    )

    address = great_expectations._address(target)

    assert "$" not in address
    assert make_url(address).password == make_url(given).password
    assert make_url(address).query["options"] == (
        "-c jit=off -c default_transaction_read_only=on -c statement_timeout=3000"
    )
