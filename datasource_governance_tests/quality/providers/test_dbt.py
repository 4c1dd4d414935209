"""dbt answers as the native evaluator does, and passes nothing it did not evaluate.

One run costs seconds, so a run has every rule that it can.
"""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.validation import Status
from datasource_governance.errors import PluginExecutionError
from datasource_governance.evaluation.evaluate import validate
from datasource_governance.quality.plugin import PluginConfiguration
from datasource_governance.quality.providers.dbt import DbtPlugin
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres

BEYOND = 2**53 + 1
"""The first whole number that a double cannot hold."""
ODD_NAME = 'o\'dd "{{ 1 }}" {% raw %} %s :a \\ é'
ODD_TEXT = "{{ 1 }} {% endraw %} {# 'it''s' \\ %s 😀"
COLUMNS = {
    "id": pa.array([BEYOND, BEYOND - 1, None, BEYOND, 1, None]),
    "ID": pa.array([1, 1, 1, 2, 3, 4], pa.int8()),
    "amount": pa.array([0.1, -0.0, 0.0, float("nan"), float("inf"), None]),
    "price": pa.array([Decimal("0.10"), Decimal("0.30"), None, None, 1, 0], pa.decimal128(9, 2)),
    "status": pa.array(["open", "Open", ODD_TEXT, None, "", "open"]),
    "paid": pa.array([True, False, None, True, None, False]),
    "day": pa.array([dt.date(2024, 2, 29), None, None, dt.date(9999, 12, 31), None, None]),
    "digits": pa.array([1, None, None, 2, 3, 4], pa.decimal256(60, 0)),
    ODD_NAME: pa.array([1, 1, None, 2, 3, 4]),
}
CODES = [True, 1, 0.1, BEYOND, "open", "1", ODD_TEXT]


def policy_of(names, **more):
    """Return a policy in which no two rules in a row are about the same field."""
    of_each = {
        "present": {"type": "not_null"},
        "single": {"type": "unique", "severity": "warning"},
        "single, nulls ignored": {"type": "unique", "ignore_nulls": True},
        "within": {"type": "range", "minimum": 0.1, "maximum": 2},
        "codes": {"type": "referential", "allowed_values": CODES, "allow_null": True},
    }
    rules = {
        f"{case}: {name}": {**rule, "field": name}
        for case, rule in of_each.items()
        for name in names
    }
    rules |= {
        "too few": {"type": "row_count", "minimum": 7},
        "as many": {"type": "row_count", "minimum": 6, "maximum": 6},
        "missing": {"type": "not_null", "fields": [names[0], "nowhere"]},
        "rows, not cells": {"type": "not_null", "fields": names},
        "key": {"type": "unique", "fields": names[:2]},
        **more,
    }
    document = [{"id": key, **rule} for key, rule in rules.items()]
    return parse_quality_policy({"version": "v1", "rules": document})


def checked(policy, data):
    return DbtPlugin().execute_checks(data, expectations(policy)).checks


def verdicts(outcomes):
    return [(one.id, one.status, one.affected, one.reason, one.fields) for one in outcomes]


@pytest.mark.slow
def test_frames_have_the_native_counts_but_for_values_that_duckdb_does_not_keep():
    table = pa.table(COLUMNS)
    names = [name for name in COLUMNS if name != "digits"]
    nulls, digits = ({"type": kind, "field": "digits"} for kind in ("not_null", "unique"))

    *found, unkept = checked(policy_of(names, nulls=nulls, digits=digits), table)

    assert verdicts(found) == verdicts(validate(policy_of(names, nulls=nulls), table).rules)
    assert unkept.status is Status.ERROR


NAMES = ["id", "amount", "price", "status", "paid", "o'dd \"{{ 1 }}"]
STATEMENTS = (
    'CREATE SCHEMA "a.{{ b"',
    """CREATE TABLE "a.{{ b".t
    (id bigint, amount float8, price numeric(9, 2), status text, paid boolean,
    "o'dd ""{{ 1 }}" integer)""",
    """INSERT INTO "a.{{ b".t VALUES
    (9007199254740993, 0.1, 0.10, 'open', true, 1),
    (9007199254740992, '-0', 0.30, 'Open', false, 1),
    (null, 0, null, '{{ 1 }} {% endraw %} {# ''it''''s'' \\ %s 😀', null, null),
    (9007199254740993, 'NaN', null, null, true, 2), (1, 'inf', 1, '', null, 3),
    (null, null, 0, 'open', false, 4)""",
    """CREATE VIEW "a.{{ b".v AS
    SELECT *, CAST(status AS integer) AS impossible FROM "a.{{ b".t""",
)


def check_view(database, names):
    """Check a view that cannot be read in one column, whose rule alone is void."""
    database.run(*STATEMENTS)
    table, view = (SqlSource(database.url, table=name, schema="a.{{ b") for name in "tv")
    rule = {"type": "range", "field": "impossible", "minimum": 0}

    *found, impossible = checked(policy_of(names, impossible=rule), view)

    assert verdicts(found) == verdicts(validate(policy_of(names), table).rules)
    assert impossible.status is Status.ERROR


@pytest.fixture(scope="module")
def server(cluster):
    yield from new_postgres(cluster)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_tables_have_the_native_counts_and_a_test_that_fails_voids_its_rule_only(server):
    check_view(server, NAMES)


@pytest.mark.slow
def test_duckdb_tables_have_the_native_counts_and_a_test_that_fails_voids_its_rule_only(tmp_path):
    check_view(new_duckdb(tmp_path), NAMES[-2:])


def with_executable(path):
    return DbtPlugin(PluginConfiguration(options={"executable": str(path)}))


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def test_another_dbt_tells_its_own_version(tmp_path):
    told = "echo Core:; echo '  - installed: 1.10.3rc1'; echo '  - latest:    9.9.9'"

    assert with_executable(script(tmp_path / "dbt", told)).version == "1.10.3rc1"


@pytest.mark.parametrize("text", ["echo dbt-fusion", "exit 3"])
def test_what_tells_no_version_is_no_dbt(tmp_path, text):
    with pytest.raises(PluginExecutionError) as refused:
        _ = with_executable(script(tmp_path / "dbt", text)).version

    assert refused.value.code == "provider_not_installed"


def test_a_dbt_that_is_not_there_is_not_installed(tmp_path):
    with pytest.raises(PluginExecutionError) as refused:
        _ = with_executable(tmp_path / "dbt").version

    assert refused.value.code == "provider_not_installed"
    assert refused.value.__context__ is None


def test_a_dbt_that_runs_no_tests_has_failed(tmp_path):
    broken = script(tmp_path / "dbt", '[ "$1" = --version ] && echo installed: 1.11.0 || exit 2')
    policy = parse_quality_policy(
        {"version": "v1", "rules": [{"id": "r", "type": "row_count", "minimum": 1}]}
    )

    with pytest.raises(PluginExecutionError) as refused:
        with_executable(broken).execute_checks(pa.table({"a": [1]}), expectations(policy))

    assert refused.value.code == "provider_failed"


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        ({}, []),
        ({"executable": "/opt/dbt/bin/dbt"}, []),
        ({"executable": "dbt"}, ["invalid_value"]),
        ({"executable": 1, "other": 1}, ["unknown_option", "invalid_value"]),
    ],
)
def test_the_one_option_is_an_absolute_path(options, problems):
    assert [problem.kind for problem in DbtPlugin().validate_options(options)] == problems
