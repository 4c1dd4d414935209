"""What verification counts, over which snapshot, and which signatures it does not believe."""

from dataclasses import replace

import pytest

from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.evidence import TENANT_CHAIN, BreakKind
from datasource_governance.errors import GuardError
from datasource_governance.persistence import chains, mapping, tables
from datasource_governance.persistence.verification import verify_evidence
from datasource_governance.signing import Signer, create_key
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

GRANT = Action.ACTOR_GRANT
SUBJECT = {"actor": "dana", "role": "approver", "datasource": None}


def test_a_tenant_without_anything_holds(told_world):
    verification = verify_evidence(told_world.application.engine, "other")

    assert verification.holds
    assert (verification.chains, verification.entries, verification.rows) == (0, 0, 0)
    assert verification.heads == ()


def test_everything_of_the_tenant_is_counted(told_world):
    rows = told_world.count_rows()

    verification = told_world.verification()

    assert verification.holds
    assert (verification.chains, verification.entries) == (8, rows["evidence"])
    assert verification.rows == sum(rows[table.name] for table in tables.GOVERNED)
    assert {head.chain for head in verification.heads} == {
        "tenant",
        "datasource/orders",
        "datasource/countries",
        "datasource/feeds",
        "datasource/outputs",
        "datasource/promised",
        "datasource/records",
        "monitor/promised",
    }


def test_verifying_writes_nothing(told_world):
    before = told_world.count_rows()

    told_world.verification()

    assert told_world.count_rows() == before


def test_progress_is_told_of_every_entry(told_world):
    told: list[int] = []

    verification = told_world.application.verify_evidence(told.append)

    assert told == list(range(1, verification.entries + 1))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_entries_are_all_read_whatever_the_size_of_a_batch(told_world, monkeypatch, size):
    whole = told_world.verification()
    monkeypatch.setattr(chains, "_BATCH", size)

    assert told_world.verification() == whole


def test_what_is_written_meanwhile_is_not_half_seen(world):
    world.declare()

    verification = world.application.verify_evidence(
        lambda count: world.stage() if count == 1 else None
    )

    assert verification.holds
    assert world.verification().entries > verification.entries


def test_the_document_names_every_break(world):
    world.as_superuser(
        "ALTER TABLE governance.actor DISABLE TRIGGER USER;"
        "UPDATE governance.actor SET display_name = 'x' WHERE id = 'creator'"
    )

    document = world.verification().document()

    assert document["format"] == "datasource_governance/verification/v1"
    assert (document["holds"], document["chains"]) == (False, 1)
    assert [(one["kind"], one["table"], one["key"]) for one in document["breaks"]] == [
        ("altered_row", "actor", ["default", "creator"])
    ]


def store(world: World, attestation: Attestation, **columns: object) -> tuple[str, ...]:
    """Store an attestation as the application would, with evidence that commits to it."""
    row = mapping.attestation_row(attestation) | columns
    write(world, "attestation", row, "stored_at")
    return ("default", row["id"])


def write(world: World, table: str, row: dict[str, object], instant: str) -> None:
    with world.application.work() as work:
        now = work.now()
        work._rows.insert(tables.metadata.tables[f"governance.{table}"], {**row, instant: now})
        work.evidence.append(TENANT_CHAIN, kind="forged", subject="x", facts={}, at=now)
        work.commit()


def stranger(world: World, name: str, tenant: str = "default") -> Signer:
    """Return a signer under this name with a key that nobody registered."""
    directory = world.application.settings.keys / "strangers" / tenant
    create_key(directory, name)
    return Signer(directory, name, tenant)


def breaks(world: World) -> list[tuple[BreakKind, str, tuple[str, ...]]]:
    return [(one.kind, one.table, one.key) for one in world.verification().breaks]


def signed_with(signer: Signer, genuine: Attestation, **changed: object) -> Attestation:
    """Return claims with some of them changed, under this signer's signature."""
    claims = replace(genuine.claims, **changed)
    return Attestation(claims=claims, signature=signer._private.sign(claims.signed_bytes()))


def unregistered_key(world: World) -> Attestation:
    return stranger(world, "admin").attest(GRANT, SUBJECT)


def unregistered_key_under_a_registered_id(world: World) -> Attestation:
    return signed_with(stranger(world, "admin"), world.signer("admin").attest(GRANT, SUBJECT))


def key_of_somebody_else(world: World) -> Attestation:
    return world.signer("creator").attest(GRANT, SUBJECT, actor="admin")


def signature_of_another_statement(world: World) -> Attestation:
    first, second = (world.signer("admin").attest(GRANT, SUBJECT) for _ in range(2))
    return replace(first, signature=second.signature)


def shortened_signature(world: World) -> Attestation:
    genuine = world.signer("admin").attest(GRANT, SUBJECT)
    return replace(genuine, signature=genuine.signature[:-1])


def statement_for_another_tenant(world: World) -> Attestation:
    admin = world.signer("admin")
    return signed_with(admin, admin.attest(GRANT, SUBJECT), tenant="other")


def key_put_in_the_place_of_a_registered_one(world: World) -> Attestation:
    mallory = stranger(world, "admin")
    row = {"id": "0" * 64, "actor": "admin", "kind": "actor", "public_key": mallory.public_key}
    write(world, "actor_key", row | {"attestation_id": None}, "created_at")
    return signed_with(mallory, mallory.attest(GRANT, SUBJECT), key="0" * 64)


@pytest.mark.parametrize(
    "forgery",
    [
        unregistered_key,
        unregistered_key_under_a_registered_id,
        key_of_somebody_else,
        signature_of_another_statement,
        shortened_signature,
        statement_for_another_tenant,
        key_put_in_the_place_of_a_registered_one,
    ],
)
def test_an_attestation_that_no_key_of_its_actor_signed_is_forged_even_if_evidence_commits_to_it(
    world, forgery
):
    key = store(world, forgery(world))

    found = [one for one in breaks(world) if one[0] is BreakKind.FORGED_ATTESTATION]
    assert found == [(BreakKind.FORGED_ATTESTATION, "attestation", key)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("actor", "creator"),
        ("action", "stage.approve"),
        ("id", "0" * 64),
        ("key_id", "0" * 64),
        ("nonce", "0" * 32),
        ("claims", b"{}"),
        ("claims", b"\xff"),
    ],
)
def test_a_row_that_says_something_else_than_what_was_signed_is_forged(world, column, value):
    key = store(world, world.signer("admin").attest(GRANT, SUBJECT), **{column: value})

    assert breaks(world) == [(BreakKind.FORGED_ATTESTATION, "attestation", key)]


def test_a_genuine_attestation_stays_genuine_when_its_key_is_revoked(world):
    signer = world.signer("creator")
    store(world, signer.attest(GRANT, SUBJECT))

    world.revoke(signer.key)

    assert breaks(world) == []


def test_a_forged_attestation_is_no_reason_to_believe_it(world):
    attestation = unregistered_key(world)
    store(world, attestation)
    world.declare()
    stage = world.stage()

    with pytest.raises(GuardError):
        world.decide("admin", stage, attestation=attestation)
