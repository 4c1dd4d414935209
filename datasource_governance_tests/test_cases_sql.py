"""The acceptance cases about SQL, and those of other sources that SQL can carry, on databases."""

import json

import pytest

from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance_tests import case_files
from datasource_governance_tests.cases import build
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres
from datasource_governance_tests.test_cases_validate import BAIT, matches, policy_of, previous_of


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        pairs = pairs_of(metafunc.config.getoption("cases"))
        ids = [f"{case.id}-{database}" for case, database in pairs]
        metafunc.parametrize(("case", "database"), pairs, ids=ids, indirect=["database"])


def pairs_of(folder):
    """Return each case with each database that can hold its table."""
    return [(case, database) for case in sql_cases(folder) for database in databases_of(case)]


def sql_cases(folder):
    cases = case_files.load_cases(folder, "validate")
    return [case for case in cases if is_sql(case.input["data"])]


def is_sql(data):
    return data["kind"] == "sql" or "sql" in data.get("carriers", ())


def databases_of(case):
    names = [column["name"].lower() for column in case.input["data"]["columns"]]
    # DuckDB does not tell columns apart by the case of their names.
    return ["postgres", "duckdb"] if len(set(names)) == len(names) else ["postgres"]


@pytest.fixture(scope="module")
def postgres(cluster):
    yield from new_postgres(cluster)


@pytest.fixture
def database(request, tmp_path):
    """The database of a test's parameter, which it may leave its table in."""
    if request.param == "duckdb":
        yield new_duckdb(tmp_path)
        return
    server = request.getfixturevalue("postgres")
    yield server
    server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def test_sql_case_gets_the_expected_answer(case, database, caplog):
    rows = read(case, database)
    assert rows.rows_numbered

    validation = PanderaEvaluator().validate(
        policy_of(case), TypedPayload(rows.table), previous_of(case)
    )

    assert any(matches(validation.document(), answer) for answer in case.answers), validation
    assert BAIT not in f"{json.dumps(validation.document(), allow_nan=False)}{caplog.text}"


def read(case, database):
    """Return the rows of a case; the key that a table of columns was given is not read."""
    data = case.input["data"]
    create, insert, rows = build.to_sql(data)
    database.load(create, insert, rows)
    found = database.table(data.get("table", "t"))
    if data["kind"] == "sql":
        return found
    return found._replace(table=found.table.drop_columns(["_row"]))


def test_packaged_cases_that_sql_carries_are_all_there():
    assert len(sql_cases(case_files.PACKAGED)) == 4 + 31
    assert len(pairs_of(case_files.PACKAGED)) == 2 * 35 - 1
