"""Publications: outputs of producers, partitions, and payloads that an artifact backend keeps.

Columns that are added may be null and are, for every row that is there, so what evidence committed
to of those rows still holds: a null in them counts as no column.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0003"
down_revision = "0002"

# A publication and its materialization name each other: whoever writes one by one, as a restore
# does, has one of them looked at last.
TABLES = """
CREATE TABLE publication (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, producer text NOT NULL,
    idempotency_key text NOT NULL, partition text CHECK (partition <> ''),
    request_hash text NOT NULL,
    state text NOT NULL CHECK (state IN
        ('published', 'published_with_warnings', 'review_required')),
    materialization text NOT NULL, validation bytea NOT NULL, validation_hash text NOT NULL,
    evidence bytea, quality_policy_hash text NOT NULL,
    policy_source text NOT NULL CHECK (policy_source IN ('inherited', 'supplied')),
    actor text NOT NULL, grant_id text NOT NULL, attestation_id text, run_id text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, producer, idempotency_key),
    UNIQUE (tenant, materialization),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, materialization) REFERENCES materialization
        DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
CREATE INDEX publication_recent ON publication (tenant, datasource, created_at);
CREATE UNIQUE INDEX publication_attested ON publication
    (tenant, attestation_id, datasource, partition) NULLS NOT DISTINCT
    WHERE attestation_id IS NOT NULL;

CREATE TABLE current_partition (
    tenant text NOT NULL, datasource text NOT NULL,
    partition text NOT NULL CHECK (partition <> ''),
    materialization text NOT NULL, revision bigint NOT NULL,
    PRIMARY KEY (tenant, datasource, partition),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, materialization) REFERENCES materialization);
"""

# What is in force has a revision; what waits for a review has none.
CHANGES = """
ALTER TABLE materialization
    ALTER COLUMN stage DROP NOT NULL, ALTER COLUMN revision DROP NOT NULL,
    ADD COLUMN publication text, ADD COLUMN partition text CHECK (partition <> ''),
    ADD COLUMN artifact bytea,
    ADD CHECK (num_nonnulls(stage, publication) = 1),
    ADD CHECK (stage IS NULL OR revision IS NOT NULL),
    ADD UNIQUE (tenant, publication),
    ADD FOREIGN KEY (tenant, publication) REFERENCES publication;
ALTER TABLE stage
    ADD COLUMN publication text, ADD COLUMN partition text CHECK (partition <> ''),
    ADD COLUMN artifact bytea,
    ADD UNIQUE (tenant, publication),
    ADD FOREIGN KEY (tenant, publication) REFERENCES publication;
ALTER TABLE policy_version
    ALTER COLUMN attestation_id DROP NOT NULL,
    DROP CONSTRAINT policy_version_kind_check,
    ADD CONSTRAINT policy_version_kind_check
        CHECK (kind IN ('quality', 'approval', 'retention', 'supplied_quality')),
    ADD CHECK (attestation_id IS NOT NULL OR kind = 'supplied_quality');
"""

# What the application may change, and nothing else of any row.
MUTABLE = {
    "publication": (),
    "current_partition": ("materialization", "revision"),
}


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
