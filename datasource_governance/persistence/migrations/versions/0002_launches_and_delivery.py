"""Who launched which run; how far each receiver of events got; a role that only reads.

How far the delivery of an event got moves out of the outbox, whose rows never change from now on.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0002"
down_revision = "0001"

TABLES = """
CREATE TABLE run_attestation (
    tenant text NOT NULL, run_id text NOT NULL, attestation_id text NOT NULL,
    PRIMARY KEY (tenant, run_id), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE outbox_position (
    tenant text NOT NULL, receiver text NOT NULL, datasource text NOT NULL,
    delivered bigint NOT NULL, attempts integer NOT NULL, retry_at timestamptz,
    PRIMARY KEY (tenant, receiver, datasource),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);

CREATE TABLE dead_letter (
    tenant text NOT NULL, receiver text NOT NULL, event text NOT NULL,
    attempts integer NOT NULL, problem text NOT NULL, at timestamptz NOT NULL,
    accepted_at timestamptz,
    PRIMARY KEY (tenant, receiver, event),
    FOREIGN KEY (tenant, event) REFERENCES outbox);
CREATE INDEX dead_letter_left ON dead_letter (tenant, at) WHERE accepted_at IS NULL;
"""

# One launch can stage deliveries of several datasources.
STAGES = """
ALTER TABLE stage DROP CONSTRAINT stage_tenant_attestation_id_key;
ALTER TABLE stage ADD UNIQUE (tenant, attestation_id, datasource);
"""

# What the application may change, and nothing else of any row.
MUTABLE = {
    "run_attestation": (),
    "outbox": (),
    "outbox_position": ("delivered", "attempts", "retry_at"),
    "dead_letter": ("accepted_at",),
}

OUTBOX = """
DROP TRIGGER append_only ON outbox;
DROP INDEX outbox_pending;
ALTER TABLE outbox DROP COLUMN delivered_at, DROP COLUMN attempts;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON outbox
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
ALTER TABLE outbox ENABLE ALWAYS TRIGGER append_only;
"""

# Of a payload the digest. A view runs as the owner, who sees no more than the tenant's rows either.
DIGESTS = """
CREATE VIEW stage_payload_digest AS
    SELECT tenant, stage, encode(sha256(payload), 'hex') AS sha256 FROM stage_payload;
CREATE VIEW materialization_payload_digest AS
    SELECT tenant, materialization, encode(sha256(payload), 'hex') AS sha256
    FROM materialization_payload;
GRANT SELECT ON stage_payload_digest, materialization_payload_digest TO {application};
"""

# All that an auditor needs, and no payload.
READABLE = """
GRANT USAGE ON SCHEMA governance TO {reader};
GRANT SELECT ON ALL TABLES IN SCHEMA governance TO {reader};
REVOKE SELECT ON stage_payload, materialization_payload FROM {reader};
"""


def upgrade() -> None:
    """Change schema `governance` as the owner role that runs this."""
    quote = op.get_bind().dialect.identifier_preparer.quote
    application = quote(context.config.attributes["application_role"])
    op.execute("SET LOCAL search_path = governance")
    op.execute(OUTBOX)
    op.execute(TABLES)
    op.execute(STAGES)
    for table, mutable in MUTABLE.items():
        if table != "outbox":
            protect(table, mutable, application)
    op.execute(DIGESTS.format(application=application))
    op.execute(READABLE.format(reader=quote(context.config.attributes["reader_role"])))
