"""Databases that every test of SQL sources finds empty."""

import pytest

from datasource_governance_tests.sources.databases import new_duckdb, new_postgres


@pytest.fixture(scope="module")
def server(cluster):
    yield from new_postgres(cluster)


@pytest.fixture
def postgres(server):
    """A database without tables."""
    yield server
    server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


@pytest.fixture
def duckdb(tmp_path):
    """A database without tables."""
    return new_duckdb(tmp_path)


@pytest.fixture(params=["postgres", "duckdb"])
def database(request):
    return request.getfixturevalue(request.param)
