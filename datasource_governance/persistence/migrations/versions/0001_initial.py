"""The life cycle: actors, datasources, stages, decisions, materializations, outbox, evidence.

Every table carries the tenant in its key, has row-level security forced, and refuses UPDATE, DELETE
and TRUNCATE of what never changes, by privilege and by a trigger that also fires for replicas.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE actor (
    tenant text NOT NULL, id text NOT NULL, display_name text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id));

CREATE TABLE attestation (
    tenant text NOT NULL, id text NOT NULL, key_id text NOT NULL, actor text NOT NULL,
    action text NOT NULL, nonce text NOT NULL, claims bytea NOT NULL, signature bytea NOT NULL,
    stored_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, nonce));

CREATE TABLE actor_key (
    tenant text NOT NULL, id text NOT NULL, actor text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('actor', 'gateway')), public_key bytea NOT NULL,
    attestation_id text, created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE key_revocation (
    tenant text NOT NULL, key_id text NOT NULL, attestation_id text NOT NULL,
    revoked_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, key_id),
    FOREIGN KEY (tenant, key_id) REFERENCES actor_key,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE datasource (
    tenant text NOT NULL, id text NOT NULL CHECK (id ~ '^[a-z][a-z0-9_]{0,62}$'),
    kind text NOT NULL CHECK (kind IN ('static', 'cached', 'published')),
    created_at timestamptz NOT NULL,
    quality_policy_hash text, approval_policy_hash text, retention_policy_hash text,
    settings bytea NOT NULL, current_materialization text, revision bigint NOT NULL,
    PRIMARY KEY (tenant, id));

CREATE TABLE role_grant (
    tenant text NOT NULL, id text NOT NULL, actor text NOT NULL,
    role text NOT NULL CHECK (role IN
        ('viewer', 'steward', 'producer', 'approver', 'operator', 'administrator')),
    datasource text, attestation_id text, granted_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
CREATE INDEX role_grant_actor ON role_grant (tenant, actor);

CREATE TABLE grant_withdrawal (
    tenant text NOT NULL, grant_id text NOT NULL, attestation_id text NOT NULL,
    withdrawn_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, grant_id),
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE policy_version (
    tenant text NOT NULL, datasource text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('quality', 'approval', 'retention')),
    hash text NOT NULL, version text, document bytea NOT NULL, attestation_id text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, datasource, kind, hash),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE stage (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, creator text NOT NULL,
    attestation_id text, delivery text NOT NULL, delivery_sha256 text NOT NULL,
    schema bytea NOT NULL, payload_fingerprint text NOT NULL, payload_sha256 text NOT NULL,
    row_count bigint NOT NULL, byte_count bigint NOT NULL, base text,
    quality_policy_hash text NOT NULL, approval_policy_hash text,
    approval_required boolean NOT NULL, policy_source text NOT NULL,
    evaluator_version text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('blocked', 'review', 'ready')),
    validation bytea NOT NULL, validation_hash text NOT NULL, created_at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('failed', 'ready', 'awaiting_approval', 'rejected',
        'promoted', 'superseded', 'deleted')),
    PRIMARY KEY (tenant, id), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
CREATE INDEX stage_open ON stage (tenant, datasource, state)
    WHERE state IN ('ready', 'awaiting_approval');
CREATE INDEX stage_recent ON stage (tenant, datasource, created_at);

CREATE TABLE stage_payload (
    tenant text NOT NULL, stage text NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (tenant, stage),
    FOREIGN KEY (tenant, stage) REFERENCES stage);
ALTER TABLE stage_payload ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE TABLE decision (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, stage text NOT NULL,
    stage_fingerprint text NOT NULL, quality_policy_hash text NOT NULL,
    approval_policy_hash text, base text, actor text NOT NULL, grant_id text NOT NULL,
    verdict text NOT NULL CHECK (verdict IN ('approve', 'reject')),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    attestation_id text NOT NULL, decided_at timestamptz NOT NULL, expires_at timestamptz,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, stage) REFERENCES stage,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
CREATE INDEX decision_stage ON decision (tenant, stage);

CREATE TABLE materialization (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, stage text NOT NULL,
    revision bigint NOT NULL, schema bytea NOT NULL, payload_fingerprint text NOT NULL,
    payload_sha256 text NOT NULL, row_count bigint NOT NULL, byte_count bigint NOT NULL,
    provenance bytea NOT NULL, created_by text NOT NULL, created_at timestamptz NOT NULL,
    disposition text NOT NULL CHECK (disposition IN ('retained', 'purging', 'purged')),
    PRIMARY KEY (tenant, id), UNIQUE (tenant, stage), UNIQUE (tenant, datasource, revision),
    FOREIGN KEY (tenant, stage) REFERENCES stage,
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);

CREATE TABLE materialization_payload (
    tenant text NOT NULL, materialization text NOT NULL, payload bytea NOT NULL,
    PRIMARY KEY (tenant, materialization),
    FOREIGN KEY (tenant, materialization) REFERENCES materialization);
ALTER TABLE materialization_payload ALTER COLUMN payload SET STORAGE EXTERNAL;

ALTER TABLE datasource ADD FOREIGN KEY (tenant, current_materialization)
    REFERENCES materialization;

CREATE TABLE outbox (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, number bigint NOT NULL,
    type text NOT NULL, body bytea NOT NULL, created_at timestamptz NOT NULL,
    delivered_at timestamptz, attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, datasource, number),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);
CREATE INDEX outbox_pending ON outbox (tenant, datasource, number) WHERE delivered_at IS NULL;

CREATE TABLE evidence (
    tenant text NOT NULL, chain text NOT NULL, sequence bigint NOT NULL,
    previous_hash text NOT NULL, kind text NOT NULL, subject text NOT NULL,
    body bytea NOT NULL, at timestamptz NOT NULL, entry_hash text NOT NULL,
    PRIMARY KEY (tenant, chain, sequence));
CREATE INDEX evidence_subject ON evidence (tenant, chain, subject);

CREATE TABLE evidence_head (
    tenant text NOT NULL, chain text NOT NULL, sequence bigint NOT NULL,
    entry_hash text NOT NULL,
    PRIMARY KEY (tenant, chain));
"""

# What the application may change, and nothing else of any row.
MUTABLE = {
    "actor": (),
    "attestation": (),
    "actor_key": (),
    "key_revocation": (),
    "datasource": (
        "quality_policy_hash",
        "approval_policy_hash",
        "retention_policy_hash",
        "settings",
        "current_materialization",
        "revision",
    ),
    "role_grant": (),
    "grant_withdrawal": (),
    "policy_version": (),
    "stage": ("state",),
    "stage_payload": (),
    "decision": (),
    "materialization": ("disposition",),
    "materialization_payload": (),
    "outbox": ("delivered_at", "attempts"),
    "evidence": (),
    "evidence_head": ("sequence", "entry_hash"),
}

FUNCTIONS = """
CREATE FUNCTION now() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.clock_timestamp()';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
    after jsonb;
BEGIN
    IF TG_OP = 'UPDATE' AND TG_NARGS > 0 THEN
        before := pg_catalog.to_jsonb(OLD) - TG_ARGV;
        after := pg_catalog.to_jsonb(NEW) - TG_ARGV;
        IF before = after THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'governance.% refuses %', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
"""


def upgrade() -> None:
    """Create everything in schema `governance`, owned by the owner role that runs this."""
    application = context.config.attributes["application_role"]
    quoted = op.get_bind().dialect.identifier_preparer.quote(application)
    op.execute("SET LOCAL search_path = governance")
    op.execute(FUNCTIONS)
    op.execute(TABLES)
    op.execute(f"GRANT USAGE ON SCHEMA governance TO {quoted}")
    for table, mutable in MUTABLE.items():
        protect(table, mutable, quoted)
    op.execute(f"GRANT SELECT ON alembic_version TO {quoted}")
