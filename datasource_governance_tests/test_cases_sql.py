"""The acceptance cases about SQL, and those of other sources that SQL can carry, on databases."""

import json
from dataclasses import dataclass

import pytest

from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.evaluation.streaming import validate_batches
from datasource_governance.sources.batches import Batches
from datasource_governance.sources.sql.read import SqlSource, sql_batches
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


def test_sql_case_gets_the_expected_answer_in_batches(case, database, caplog):
    source = SqlSource(database.url, table=load(case, database))

    with sql_batches(source, batch_bytes=1) as batches:
        validation = validate_batches(
            policy_of(case), Keyless(batches), previous_of(case), memory_bytes=1
        )

    assert any(matches(validation.document(), answer) for answer in case.answers), validation
    assert BAIT not in f"{json.dumps(validation.document(), allow_nan=False)}{caplog.text}"


@dataclass
class Keyless:
    """Batches without the key that a table of columns was given."""

    batches: Batches

    @property
    def rows_numbered(self):
        return self.batches.rows_numbered

    @property
    def schema(self):
        return keyless(self.batches.schema.empty_table()).schema

    def __iter__(self):
        return map(keyless, self.batches)


def read(case, database):
    found = database.table(load(case, database))
    return found._replace(table=keyless(found.table))


def load(case, database):
    """Fill the table of a case; return its name."""
    data = case.input["data"]
    database.load(*build.to_sql(data))
    return data.get("table", "t")


def keyless(table):
    return table.select([name for name in table.column_names if name != "_row"])


def test_packaged_cases_that_sql_carries_are_all_there():
    assert len(sql_cases(case_files.PACKAGED)) == 4 + 31
    assert len(pairs_of(case_files.PACKAGED)) == 2 * 35 - 1
