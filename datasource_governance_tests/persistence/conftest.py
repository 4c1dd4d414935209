from datasource_governance_tests.postgres import (
    cluster,
    dagster_database,
    governance_database,
    template,
)

__all__ = ["cluster", "dagster_database", "governance_database", "template"]
