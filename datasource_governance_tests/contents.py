"""What is in the governance tables, told apart to the last byte."""

from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.world import World


def contents(world: World) -> dict[str, str]:
    """Return a digest of all rows of every table of schema `governance`, of all tenants."""
    with admin_connection(world.database.admin_url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'governance' ORDER BY 1"
        )
        digests = " UNION ALL ".join(
            f"SELECT '{name}', md5(string_agg(one::text, ';' ORDER BY one::text))"
            f" FROM governance.{name} AS one"
            for (name,) in tables
        )
        return dict(connection.execute(digests.encode()).fetchall())
