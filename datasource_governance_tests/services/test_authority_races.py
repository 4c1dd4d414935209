"""Authority changes while others rely on it: before or after as a whole; and what goes wrong else.

The controls take away the lock of keys and grants, and see what the other tests would.
"""

from dataclasses import replace

import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.attestation import Action, KeyKind
from datasource_governance.domain.subjects import key_subject
from datasource_governance.persistence.authority import PostgresAuthority
from datasource_governance.persistence.locks import Locks
from datasource_governance.services.authority import (
    KeyRegistration,
    found_tenant,
    register_key,
)
from datasource_governance.signing import create_key
from datasource_governance_tests.services.rivals import Pause

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.usefixtures("no_deadlock")]

ONE_APPROVAL = {"version": "v1", "required": True}
ROUNDS = 20


@pytest.fixture
def unlocked(monkeypatch):
    """Let keys and grants be changed and relied on at once."""
    monkeypatch.setattr(Locks, "hold_authority", lambda _: None)
    monkeypatch.setattr(Locks, "change_authority", lambda _: None)
    return monkeypatch


def grants_of(world, actor):
    with world.application.work() as work:
        return [grant.id for grant in work.authority.grants(ActorId(actor))]


# --- The same grant, twice at once ----------------------------------------------------------------


def test_a_grant_given_twice_at_once_is_one_and_its_withdrawal_takes_it(world, rivals):
    world.admit("dana")

    for _ in range(ROUNDS):
        first, second = rivals.at_once(*[lambda own: own.grant("dana", Role.APPROVER)] * 2)
        assert first == second
        assert grants_of(world, "dana") == [first]
        world.withdraw(first)
        assert grants_of(world, "dana") == []

    assert world.verification().holds


def test_a_grant_given_twice_at_once_without_the_lock_outlives_its_withdrawal(
    world, rivals, unlocked
):
    world.admit("dana")
    pause = Pause(unlocked, PostgresAuthority, "add_grant")

    def give(own):
        return own.grant("dana", Role.APPROVER)

    first, second = rivals.at_once(give, pause.meanwhile(give))
    world.withdraw(first)

    assert grants_of(world, "dana") == [second]


def test_grants_on_a_datasource_and_decisions_about_it_never_wait_in_a_circle(world, rivals):
    world.declare(approval=ONE_APPROVAL)

    for _ in range(ROUNDS):
        stage = world.stage()
        given, decided = rivals.at_once(
            lambda own: own.grant("creator", Role.OPERATOR, "orders"),
            lambda own, stage=stage: own.decide("approver-1", stage),
        )
        assert decided.actor == "approver-1"
        world.withdraw(given)


# --- A withdrawal and a promotion -----------------------------------------------------------------


def withdraw_and_promote(world, rivals, pause=None):
    """Return when the approver's grant was withdrawn, and what became of the promotion."""
    (grant,) = grants_of(world, "approver-1")
    stage = world.stage()
    world.decide("approver-1", stage)

    def promote(own):
        return own.promote(stage, None)

    _, promoted = rivals.at_once(
        lambda own: own.withdraw(grant), pause.meanwhile(promote) if pause else promote
    )
    ((withdrawn_at,),) = world.query(
        f"SELECT withdrawn_at FROM governance.grant_withdrawal WHERE grant_id = '{grant}'"
    )
    world.grant("approver-1", Role.APPROVER)
    return withdrawn_at, promoted


def test_whoever_is_withdrawn_counts_for_no_promotion_that_comes_later(world, rivals):
    world.declare(approval=ONE_APPROVAL)

    for _ in range(ROUNDS):
        withdrawn_at, promoted = withdraw_and_promote(world, rivals)
        assert promoted == "quorum_not_met" or (promoted.materialization.created_at < withdrawn_at)


def test_without_the_lock_somebody_withdrawn_still_counts(world, rivals, unlocked):
    world.declare(approval=ONE_APPROVAL)
    pause = Pause(unlocked, PostgresAuthority, "withdraw_grant")

    withdrawn_at, promoted = withdraw_and_promote(world, rivals, pause)

    assert promoted.materialization.created_at > withdrawn_at


# --- A revocation and a decision ------------------------------------------------------------------


def revoke_and_decide(world, rivals, actor, pause=None):
    """Return when the key was revoked, and what became of the decision that it signed."""
    key, stage = world.admit(actor, Role.APPROVER).key, world.stage()

    def decide(own):
        return own.decide(actor, stage)

    _, decided = rivals.at_once(
        lambda own: own.revoke(key), pause.meanwhile(decide) if pause else decide
    )
    with world.application.work() as work:
        return work.authority.key(key).revoked_at, decided


def test_a_revoked_key_makes_no_decision_later(world, rivals):
    world.declare(approval=ONE_APPROVAL)

    for number in range(ROUNDS):
        revoked_at, decided = revoke_and_decide(world, rivals, f"dana-{number}")
        assert decided == "attestation_invalid" or decided.decided_at < revoked_at

    assert world.verification().holds


def test_without_the_lock_a_revoked_key_still_decides(world, rivals, unlocked):
    world.declare(approval=ONE_APPROVAL)
    pause = Pause(unlocked, PostgresAuthority, "revoke_key")

    revoked_at, decided = revoke_and_decide(world, rivals, "dana", pause)

    assert decided.decided_at > revoked_at


# --- Beginnings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "answers"),
    [(("ada", "eve"), {True, "tenant_exists"}), (("ada", "ada"), {True, False})],
    ids=["by two people", "by one person"],
)
def test_a_tenant_founded_twice_at_once_has_one_founder(world, rivals, names, answers):
    for name in {*names}:
        create_key(world.application.settings.keys, name)

    for number in range(ROUNDS):
        tenant = f"tenant_{number}"

        def found(own, name, tenant=tenant):
            application = Application(replace(own.application.settings, tenant=tenant))
            try:
                return found_tenant(application.work(), name, own.signer(name).public_key)
            finally:
                application.close()

        founded = rivals.at_once(*(lambda own, name=name: found(own, name) for name in names))
        assert {*founded} == answers


def test_a_key_registered_twice_at_once_is_registered_once(world, rivals):
    before = world.count_rows()
    keys = world.application.settings.keys
    for number in range(ROUNDS):
        create_key(keys, f"dana-{number}")

    def register(own, actor):
        signer = own.signer(actor)
        subject = key_subject(signer.actor, KeyKind.ACTOR, signer.public_key, actor)
        request = KeyRegistration(
            actor=signer.actor,
            display_name=actor,
            kind=KeyKind.ACTOR,
            public_key=signer.public_key,
            attestation=own.signer("admin").attest(Action.KEY_REGISTER, subject),
        )
        return register_key(own.application.work(), request)

    for number in range(ROUNDS):
        act = [lambda own, number=number: register(own, f"dana-{number}")] * 2
        first, second = rivals.at_once(*act)
        assert first == second

    after = world.count_rows()
    assert after["evidence"] - before["evidence"] == ROUNDS
    assert after["attestation"] - before["attestation"] == ROUNDS
