"""Databases to read from: what a test runs in one, and how rows get in."""

from dataclasses import dataclass

from sqlalchemy import create_engine, make_url, text

from datasource_governance.sources.sql.read import SqlSource, read_sql
from datasource_governance_tests.postgres import admin_connection, drop_database, unique_name


@dataclass(frozen=True)
class Database:
    """An empty database, by its URL."""

    url: str

    def run(self, *statements):
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement.replace(":", r"\:")))
        engine.dispose()

    def load(self, create, insert, rows):
        """Make a table from statements with psycopg's `%s`, as the cases are written."""
        engine = create_engine(self.url)
        with engine.begin() as connection:
            driver = connection.connection.driver_connection
            is_duckdb = engine.dialect.name == "duckdb"
            run = driver.execute if is_duckdb else driver.cursor().execute
            run(create)
            for row in rows:
                run(insert.replace("%s", "?").replace("%%", "%") if is_duckdb else insert, row)
            if is_duckdb:
                driver.commit()
        engine.dispose()

    def query(self, query, *order_by, **options):
        return read_sql(SqlSource(self.url, query=query, order_by=order_by), **options)

    def table(self, name="t", **keys):
        return read_sql(SqlSource(self.url, table=name, **keys))

    def column(self, expression):
        """Return one column `x` of one or more rows, in the order in which they are written."""
        return self.query(expression).table.column("x")


def new_postgres(cluster):
    """Yield an empty database of a server."""
    name = unique_name("source")
    with admin_connection(cluster) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = make_url(cluster).set(drivername="postgresql+psycopg", database=name)
    yield Database(url.render_as_string(hide_password=False))
    with admin_connection(cluster) as connection:
        drop_database(connection, name)


def new_duckdb(folder):
    return Database(f"duckdb:///{folder / 'rows.duckdb'}")
