from dataclasses import replace

import pytest

from datasource_governance.domain.actor import SYSTEM, ActorId, Role
from datasource_governance.domain.attestation import Action, KeyKind
from datasource_governance.domain.canonical import Sha256, load_canonical
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.domain.subjects import (
    grant_subject,
    key_subject,
    revocation_subject,
    withdrawal_subject,
)
from datasource_governance.errors import GuardError
from datasource_governance.services.authority import (
    GrantRequest,
    KeyRegistration,
    found_tenant,
    grant_role,
    register_key,
    revoke_key,
    withdraw_grant,
)
from datasource_governance.signing import create_key
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.world import new_world

pytestmark = pytest.mark.postgres


def registration(world, actor, author="admin", kind=KeyKind.ACTOR):
    """Return what `author` signs so that the actor's key, made if there is none, may attest."""
    if not (world.application.settings.keys / f"{actor}.pem").exists():
        create_key(world.application.settings.keys, actor)
    signer = world.signer(actor)
    subject = key_subject(signer.actor, kind, signer.public_key, actor)
    return KeyRegistration(
        actor=signer.actor,
        display_name=actor,
        kind=kind,
        public_key=signer.public_key,
        attestation=world.signer(author).attest(Action.KEY_REGISTER, subject),
    )


def grant_request(world, actor, role, author="admin", datasource=None):
    subject = grant_subject(ActorId(actor), role, datasource)
    return GrantRequest(
        actor=ActorId(actor),
        role=role,
        datasource=datasource,
        attestation=world.signer(author).attest(Action.ACTOR_GRANT, subject),
    )


def grants_of(world, actor):
    with world.application.work() as work:
        return list(work.authority.grants(ActorId(actor)))


def evidence(world):
    """Return kind and facts of the tenant's chain, in order."""
    found = world.query(
        f"SELECT kind, body FROM governance.evidence WHERE chain = '{TENANT_CHAIN}'"
        " ORDER BY sequence"
    )
    return [(kind, load_canonical(bytes(body))["facts"]) for kind, body in found]


def test_the_first_administrator_is_the_first_evidence(world):
    (kind, facts), *_ = evidence(world)

    (grant,) = grants_of(world, "admin")
    assert kind == "tenant.founded"
    assert facts == {
        "actor": "admin",
        "key": world.signer("admin").key,
        "grant": grant.id,
        "role": "administrator",
    }
    assert world.verification().holds


def test_founding_again_with_the_same_key_changes_nothing(world):
    before = world.count_rows()

    founded = found_tenant(world.application.work(), "Admin", world.signer("admin").public_key)

    assert not founded
    assert world.count_rows() == before


@pytest.mark.parametrize(("actor", "key_of"), [("admin", "creator"), ("creator", "admin")])
def test_a_tenant_is_founded_once(world, actor, key_of):
    with world.refuses("tenant_exists"):
        found_tenant(world.application.work(), actor, world.signer(key_of).public_key)


def test_every_tenant_has_a_founder_of_its_own(world, governance_database, tmp_path):
    other = new_world(governance_database, tmp_path / "other", tenant="other")

    assert other.verification().holds
    with other.application.work() as work:
        assert work.authority.key(world.signer("admin").key) is None
    other.application.close()


@pytest.mark.parametrize("name", ["system", "unattested", "ＳＹＳＴＥＭ", "аdmin"])  # noqa: RUF001 - the last one begins with a Cyrillic letter
def test_a_stand_in_or_a_look_alike_owns_no_key(world, name):
    public_key = world.signer("admin").public_key

    with world.refuses("invalid_argument"):
        found_tenant(world.application.work(), name, public_key)
    with world.refuses("invalid_argument"):
        register_key(
            world.application.work(), replace(registration(world, "admin"), actor=ActorId(name))
        )


def test_an_administrator_makes_a_key_attest_for_an_actor(world):
    key = register_key(world.application.work(), registration(world, "newcomer"))

    with world.application.work() as work:
        assert work.authority.key(key.id) == key
        assert work.authority.actor(ActorId("newcomer")).display_name == "newcomer"
    assert evidence(world)[-1] == (
        "key.registered",
        {"actor": "newcomer", "key": key.id, "kind": "actor", "author": "admin"},
    )
    assert grants_of(world, "newcomer") == []


def test_registering_a_key_again_changes_nothing(world):
    first = register_key(world.application.work(), registration(world, "newcomer"))
    before = world.count_rows()

    again = register_key(world.application.work(), registration(world, "newcomer"))

    assert again == first
    assert world.count_rows() == before


def test_a_key_attests_for_one_actor_in_one_way(world):
    work = world.application.work()
    asked = registration(world, "creator")

    with world.refuses("key_taken"):
        register_key(work, replace(asked, actor=ActorId("somebody")))
    with world.refuses("key_taken"):
        register_key(work, replace(asked, kind=KeyKind.GATEWAY))


def test_a_revoked_key_is_not_registered_again(world):
    world.revoke(world.signer("creator").key)

    with world.refuses("key_taken"):
        register_key(world.application.work(), registration(world, "creator"))


def test_only_an_administrator_gives_and_takes(world, subtests):
    work = world.application.work()
    (grant,) = grants_of(world, "creator")
    key = world.signer("creator").key
    withdrawal = world.signer("operator").attest(
        Action.ACTOR_WITHDRAW, withdrawal_subject(grant.id)
    )
    revocation = world.signer("operator").attest(Action.KEY_REVOKE, revocation_subject(key))
    acts = {
        "register": lambda: register_key(work, registration(world, "newcomer", "operator")),
        "revoke": lambda: revoke_key(work, key, revocation),
        "grant": lambda: grant_role(
            work, grant_request(world, "operator", Role.APPROVER, "operator")
        ),
        "withdraw": lambda: withdraw_grant(work, grant.id, withdrawal),
    }

    for name, act in acts.items():
        with subtests.test(name), world.refuses("not_authorised"):
            act()


def test_an_administrator_of_one_datasource_gives_nothing(world):
    world.declare()
    world.grant("operator", Role.ADMINISTRATOR, "orders")

    with world.refuses("not_authorised"):
        grant_role(
            world.application.work(), grant_request(world, "operator", Role.APPROVER, "operator")
        )


def test_what_was_signed_cannot_be_changed_to_give_more(world, subtests):
    world.declare()
    work = world.application.work()
    key = registration(world, "newcomer")
    grant = grant_request(world, "creator", Role.APPROVER, datasource="orders")

    with subtests.test("a gateway"), world.refuses("attestation_mismatch"):
        register_key(work, replace(key, kind=KeyKind.GATEWAY))
    with subtests.test("another owner"), world.refuses("attestation_mismatch"):
        register_key(work, replace(key, actor=ActorId("approver-1")))
    with subtests.test("another name"), world.refuses("attestation_mismatch"):
        register_key(work, replace(key, display_name="Approver One"))
    with subtests.test("another role"), world.refuses("attestation_mismatch"):
        grant_role(work, replace(grant, role=Role.ADMINISTRATOR))
    with subtests.test("another actor"), world.refuses("attestation_mismatch"):
        grant_role(work, replace(grant, actor=ActorId("operator")))
    with subtests.test("all datasources"), world.refuses("attestation_mismatch"):
        grant_role(work, replace(grant, datasource=None))


def test_a_used_attestation_gives_nothing_again(world):
    work = world.application.work()
    request = grant_request(world, "creator", Role.APPROVER)
    world.withdraw(grant_role(work, request).id)

    with world.refuses("attestation_used"):
        grant_role(work, request)


def test_a_grant_in_force_is_returned(world):
    first = world.grant("creator", Role.APPROVER)
    before = world.count_rows()

    again = world.grant("creator", Role.APPROVER)

    assert again == first
    assert world.count_rows() == before


def test_a_grant_is_evidence(world):
    world.declare()

    grant_id = world.grant("creator", Role.APPROVER, "orders")

    assert evidence(world)[-1] == (
        "actor.granted",
        {
            "grant": grant_id,
            "actor": "creator",
            "role": "approver",
            "datasource": "orders",
            "author": "admin",
        },
    )


def test_authority_is_given_to_who_and_over_what_exists(world):
    with world.refuses("not_found"):
        world.grant("nobody", Role.APPROVER)
    with world.refuses("not_found"):
        world.grant("creator", Role.APPROVER, "nothing")


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR, Role.ADMINISTRATOR])
def test_the_system_is_never_given_a_role_that_decides(world, role):
    with world.refuses("not_authorised"):
        world.grant(SYSTEM, role)


def test_a_withdrawn_grant_is_gone_and_is_evidence(world):
    (grant,) = grants_of(world, "creator")

    world.withdraw(grant.id)

    assert grants_of(world, "creator") == []
    assert evidence(world)[-1] == (
        "actor.withdrawn",
        {"grant": grant.id, "actor": "creator", "role": "steward", "author": "admin"},
    )
    with world.refuses("not_found"):
        world.withdraw(grant.id)


def test_a_revoked_key_is_evidence_and_stays_revoked(world):
    key = world.signer("creator").key

    world.revoke(key)

    with world.application.work() as work:
        assert work.authority.key(key).revoked_at is not None
    assert evidence(world)[-1] == (
        "key.revoked",
        {"key": key, "actor": "creator", "author": "admin"},
    )
    with world.refuses("key_taken"):
        world.revoke(key)


def test_an_unknown_key_is_not_revoked(world):
    with world.refuses("not_found"):
        world.revoke(Sha256("0" * 64))


def test_a_key_revoked_after_it_decided_leaves_the_decision_standing(world):
    world.declare(approval={"version": "v1", "required": True})
    stage = world.stage()
    world.decide("approver-1", stage)

    world.revoke(world.signer("approver-1").key)

    assert world.promote(stage).created
    assert world.verification().holds


@pytest.mark.parametrize("over", ["all datasources", "this one", "another one"])
@pytest.mark.parametrize("role", list(Role))
def test_each_act_takes_one_role_over_its_datasource_and_no_other(own_corner, role, over):
    world, actor = own_corner, unique_name("actor")
    another = replace(world, datasource=unique_name("another"))
    another.declare()
    world.declare(approval={"version": "v1", "required": True})
    waiting, approved = world.stage(), world.stage()
    world.decide("approver-1", approved)
    world.admit(actor)
    datasources = {"all datasources": None, "this one": world, "another one": another}
    world.grant(actor, role, datasources[over] and datasources[over].datasource)
    needs = {
        Role.STEWARD: lambda: world.attest_delivery(actor, Sha256("0" * 64)),
        Role.APPROVER: lambda: world.decide(actor, waiting),
        Role.OPERATOR: lambda: world.promote(approved, actor),
        Role.ADMINISTRATOR: lambda: grant_role(
            world.application.work(),
            grant_request(world, "creator", Role.VIEWER, actor, world.datasource),
        ),
    }

    may = {needed for needed, act in needs.items() if is_authorised(act)}

    if over == "another one" or (role is Role.ADMINISTRATOR and over == "this one"):
        assert may == set()
    else:
        assert may == {role} & {*needs}


def is_authorised(act):
    try:
        act()
    except GuardError as refusal:
        return refusal.code != "not_authorised"
    return True


def test_the_last_administrator_is_neither_withdrawn_nor_left_without_a_key(world):
    world.declare()
    world.grant("creator", Role.ADMINISTRATOR, "orders")
    (grant,) = grants_of(world, "admin")

    with world.refuses("last_administrator"):
        world.withdraw(grant.id)
    with world.refuses("last_administrator"):
        world.revoke(world.signer("admin").key)


def test_an_administrator_who_has_no_key_left_keeps_nobody_in_office(world):
    world.grant("creator", Role.ADMINISTRATOR)
    world.revoke(world.signer("creator").key)
    (grant,) = grants_of(world, "admin")

    with world.refuses("last_administrator"):
        world.withdraw(grant.id)


def test_one_of_two_administrators_can_be_withdrawn(world):
    world.grant("creator", Role.ADMINISTRATOR)
    (grant,) = grants_of(world, "admin")

    world.withdraw(grant.id)

    assert grants_of(world, "admin") == []
    with world.refuses("not_authorised"):
        world.grant("operator", Role.VIEWER)


def test_a_stolen_gateway_key_gives_and_takes_nothing_in_an_administrators_name(
    world, tmp_path, subtests
):
    work, gateway = world.application.work(), world.gateway(tmp_path / "webserver")
    key, (grant, *_) = world.signer("creator").key, grants_of(world, "creator")
    new = registration(world, "newcomer")
    role = grant_request(world, "creator", Role.APPROVER)

    def stolen(action, subject):
        return gateway.attest(ActorId("admin"), action, subject)

    def redone(request, action):
        claims = request.attestation.claims
        return replace(request, attestation=stolen(action, claims.subject))

    acts = {
        "register": lambda: register_key(work, redone(new, Action.KEY_REGISTER)),
        "grant": lambda: grant_role(work, redone(role, Action.ACTOR_GRANT)),
        "revoke": lambda: revoke_key(work, key, stolen(Action.KEY_REVOKE, revocation_subject(key))),
        "withdraw": lambda: withdraw_grant(
            work, grant.id, stolen(Action.ACTOR_WITHDRAW, withdrawal_subject(grant.id))
        ),
    }
    for name, act in acts.items():
        with subtests.test(name), world.refuses("attestation_invalid"):
            act()
