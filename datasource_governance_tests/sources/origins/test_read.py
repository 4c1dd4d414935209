"""Every kind of origin through the reader that services have, with a real Postgres."""

import pytest

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import (
    AddressOrigin,
    PythonOrigin,
    SqlOrigin,
    origin_hash,
)
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.origins import DeclaredOrigin
from datasource_governance_tests.sources.databases import new_postgres
from datasource_governance_tests.sources.origins import told
from datasource_governance_tests.sources.refusals import CANARY, refusal_of

CSV = CsvOptions()
VARIABLE = "CRM_DATABASE"


@pytest.fixture(scope="module")
def server(cluster):
    yield from new_postgres(cluster)


def declared(origin, **environment):
    return DeclaredOrigin(origin=origin, csv=CSV, environment=environment)


def queried(server, query, *order_by):
    origin = SqlOrigin(url_variable=VARIABLE, query=query, order_by=order_by)
    return declared(origin, **{VARIABLE: server.url})


@pytest.mark.postgres
@pytest.mark.parametrize(("order_by", "rows_numbered"), [((), False), (("a",), True)])
def test_a_query_is_run_each_time_and_has_no_version(server, order_by, rows_numbered):
    origin = queried(server, "SELECT * FROM (VALUES (1), (2)) AS t (a)", *order_by)

    reading = origin.read()

    assert reading.payload.table.to_pylist() == [{"a": 1}, {"a": 2}]
    assert reading.payload.rows_numbered is rows_numbered
    assert (reading.name, reading.version) == ("query", None)
    assert origin.read_unless("v1").sha256 == reading.sha256


@pytest.mark.postgres
@pytest.mark.parametrize(
    "query", [f"SELECT CAST('{CANARY}' AS int)", f'SELECT * FROM "{CANARY}"', "DELETE FROM t"]
)
def test_a_query_that_fails_tells_its_state_alone(server, query):
    (problem,) = refusal_of(queried(server, query).read)

    assert problem.kind == "unreadable"


@pytest.mark.parametrize("environment", [{}, {VARIABLE: ""}])
def test_a_database_whose_variable_is_not_set_is_refused_by_its_name(environment):
    origin = declared(SqlOrigin(url_variable=VARIABLE, query="SELECT 1"), **environment)

    with pytest.raises(InvalidArgumentError, match=VARIABLE):
        origin.read()


def test_an_address_and_a_function_are_asked_for_changes_only(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    for origin in (
        declared(AddressOrigin(url=f"file://{tmp_path / 'rows.csv'}")),
        declared(PythonOrigin(function=f"{told.__name__}:conditional")),
    ):
        reading = origin.read()
        assert origin.read_unless(reading.version) is None
        assert origin.read_unless("another").sha256 == reading.sha256


def test_an_origin_that_says_nothing_changed_when_first_asked_is_refused():
    origin = declared(PythonOrigin(function=f"{told.__name__}:unchanged"))

    (problem,) = refusal_of(origin.read)

    assert problem.kind == "unreadable"


def test_no_representation_of_an_origin_shows_a_query_or_a_variable():
    origin = declared(SqlOrigin(url_variable=VARIABLE, query=CANARY), **{VARIABLE: CANARY})

    assert CANARY not in repr(origin)


def test_a_definition_is_the_hash_of_what_is_read_and_how():
    address = AddressOrigin(url="memory://rows.csv")
    others = [
        (AddressOrigin(url="memory://other.csv"), CSV),
        (SqlOrigin(url_variable=VARIABLE, query="SELECT 1"), CSV),
        (address, CsvOptions(delimiter=";")),
    ]

    assert declared(address).definition == origin_hash(address, CSV)
    assert len({origin_hash(*other) for other in [(address, CSV), *others]}) == 4
