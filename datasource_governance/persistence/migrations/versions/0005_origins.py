"""Stages that a refresh made say of which origin they are, and what that calls the version read.

The column may be null and is, for every row that is there: a null in it counts as no column, so
what evidence committed to of those rows still holds. The version is the origin's own word, which
is handed back to it: apart from the stage, because a stage is exported.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0005"
down_revision = "0004"

TABLES = """
CREATE TABLE origin_version (
    tenant text NOT NULL, stage text NOT NULL,
    version text NOT NULL CHECK (length(version) BETWEEN 1 AND 1000),
    PRIMARY KEY (tenant, stage),
    FOREIGN KEY (tenant, stage) REFERENCES stage);
"""

CHANGES = """
ALTER TABLE stage ADD COLUMN origin text;
CREATE INDEX stage_read ON stage (tenant, datasource, origin, created_at) WHERE origin IS NOT NULL;
"""

# What the application may change, and nothing else of any row.
MUTABLE = {"origin_version": ()}


def upgrade() -> None:
    """Change schema `governance` as the owner role that runs this."""
    quote = op.get_bind().dialect.identifier_preparer.quote
    application = quote(context.config.attributes["application_role"])
    reader = quote(context.config.attributes["reader_role"])
    op.execute("SET LOCAL search_path = governance")
    op.execute(TABLES)
    op.execute(CHANGES)
    for table, mutable in MUTABLE.items():
        protect(table, mutable, application)
        op.execute(f"GRANT SELECT ON {table} TO {reader}")
