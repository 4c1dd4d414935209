"""What the database itself allows to be destroyed, to whom, and what is left of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.retention import Action, RetentionClass, TargetKind
from datasource_governance.domain.retention_plan import PlannedTarget
from datasource_governance.errors import GovernanceError, GuardError, ServiceUnavailableError
from datasource_governance.persistence import candidates
from datasource_governance.persistence import connection as border
from datasource_governance.persistence.statements import prepared
from datasource_governance.persistence.tables import metadata
from datasource_governance_tests.postgres import admin_connection, cloned_governance
from datasource_governance_tests.retiring import (
    LONG_AGO,
    NOW,
    admit_keeper,
    apply_plan,
    declare_kept,
    hold,
    plan_now,
    publish_at,
    release,
    stage_at,
)
from datasource_governance_tests.world import World, copied_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

NOT_PERMITTED = "42501"
RESTRICTED = "23001"
PURGE = "SELECT governance.purge_payloads(%s, %s)"
DISPOSE = """
INSERT INTO governance.disposition (tenant, kind, subject, plan, datasource, retention_class,
    action, state_before, disposed_at)
VALUES ('default', %s, %s, 'a plan', %s, 'stage', 'delete', 'ready', now())
"""


@pytest.fixture(scope="module")
def keepers(shared_world: World) -> World:
    admit_keeper(shared_world)
    return shared_world


@pytest.fixture
def kept(keepers: World, own_corner: World) -> World:
    """A datasource of its own with a retention policy and nothing in it."""
    declare_kept(own_corner)
    return own_corner


@contextmanager
def session(world: World, who: str = "application") -> Iterator[psycopg.Connection]:
    """A transaction of the application, the owner or a superuser, which is never committed."""
    database = world.database
    url = database.application_url if who == "application" else database.admin_url
    with admin_connection(url) as connection, connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL governance.tenant = 'default'")
        if who == "owner":
            connection.execute(f"SET LOCAL ROLE {database.owner_role}")
        yield connection


def become_purger(connection: psycopg.Connection) -> None:
    connection.execute("SELECT set_config('role', governance.retention_role(), true)")


def purged(world: World, kind: str, *subjects: str, disposed: bool = True) -> int | str:
    """Return how many payloads the database would purge for the application, or the SQLSTATE."""
    with session(world) as connection:
        for subject in subjects if disposed else ():
            connection.execute(DISPOSE, (kind, subject, world.datasource))
        become_purger(connection)
        try:
            with connection.transaction():
                return connection.execute(PURGE, (kind, list(subjects))).fetchone()[0]
        except psycopg.Error as error:
            return error.sqlstate


def made(world: World, count: int = 2) -> list[str]:
    """Promote stages and return the materializations, the last of which is current."""
    return [world.promote(stage_at(world)).materialization.id for _ in range(count)]


# Who may purge, and what


def test_the_purge_runs_as_the_owner_with_its_own_path_and_for_one_role_alone(
    shared_world: World,
) -> None:
    found = shared_world.query(
        "SELECT proowner::regrole::text, prosecdef, proconfig, array("
        "  SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END"
        "  FROM aclexplode(proacl) ORDER BY 1)"
        " FROM pg_proc WHERE oid = 'governance.purge_payloads'::regproc"
    )

    database = shared_world.database
    may = sorted([database.owner_role, database.retention_role])
    settings = ["search_path=pg_catalog, pg_temp", "plan_cache_mode=force_custom_plan"]
    assert found == [(database.owner_role, True, settings, may)]


def test_the_purge_is_the_only_function_that_runs_as_somebody_else(shared_world: World) -> None:
    found = shared_world.query(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'governance'::regnamespace AND prosecdef"
    )

    assert found == [("purge_payloads",)]


def test_the_role_that_purges_has_no_other_right_and_nobody_is_it_without_saying_so(
    shared_world: World,
) -> None:
    database = shared_world.database
    role = database.retention_role

    rights = shared_world.query(
        "SELECT table_name FROM information_schema.table_privileges"
        f" WHERE grantee = '{role}' UNION SELECT column_name FROM"
        f" information_schema.column_privileges WHERE grantee = '{role}'"
    )
    members = shared_world.query(
        "SELECT m.member::regrole::text, r.rolcanlogin,"
        f" pg_has_role(m.member, '{role}', 'USAGE'), pg_has_role(m.member, '{role}', 'MEMBER')"
        f" FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE r.rolname = '{role}'"
        " AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = m.member)"
    )
    assert rights == []
    assert members == [(database.application_role, False, False, True)]


def test_the_application_neither_purges_nor_deletes_as_itself_nor_deletes_as_the_other_role(
    kept: World,
) -> None:
    stage = stage_at(kept)
    delete = "DELETE FROM governance.stage_payload WHERE stage = %s"

    for statement, values, steps_over in (
        (PURGE, ("stage", [stage.id]), False),
        (delete, (stage.id,), False),
        (delete, (stage.id,), True),
    ):
        with session(kept) as connection:
            connection.execute(DISPOSE, ("stage", stage.id, kept.datasource))
            if steps_over:
                become_purger(connection)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement, values)


@pytest.mark.parametrize("who", ["owner", "superuser"])
def test_even_whoever_may_delete_deletes_only_payloads_that_a_disposition_names(
    kept: World, who: str
) -> None:
    named, other = stage_at(kept).id, stage_at(kept).id
    delete = "DELETE FROM governance.stage_payload WHERE stage = %s"

    with session(kept, who) as connection:
        connection.execute(DISPOSE, ("stage", named, kept.datasource))
        # Of another kind it names another thing.
        connection.execute(DISPOSE, ("materialization", other, kept.datasource))
        assert connection.execute(delete, (named,)).rowcount == 1
        with pytest.raises(psycopg.errors.RestrictViolation):
            connection.execute(delete, (other,))


def test_what_is_disposed_of_and_free_is_purged_and_nothing_else(kept: World) -> None:
    free, current = made(kept)
    stage, other = stage_at(kept).id, stage_at(kept).id

    assert purged(kept, "materialization", free) == 1
    assert purged(kept, "stage", stage, other, stage, disposed=False) == RESTRICTED
    assert purged(kept, "stage", stage, other) == 2
    assert purged(kept, "materialization", free, disposed=False) == RESTRICTED
    assert purged(kept, "materialization", current) == RESTRICTED
    assert purged(kept, "materialization", free, current) == RESTRICTED


def test_whether_payloads_are_disposed_of_is_asked_once_for_all_that_are_purged(
    kept: World,
) -> None:
    """To ask for each of them would read all that was destroyed before, again and again."""
    stages = [stage_at(kept).id for _ in range(3)]
    asked = (
        "SELECT funcname, calls FROM pg_stat_xact_user_functions"
        " WHERE schemaname = 'governance' AND funcname LIKE 'refuse%'"
    )

    with session(kept, "superuser") as connection:
        for stage in stages:
            connection.execute(DISPOSE, ("stage", stage, kept.datasource))
        connection.execute("SET LOCAL track_functions = 'all'")
        assert connection.execute(PURGE, ("stage", stages)).fetchone() == (3,)
        assert connection.execute(asked).fetchall() == [("refuse_undisposed", 1)]


def test_what_is_current_in_a_partition_is_not_purged(keepers: World, own_corner: World) -> None:
    declare_kept(own_corner, kind="published")
    free, current = (publish_at(own_corner, partition="january").id for _ in range(2))

    assert purged(own_corner, "materialization", free) == 1
    assert purged(own_corner, "materialization", current) == RESTRICTED


@pytest.mark.parametrize("scope", HoldScope)
def test_what_is_held_is_not_purged_until_the_hold_is_released(
    kept: World, scope: HoldScope
) -> None:
    stage = stage_at(kept).id
    free, _ = made(kept)
    subject = {HoldScope.STAGE: stage, HoldScope.MATERIALIZATION: free}.get(scope, kept.datasource)

    placed = hold(kept, subject, scope)
    held = purged(kept, "stage", stage), purged(kept, "materialization", free)
    release(kept, placed.id)

    assert held == (
        1 if scope is HoldScope.MATERIALIZATION else RESTRICTED,
        1 if scope is HoldScope.STAGE else RESTRICTED,
    )
    assert (purged(kept, "stage", stage), purged(kept, "materialization", free)) == (1, 1)


def test_a_purge_waits_for_whoever_has_the_datasource(kept: World) -> None:
    stage = stage_at(kept).id
    # Behind its references, which would wait, too.
    values = f"'default', 'stage', '{stage}', 'x', '{kept.datasource}', 'stage', 'delete', 'x'"
    kept.as_superuser(
        f"INSERT INTO governance.disposition VALUES ({values}, now())", triggers=False
    )
    with kept.application.work() as work, session(kept) as connection:
        work.datasources.get_for_update(kept.datasource)
        connection.execute("SET LOCAL lock_timeout = '50ms'")
        become_purger(connection)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            connection.execute(PURGE, ("stage", [stage]))


def test_another_tenants_payloads_are_not_there_for_the_purge(kept: World) -> None:
    stage = stage_at(kept).id
    with session(kept) as connection:
        connection.execute(DISPOSE, ("stage", stage, kept.datasource))
        connection.execute("SET LOCAL governance.tenant = 'other'")
        become_purger(connection)
        with pytest.raises(psycopg.errors.RestrictViolation):
            connection.execute(PURGE, ("stage", [stage]))


# Destroying


def planned(world: World, name: str, **facts) -> PlannedTarget:
    """Return a target as a plan would have it, whatever is there."""
    defaults = {
        "kind": TargetKind.STAGE,
        "retention_class": RetentionClass.STAGE,
        "datasource": world.datasource,
        "partition": "",
        "created_at": LONG_AGO,
        "eligible_at": LONG_AGO,
        "action": Action.DELETE,
        "rows": 2,
        "bytes": 2,
        "payload_sha256": "a" * 64,
        "blockers": (),
    }
    return PlannedTarget(id=name, **defaults | facts)


def test_what_is_gone_or_is_another_datasources_is_not_destroyed(kept: World) -> None:
    other = replace(kept, datasource=f"{kept.datasource}_other")
    declare_kept(other)
    there, foreign = stage_at(kept).id, stage_at(other).id

    for missing in ("nobody's", foreign):
        targets = [planned(kept, there), planned(kept, missing)]
        with kept.refuses("conflict"), kept.application.work() as work:
            work.datasources.get_for_update(kept.datasource)
            work.retention.dispose(targets, "a plan", NOW)
        assert kept.present(stage_at(kept)).state == "ready"


def test_destroying_what_is_current_is_refused_by_the_database_and_writes_nothing(
    kept: World,
) -> None:
    *_, current = made(kept, 1)
    target = planned(
        kept,
        current,
        kind=TargetKind.MATERIALIZATION,
        retention_class=RetentionClass.MATERIALIZATION,
        action=Action.PURGE,
    )

    with kept.refuses("conflict"), kept.application.work() as work:
        work.datasources.get_for_update(kept.datasource)
        work.retention.dispose([target], "a plan", NOW)
        work.now()  # what was to go later goes with what is asked next


def test_what_is_destroyed_under_no_application_is_not_committed(kept: World) -> None:
    stage = stage_at(kept)
    with kept.application.work() as work:
        work.datasources.get_for_update(kept.datasource)
        work.retention.dispose([planned(kept, stage.id)], "a plan", NOW)
        work.evidence.append(
            datasource_chain(kept.datasource), kind="forged", subject="x", facts={}, at=NOW
        )
        with pytest.raises(GovernanceError):
            work.commit()

    assert kept.present(stage).state == "ready"


def everything(world: World) -> dict[tuple[str, str], dict]:
    """Return all rows of all tables, by table and primary key."""
    found = {}
    for table in metadata.tables.values():
        key = "concat_ws('/', " + ", ".join(f"t.{one.name}" for one in table.primary_key) + ")"
        for name, row in world.query(f"SELECT {key}, to_jsonb(t) FROM {table.fullname} t"):
            found[table.name, name] = row
    return found


def test_all_that_destroying_changes_are_a_state_and_payloads_column_by_column(
    kept: World,
) -> None:
    free, _ = made(kept)
    stage = stage_at(kept).id
    plan = plan_now(kept)
    before = everything(kept)

    apply_plan(kept, plan, [stage, free])

    after = everything(kept)
    gone = {("stage_payload", stage), ("materialization_payload", free)}
    assert before.keys() - after.keys() == {(table, f"default/{name}") for table, name in gone}
    changed = {
        (table, name, column, value)
        for (table, name), row in before.items()
        if (table, name) in after and table != "evidence_head"
        for column, value in after[table, name].items()
        if row[column] != value
    }
    assert changed == {
        ("stage", f"default/{stage}", "state", "deleted"),
        ("materialization", f"default/{free}", "disposition", "purged"),
    }
    assert {table for table, _ in after.keys() - before.keys()} == {
        *("attestation", "disposition", "retention_application", "evidence", "outbox"),
    }


def test_evidence_about_a_stage_holds_when_its_payload_is_gone_and_not_when_it_is_back(
    kept: World,
) -> None:
    stage = stage_at(kept)
    apply_plan(kept, plan_now(kept), [stage.id])
    chain = datasource_chain(kept.datasource)

    with kept.application.work() as work:
        assert work.evidence.breaks_about(chain, stage.id) == []
    kept.as_superuser(
        f"INSERT INTO governance.stage_payload VALUES ('default', '{stage.id}', 'back')"
    )
    with kept.application.work() as work:
        (found,) = work.evidence.breaks_about(chain, stage.id)
    kept.as_superuser(f"DELETE FROM governance.stage_payload WHERE stage = '{stage.id}'")

    assert (found.kind, found.table, found.key) == (
        "orphan_row",
        "stage_payload",
        ("default", stage.id),
    )


# Snapshots and locks


def test_a_snapshot_reads_what_was_there_at_its_beginning_and_writes_nothing(kept: World) -> None:
    first = stage_at(kept)
    work = kept.application.work()

    with work.snapshot():
        work.now()
        second = stage_at(kept)
        seen = {one.id for one in work.stages.list(kept.datasource, ())}
        with pytest.raises(ServiceUnavailableError):
            work.datasources.get_for_update(kept.datasource)

    assert seen == {first.id}
    with work:
        assert {one.id for one in work.stages.list(kept.datasource, ())} == {first.id, second.id}
        work.datasources.get_for_update(kept.datasource)


def test_one_keeps_or_applies_plans_at_a_time(kept: World, monkeypatch) -> None:
    monkeypatch.setattr(border, "LOCK_TIMEOUT", "50ms")
    with kept.application.work() as first, kept.application.work() as second:
        first.retention.lock()
        first.now()
        second.retention.lock()
        with pytest.raises(ServiceUnavailableError) as refused:
            second.now()

    assert refused.value.code == "busy"


def test_whatever_a_policy_governs_is_locked_in_order_and_nothing_else(
    keepers: World, own_corner: World, monkeypatch
) -> None:
    monkeypatch.setattr(border, "LOCK_TIMEOUT", "50ms")
    governed = [replace(own_corner, datasource=f"{own_corner.datasource}_{n}") for n in "ba"]
    for world in governed:
        declare_kept(world)
    free = replace(own_corner, datasource=f"{own_corner.datasource}_free")
    free.declare()

    with own_corner.application.work() as work:
        locked = [target.datasource for target, _ in work.retention.governing_for_update(None)]
        with own_corner.application.work() as other:
            other.datasources.get_for_update(free.datasource)
        for world in governed:
            with world.application.work() as other, pytest.raises(ServiceUnavailableError):
                other.datasources.get_for_update(world.datasource)

    assert locked == sorted(locked)
    assert {world.datasource for world in governed} <= set(locked)
    assert free.datasource not in locked


# What a plan costs

MANY = 4000
JUST_BEFORE = LONG_AGO - timedelta(microseconds=1)
FILL = {
    "stage": """
INSERT INTO governance.stage SELECT tenant, 'many-' || n, datasource, creator, NULL, delivery,
    delivery_sha256, schema, payload_fingerprint, payload_sha256, row_count, byte_count, base,
    quality_policy_hash, approval_policy_hash, approval_required, policy_source, evaluator_version,
    outcome, validation, validation_hash, timestamptz '2019-01-01' + n * interval '1 minute',
    CASE WHEN n % 100 = 0 THEN 'rejected' ELSE 'deleted' END
FROM (SELECT * FROM governance.stage LIMIT 1) one, generate_series(1, {many}) n""",
    "materialization": """
INSERT INTO governance.materialization SELECT tenant, 'many-' || n, datasource, 'many-' || n,
    1000 + n, schema, payload_fingerprint, payload_sha256, row_count, byte_count, provenance,
    created_by, timestamptz '2019-01-01' + n * interval '1 minute',
    CASE WHEN n % 100 = 0 THEN 'retained' ELSE 'purged' END
FROM (SELECT * FROM governance.materialization LIMIT 1) one, generate_series(1, {many}) n""",
}


@pytest.fixture(scope="module")
def history(template, origin_world, tmp_path_factory) -> Iterator[World]:
    """A datasource of which a hundredth of all that ever was is still there."""
    for database in cloned_governance(template, origin_world.database.name):
        world = copied_world(origin_world, database, tmp_path_factory.mktemp("world"))
        declare_kept(world)
        made(world, 1)
        for table, fill in FILL.items():
            world.as_superuser(fill.format(many=MANY), triggers=False)
            world.as_superuser(f"ANALYZE governance.{table}")
        yield world
        world.application.close()


@pytest.mark.parametrize(
    ("retention_class", "index"),
    [
        (RetentionClass.STAGE, "stage_left"),
        (RetentionClass.MATERIALIZATION, "materialization_left"),
    ],
)
def test_a_plan_begins_at_what_is_still_there_not_at_all_that_ever_was(
    history: World, retention_class: RetentionClass, index: str
) -> None:
    query = prepared(candidates.DUE[retention_class])
    asked = {"tenant": "default", "datasource": "orders", "until": JUST_BEFORE}
    with session(history) as connection:
        lines = connection.execute(b"EXPLAIN " + query.text, query.values(asked)).fetchall()
        rows = connection.execute(query.text, query.values(asked)).fetchall()

    assert len(rows) == MANY // 100
    assert any(f"using {index} on" in line or f"on {index} " in line for (line,) in lines), lines
    assert not any("Seq Scan" in line for (line,) in lines), lines


def test_a_candidate_is_due_with_all_facts_of_it(history: World) -> None:
    oldest = LONG_AGO.replace(year=2019) + timedelta(minutes=100)
    with history.application.work() as work:
        (stage,) = work.retention.candidates("orders", RetentionClass.STAGE, oldest)
        found = work.retention.candidate("many-100")

    assert found == stage
    assert (stage.id, stage.state, stage.rows, stage.artifact) == ("many-100", "rejected", 2, None)


def test_a_plan_that_was_altered_is_not_read(kept: World) -> None:
    stage_at(kept)
    plan, other = plan_now(kept), plan_now(kept, at=NOW + timedelta(days=1))
    body = f"(SELECT body FROM governance.retention_plan WHERE hash = '{other.hash}')"
    change = f"UPDATE governance.retention_plan SET body = {body} WHERE hash = '{plan.hash}'"
    kept.tamper("retention_plan", change)

    with kept.application.work() as work, pytest.raises(GuardError) as refused:
        work.retention.plan(plan.hash)

    assert refused.value.code == "evidence_chain_broken"
