"""Retention plans and what they destroyed, legal holds, frozen evidence, and the only way to purge.

Payloads are the only rows that can ever be deleted, and only where a disposition names them. The
application cannot delete: it has to become a role that may do no more than call one function, which
looks itself whether anything is current or held.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0004"
down_revision = "0003"

# A disposition is written before the application that it is part of, which is looked at last.
TABLES = """
CREATE TABLE retention_plan (
    tenant text NOT NULL, hash text NOT NULL, datasource text, as_of timestamptz NOT NULL,
    body bytea NOT NULL, planned_by text NOT NULL, created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, hash),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, planned_by) REFERENCES actor);
CREATE INDEX retention_plan_recent ON retention_plan (tenant, created_at);

CREATE TABLE retention_application (
    tenant text NOT NULL, plan text NOT NULL, actor text NOT NULL, attestation_id text NOT NULL,
    run_id text, targets text NOT NULL, applied_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, plan), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, plan) REFERENCES retention_plan,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE disposition (
    tenant text NOT NULL, kind text NOT NULL CHECK (kind IN ('stage', 'materialization')),
    subject text NOT NULL, plan text NOT NULL, datasource text NOT NULL,
    retention_class text NOT NULL
        CHECK (retention_class IN ('stage', 'materialization', 'frozen_evidence')),
    action text NOT NULL CHECK (action IN ('delete', 'purge')),
    state_before text NOT NULL, disposed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, kind, subject),
    FOREIGN KEY (tenant, plan) REFERENCES retention_application DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);
CREATE INDEX disposition_plan ON disposition (tenant, plan);

CREATE TABLE legal_hold (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('datasource', 'stage', 'materialization')),
    subject text NOT NULL, reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    actor text NOT NULL, grant_id text NOT NULL, attestation_id text NOT NULL,
    placed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, attestation_id),
    CHECK (scope <> 'datasource' OR subject = datasource),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
CREATE INDEX legal_hold_datasource ON legal_hold (tenant, datasource);

CREATE TABLE hold_release (
    tenant text NOT NULL, hold text NOT NULL, actor text NOT NULL, grant_id text NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    attestation_id text NOT NULL, released_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, hold), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, hold) REFERENCES legal_hold,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);

CREATE TABLE frozen_evidence (
    tenant text NOT NULL, materialization text NOT NULL, datasource text NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 2000),
    actor text NOT NULL, grant_id text NOT NULL, attestation_id text NOT NULL,
    frozen_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, materialization), UNIQUE (tenant, attestation_id),
    FOREIGN KEY (tenant, materialization) REFERENCES materialization,
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, actor) REFERENCES actor,
    FOREIGN KEY (tenant, grant_id) REFERENCES role_grant,
    FOREIGN KEY (tenant, attestation_id) REFERENCES attestation);
"""

# What can still be destroyed, so that a plan costs what is due and not all that ever was; and what
# refers to an object.
INDEXES = """
CREATE INDEX stage_left ON stage (tenant, datasource, created_at) WHERE state <> 'deleted';
CREATE INDEX materialization_left ON materialization (tenant, datasource, created_at)
    WHERE disposition = 'retained';
CREATE FUNCTION locator(artifact bytea) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT pg_catalog.convert_from(artifact, 'UTF8')::pg_catalog.json ->> 'locator' $$;
CREATE INDEX materialization_artifact ON materialization (tenant, locator(artifact))
    WHERE artifact IS NOT NULL;
"""

# What the application may change, and nothing else of any row.
MUTABLE = {
    "retention_plan": (),
    "retention_application": (),
    "disposition": (),
    "legal_hold": (),
    "hold_release": (),
    "frozen_evidence": (),
}

PAYLOADS = """
CREATE FUNCTION refuse_payload_change() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone text;
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF TG_ARGV[0] = 'stage' THEN
            gone := OLD.stage;
        ELSE
            gone := OLD.materialization;
        END IF;
        IF EXISTS (SELECT FROM governance.disposition d
                   WHERE d.tenant = OLD.tenant AND d.kind = TG_ARGV[0] AND d.subject = gone) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'governance.% refuses %', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
"""

PURGEABLE = """
DROP TRIGGER append_only ON {kind}_payload;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {kind}_payload
    FOR EACH ROW EXECUTE FUNCTION refuse_payload_change('{kind}');
ALTER TABLE {kind}_payload ENABLE ALWAYS TRIGGER append_only;
"""

# Row-level security binds the owner, too, so it sees the session's tenant only.
PURGE = """
CREATE FUNCTION purge_payloads(of_kind text, subjects text[]) RETURNS bigint LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    allowed bigint;
    purged bigint;
BEGIN
    -- Whoever places a hold or moves what is current locks the same rows.
    PERFORM FROM governance.datasource s WHERE s.id IN (
        SELECT d.datasource FROM governance.disposition d
        WHERE d.kind = of_kind AND d.subject = ANY (subjects))
    ORDER BY s.id FOR UPDATE;
    SELECT count(*) INTO allowed FROM governance.disposition d
    WHERE d.kind = of_kind AND d.subject = ANY (subjects)
        AND NOT EXISTS (SELECT FROM governance.datasource s
            WHERE s.tenant = d.tenant AND s.id = d.datasource
                AND s.current_materialization = d.subject)
        AND NOT EXISTS (SELECT FROM governance.current_partition p
            WHERE p.tenant = d.tenant AND p.datasource = d.datasource
                AND p.materialization = d.subject)
        AND NOT EXISTS (SELECT FROM governance.legal_hold h
            WHERE h.tenant = d.tenant AND h.datasource = d.datasource
                AND (h.scope, h.subject) IN (('datasource', d.datasource), (d.kind, d.subject))
                AND NOT EXISTS (SELECT FROM governance.hold_release r
                    WHERE r.tenant = h.tenant AND r.hold = h.id));
    IF allowed <> (SELECT count(DISTINCT one) FROM unnest(subjects) one) THEN
        RAISE EXCEPTION 'governance.purge_payloads refuses what is not disposed of, current or held'
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF of_kind = 'stage' THEN
        DELETE FROM governance.stage_payload p WHERE p.stage = ANY (subjects);
    ELSE
        DELETE FROM governance.materialization_payload p WHERE p.materialization = ANY (subjects);
    END IF;
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END $$;
REVOKE EXECUTE ON FUNCTION purge_payloads FROM PUBLIC;
GRANT USAGE ON SCHEMA governance TO {retention};
GRANT EXECUTE ON FUNCTION purge_payloads TO {retention};
CREATE FUNCTION retention_role() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT {name} $$;
"""


def upgrade() -> None:
    """Change schema `governance` as the owner role that runs this."""
    attributes = context.config.attributes
    quote = op.get_bind().dialect.identifier_preparer.quote
    application, reader = quote(attributes["application_role"]), quote(attributes["reader_role"])
    retention = attributes["retention_role"]
    op.execute("SET LOCAL search_path = governance")
    op.execute(TABLES)
    op.execute(INDEXES)
    for table, mutable in MUTABLE.items():
        protect(table, mutable, application)
        op.execute(f"GRANT SELECT ON {table} TO {reader}")
    op.execute(PAYLOADS)
    for kind in ("stage", "materialization"):
        op.execute(PURGEABLE.format(kind=kind))
    op.execute(PURGE.format(retention=quote(retention), name=f"'{retention}'"))
