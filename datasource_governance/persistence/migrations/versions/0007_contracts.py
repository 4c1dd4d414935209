"""Contracts that are watched: when a check is due, every check that ran, violations.

Checks and violations are governed rows. When a check is due, and who is at it, is no evidence; nor
are the counts that metrics are made of.
"""

from alembic import context, op

from datasource_governance.persistence.migrations.protection import protect

revision = "0007"
down_revision = "0006"

TABLES = """
CREATE TABLE contract_check (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, contract text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('freshness', 'schema_drift', 'quality', 'availability')),
    planned_for timestamptz, started_at timestamptz NOT NULL, finished_at timestamptz NOT NULL,
    status text NOT NULL CHECK (status IN ('passed', 'failed', 'error')),
    severity text CHECK (severity IN ('info', 'warning', 'error', 'critical')),
    body bytea NOT NULL,
    PRIMARY KEY (tenant, id), UNIQUE (tenant, datasource, contract, kind, planned_for),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);
CREATE INDEX contract_check_recent
    ON contract_check (tenant, datasource, contract, kind, finished_at);
CREATE INDEX contract_check_day ON contract_check (tenant, finished_at);

CREATE TABLE contract_violation (
    tenant text NOT NULL, id text NOT NULL, datasource text NOT NULL, contract text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('freshness', 'schema_drift', 'quality', 'availability')),
    severity text NOT NULL CHECK (severity IN ('info', 'warning', 'error', 'critical')),
    enforcement text NOT NULL CHECK (enforcement IN ('warn', 'alert_only', 'block')),
    message text NOT NULL, opened_by text NOT NULL, opened_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, opened_by) REFERENCES contract_check,
    FOREIGN KEY (tenant, datasource) REFERENCES datasource);
CREATE INDEX contract_violation_recent ON contract_violation (tenant, opened_at);

CREATE TABLE violation_resolution (
    tenant text NOT NULL, violation text NOT NULL, resolved_by text,
    resolved_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, violation),
    FOREIGN KEY (tenant, violation) REFERENCES contract_violation,
    FOREIGN KEY (tenant, resolved_by) REFERENCES contract_check);

CREATE TABLE contract_watch (
    tenant text NOT NULL, datasource text NOT NULL, contract text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('freshness', 'schema_drift', 'quality', 'availability')),
    contract_hash text NOT NULL, interval_seconds integer NOT NULL CHECK (interval_seconds > 0),
    timeout_seconds integer NOT NULL CHECK (timeout_seconds > 0),
    next_due timestamptz, current text, claim text, claimed_until timestamptz,
    checks bigint NOT NULL DEFAULT 0, failures bigint NOT NULL DEFAULT 0,
    errors bigint NOT NULL DEFAULT 0, seconds double precision NOT NULL DEFAULT 0,
    durations bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}',
    consecutive_failures integer NOT NULL DEFAULT 0,
    last_status text, last_severity text, last_at timestamptz, last_used integer,
    last_score double precision, violation text,
    PRIMARY KEY (tenant, datasource, contract, kind),
    FOREIGN KEY (tenant, datasource) REFERENCES datasource,
    FOREIGN KEY (tenant, violation) REFERENCES contract_violation);
CREATE INDEX contract_watch_due ON contract_watch (tenant, next_due) WHERE next_due IS NOT NULL;
CREATE INDEX contract_watch_current ON contract_watch (tenant, datasource)
    WHERE current IS NOT NULL;
CREATE INDEX contract_watch_violation ON contract_watch (tenant, datasource)
    WHERE violation IS NOT NULL;
"""

# Whatever makes something current makes its checks due, in the same transaction.
CURRENT = """
CREATE FUNCTION check_contracts() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE governance.contract_watch w
        SET current = to_jsonb(NEW) ->> TG_ARGV[1]
        WHERE w.tenant = NEW.tenant AND w.datasource = to_jsonb(NEW) ->> TG_ARGV[0]
            AND w.next_due IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER current_moved AFTER UPDATE OF current_materialization ON datasource
    FOR EACH ROW WHEN (NEW.current_materialization IS DISTINCT FROM OLD.current_materialization)
    EXECUTE FUNCTION check_contracts('id', 'current_materialization');
CREATE TRIGGER current_moved AFTER INSERT OR UPDATE OF materialization ON current_partition
    FOR EACH ROW EXECUTE FUNCTION check_contracts('datasource', 'materialization');
ALTER TABLE datasource ENABLE ALWAYS TRIGGER current_moved;
ALTER TABLE current_partition ENABLE ALWAYS TRIGGER current_moved;
"""

POLICIES = """
ALTER TABLE policy_version DROP CONSTRAINT policy_version_kind_check;
ALTER TABLE policy_version ADD CONSTRAINT policy_version_kind_check
    CHECK (kind IN ('quality', 'approval', 'retention', 'supplied_quality', 'contract'));
"""

# What the application may change, and nothing else of any row.
MUTABLE = {
    "contract_check": (),
    "contract_violation": (),
    "violation_resolution": (),
    "contract_watch": (
        "contract_hash",
        "interval_seconds",
        "timeout_seconds",
        "next_due",
        "current",
        "claim",
        "claimed_until",
        "checks",
        "failures",
        "errors",
        "seconds",
        "durations",
        "consecutive_failures",
        "last_status",
        "last_severity",
        "last_at",
        "last_used",
        "last_score",
        "violation",
    ),
}


def upgrade() -> None:
    """Change schema `governance` as the owner role that runs this."""
    quote = op.get_bind().dialect.identifier_preparer.quote
    application = quote(context.config.attributes["application_role"])
    reader = quote(context.config.attributes["reader_role"])
    op.execute("SET LOCAL search_path = governance")
    op.execute(TABLES)
    op.execute(POLICIES)
    op.execute(CURRENT)
    for table, mutable in MUTABLE.items():
        protect(table, mutable, application)
        op.execute(f"GRANT SELECT ON {table} TO {reader}")
