"""Contracts about tables outside the product, on real Postgres and DuckDB."""

from datetime import UTC, datetime

import pytest

from datasource_governance.domain.contract import CheckKind
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
TABLE = {"property": "table", "value": {"url_variable": "WAREHOUSE", "table": "Orders"}}
FIELDS = [
    {"name": "id", "logicalType": "integer", "primaryKey": True},
    {"name": "updated", "logicalType": "timestamp", "required": True},
]


@pytest.fixture(params=["postgres", "duckdb"])
def warehouse(request, tmp_path):
    if request.param == "postgres":
        yield from new_postgres(request.getfixturevalue("cluster"))
    else:
        yield new_duckdb(tmp_path)


@pytest.fixture
def watched(world, warehouse):
    """A contract about a table with two rows of an hour ago."""
    warehouse.run(
        'CREATE TABLE "Orders" (id integer, updated timestamp)',
        "INSERT INTO \"Orders\" SELECT x, now() - interval '1 hour'"
        " FROM generate_series(1, 2) AS one(x)",
    )
    contract = odcs(
        schema=[{"name": "Orders", "properties": FIELDS}],
        slaProperties=[
            {"property": "latency", "value": 24, "unit": "h", "element": "Orders.updated"}
        ],
        customProperties=[TABLE],
    )
    world.set_clock(NOW)
    world.declare(kind="published", contracts=[contract])
    return world


def check(world, warehouse):
    monitor = Monitor(
        application=world.application, environment={"WAREHOUSE": warehouse.url if warehouse else ""}
    )
    return {kind: monitor.check("orders", "orders", kind) for kind in CheckKind}


def test_all_that_is_promised_of_a_table_is_looked_at(watched, warehouse):
    found = check(watched, warehouse)

    assert {str(one.status) for one in found.values()} == {"passed"}
    assert found[CheckKind.FRESHNESS].finding.used == 4
    assert found[CheckKind.QUALITY].finding.score == 100
    assert {rule.id for rule in found[CheckKind.QUALITY].finding.rules} == {
        "updated.required",
        "primary_key.required",
        "primary_key.unique",
    }
    (dataset,) = {one.dataset for one in found.values()}
    assert dataset[1].endswith("Orders")
    assert "@" not in dataset[0]


def test_a_table_that_breaks_its_promises_is_found_out(watched, warehouse):
    warehouse.run(
        'ALTER TABLE "Orders" ADD COLUMN more integer',
        "INSERT INTO \"Orders\" VALUES (1, now() - interval '2 days', 7)",
        'DELETE FROM "Orders" WHERE more IS NULL AND id = 2',
        "UPDATE \"Orders\" SET updated = now() - interval '30 hours'",
    )
    found = check(watched, warehouse)

    assert found[CheckKind.FRESHNESS].severity == "error"
    assert [one.change for one in found[CheckKind.SCHEMA_DRIFT].finding.changes] == ["added"]
    quality = found[CheckKind.QUALITY]
    assert {rule.id: rule.affected for rule in quality.finding.rules}["primary_key.unique"] == 2
    assert quality.severity.is_breach


def test_a_table_that_is_gone_or_away_never_passes(watched, warehouse):
    warehouse.run('DROP TABLE "Orders"')
    gone, away = check(watched, warehouse), check(watched, None)

    assert [str(one.status) for one in gone.values()] == ["error", "error", "error", "failed"]
    assert gone[CheckKind.AVAILABILITY].finding.problem == "unreachable"
    assert {one.finding.problem for one in away.values()} == {"table_url_missing"}
    assert "passed" not in {str(one.status) for one in away.values()}
