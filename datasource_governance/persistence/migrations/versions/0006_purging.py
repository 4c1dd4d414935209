"""Purging asks once for a statement, and not once for a payload, whether somebody disposed of it.

A session keeps the plan of what a function asks. One that was made while there were few
dispositions reads all of them each time, so destroying became slower with the square of what was
destroyed. What is asked here is planned each time that it is asked.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

# No table is new.
MUTABLE: dict[str, tuple[str, ...]] = {}

# As a constant of its plan the array is searched by hashes, where it is not looked up in an index.
UNDISPOSED = """
CREATE FUNCTION refuse_undisposed() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    tenants text[];
    subjects text[];
BEGIN
    EXECUTE format('SELECT array_agg(tenant), array_agg(%I) FROM gone', TG_ARGV[0])
        INTO tenants, subjects;
    IF EXISTS (
        SELECT * FROM unnest(tenants, subjects)
        EXCEPT SELECT d.tenant, d.subject FROM governance.disposition d
            WHERE d.kind = TG_ARGV[0] AND d.subject = ANY (subjects)) THEN
        RAISE EXCEPTION 'governance.% refuses %', TG_TABLE_NAME, TG_OP
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
"""

PURGEABLE = """
DROP TRIGGER append_only ON {kind}_payload;
CREATE TRIGGER append_only BEFORE UPDATE ON {kind}_payload
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER disposed_of AFTER DELETE ON {kind}_payload REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_undisposed('{kind}');
ALTER TABLE {kind}_payload ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE {kind}_payload ENABLE ALWAYS TRIGGER disposed_of;
"""

PURGE = """
DROP FUNCTION refuse_payload_change;
ALTER FUNCTION purge_payloads SET plan_cache_mode = force_custom_plan;
"""


def upgrade() -> None:
    """Change schema `governance` as the owner role that runs this."""
    op.execute("SET LOCAL search_path = governance")
    op.execute(UNDISPOSED)
    for kind in ("stage", "materialization"):
        op.execute(PURGEABLE.format(kind=kind))
    op.execute(PURGE)
