"""What every governed table gets: append-only triggers and row-level security, both forced.

Source: SPEC sections 13 and 17.
"""

from collections.abc import Collection

from alembic import op


def protect(table: str, mutable: Collection[str], application: str) -> None:
    """Let the application read, add and change `mutable` columns, of its own tenant only.

    The triggers also fire for replicas, and for the owner. `application` is a quoted role.
    """
    arguments = ", ".join(f"'{column}'" for column in mutable)
    own = "tenant = nullif(pg_catalog.current_setting('governance.tenant', true), '')"
    op.execute(
        f"""
        CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION refuse_change({arguments});
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER no_truncate;
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
        CREATE POLICY tenant ON {table} USING ({own}) WITH CHECK ({own});
        GRANT SELECT, INSERT ON {table} TO {application};
        """
    )
    if mutable:
        op.execute(f"GRANT UPDATE ({', '.join(mutable)}) ON {table} TO {application}")
