"""Runs the migrations on the connection that `persistence.upgrade` hands over, never on its own.

A migration finds the application's role, which it grants to, in
`context.config.attributes["application_role"]`. It runs as the owner role, inside the caller's
transaction, with the schema already there.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema="governance",
)
context.run_migrations()
