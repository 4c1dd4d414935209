from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import make_url

from datasource_governance_tests.sources.databases import new_postgres


@pytest.fixture(scope="module")
def postgres_url(cluster):
    """The URL of an empty database of its own."""
    with contextmanager(new_postgres)(cluster) as database:
        yield database.url


@pytest.fixture(scope="module")
def postgres_url_connection(postgres_url):
    """A connection to it that commits each statement."""
    plain = make_url(postgres_url).set(drivername="postgresql")
    with psycopg.connect(plain.render_as_string(hide_password=False), autocommit=True) as opened:
        yield opened
