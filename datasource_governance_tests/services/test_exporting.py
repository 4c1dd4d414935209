"""Evidence that leaves the database: a second verifier believes it, and no altered one."""

import copy
import json
from collections.abc import Iterator

import jsonschema
import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.envelope import Envelope, seal
from datasource_governance.domain.statement import PAYLOAD_TYPE
from datasource_governance.domain.statement_schema import statement_schema
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.services.exporting import export_promotion
from datasource_governance.signing import Signer, create_key
from datasource_governance_tests.launches import promotion_launch, stage_launch
from datasource_governance_tests.public_formats import RefusedError
from datasource_governance_tests.second_verifier import verify
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, TWO_APPROVALS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
EXPIRING = {**TWO_APPROVALS, "expires_after_hours": 72}
REASON = "the canary of reasons 7f3a"


@pytest.fixture(scope="module")
def exported(shared_world: World) -> tuple[World, Envelope]:
    """Evidence of a stage that waited beside others, of which two of three approvals count."""
    shared_world.declare(ONE_ROW_AT_LEAST, EXPIRING)
    first = shared_world.stage()
    for number in (1, 2):
        shared_world.decide(f"approver-{number}", first, REASON)
    shared_world.promote(first)
    stage, other = shared_world.stage(), shared_world.stage()
    leaver = shared_world.admit("leaver")
    grant = shared_world.grant(leaver.actor, Role.APPROVER, shared_world.datasource)
    for actor in ("leaver", "approver-1", "approver-2"):
        shared_world.decide(actor, stage, REASON)
    shared_world.decide("approver-3", other, REASON, Verdict.REJECT)
    shared_world.withdraw(grant)
    promotion = shared_world.promote(stage)
    signer = shared_world.signer("creator")
    envelope = export_promotion(
        shared_world.application.work(), promotion.materialization.id, signer
    )
    return shared_world, envelope


def checked(world: World, content: bytes, exporter: str = "creator") -> dict:
    return verify(
        content,
        exporter=world.signer(exporter).public_key,
        founder=world.signer("admin").public_key,
    )


def resealed(world: World, statement: object) -> bytes:
    """Return what an exporter who lies would sign."""
    signer = world.signer("creator")
    payload = canonical_bytes(statement)
    return seal(PAYLOAD_TYPE, payload, key=signer.key, sign=signer.sign).encoded()


def promoted(world: World, actor: str | None = "operator") -> str:
    stage = world.stage()
    return world.promote(stage, actor).materialization.id


def test_a_second_verifier_accepts_it(exported):
    world, envelope = exported

    statement = checked(world, envelope.encoded())

    approvals = statement["predicate"]["approval"]["approvals"]
    assert [one["actor"] for one in approvals] == ["approver-1", "approver-2"]
    assert [one["why"] for one in statement["predicate"]["approval"]["not_counted"]] == [
        "authority withdrawn"
    ]


def test_it_is_what_the_published_schema_says(exported):
    _, envelope = exported
    schema = statement_schema()

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(envelope.payload), schema)


def test_the_segment_has_every_link_between_creation_and_promotion(exported):
    _, envelope = exported
    entries = json.loads(envelope.payload)["predicate"]["evidence"]

    assert [one["kind"] for one in entries] == [
        *("stage.created", "delivery.attested", "stage.created"),
        *["stage.decided"] * 4,
        "stage.promoted",
    ]


def test_it_holds_no_reason(exported):
    _, envelope = exported

    assert REASON.encode() not in envelope.payload


def leaves(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of everything in a document that is no object or list, and of every key."""
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if members is None:
        yield path
        return
    for key, member in members:
        yield from leaves(member, (*path, key))


def changed(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "x"
    middle = len(value) // 2
    return (
        f"{value[:middle]}{'1' if value[middle : middle + 1] == '0' else '0'}{value[middle + 1 :]}"
    )


def at(document: object, path: tuple) -> object:
    for key in path:
        document = document[key]
    return document


def accepted(world: World, content: bytes) -> bool:
    try:
        checked(world, content)
    except RefusedError:
        return False
    return True


def test_every_change_of_one_value_is_refused_even_when_the_exporter_signs_it(exported):
    world, envelope = exported
    statement = json.loads(envelope.payload)
    assert accepted(world, resealed(world, statement))
    paths = list(leaves(statement))

    believed = []
    for *parents, last in paths:
        holder = at(statement, tuple(parents))
        was = holder[last]
        for other in (changed(was), None) if was is not None else ("x",):
            holder[last] = other
            if accepted(world, resealed(world, statement)):
                believed.append((*parents, last, other))
        holder[last] = was

    assert len(paths) > 200
    assert believed == []


def test_every_value_that_is_left_out_is_refused(exported):
    world, envelope = exported
    statement = json.loads(envelope.payload)
    objects = {path[:end] for path in leaves(statement) for end in range(len(path))}

    believed = []
    for path in sorted(objects, key=str):
        for key in [*at(statement, path)] if isinstance(at(statement, path), dict) else []:
            altered = copy.deepcopy(statement)
            del at(altered, path)[key]
            if accepted(world, resealed(world, altered)):
                believed.append((*path, key))

    assert believed == []


def test_a_link_or_an_attestation_that_is_left_out_is_refused(exported):
    world, envelope = exported
    statement = json.loads(envelope.payload)

    for name in ("evidence", "attestations", "keys", "policies", "grants"):
        for place in range(len(statement["predicate"][name])):
            altered = copy.deepcopy(statement)
            del altered["predicate"][name][place]
            assert not accepted(world, resealed(world, altered)), (name, place)


@pytest.mark.parametrize("name", ["payload", "payloadType", "keyid", "sig"])
def test_every_change_of_the_envelope_is_refused(exported, name):
    world, envelope = exported
    document = envelope.document()
    holder = document if name in document else document["signatures"][0]
    holder[name] = changed(holder[name])

    assert not accepted(world, canonical_bytes(document))


def test_another_key_proves_nothing(exported):
    world, envelope = exported

    with pytest.raises(RefusedError):
        checked(world, envelope.encoded(), exporter="approver-1")


def test_another_founder_proves_nothing(exported):
    world, envelope = exported

    with pytest.raises(RefusedError):
        verify(
            envelope.encoded(),
            exporter=world.signer("creator").public_key,
            founder=world.signer("operator").public_key,
        )


def test_a_promotion_without_approval_is_accepted_too(own_corner):
    own_corner.declare(promote="automatic")
    materialization = promoted(own_corner, actor=None)

    envelope = export_promotion(
        own_corner.application.work(), materialization, own_corner.signer("creator")
    )

    statement = checked(own_corner, envelope.encoded())
    assert statement["predicate"]["approval"] is None
    assert statement["predicate"]["materialization"]["created_by"] == "system"


def test_a_stage_and_a_promotion_that_were_launched_in_the_browser_are_accepted_too(own_corner):
    own_corner.declare()
    name = own_corner.datasource
    gateway = own_corner.gateway(own_corner.application.settings.state / name)
    staged = own_corner.launch(gateway, "creator", stage_launch(name, f"{name}-1"))
    stage = own_corner.stage(None, launch=staged)
    launch = own_corner.launch(gateway, "operator", promotion_launch(stage.id, name, f"{name}-2"))
    materialization = own_corner.promote(stage, None, launch).materialization.id

    envelope = export_promotion(
        own_corner.application.work(), materialization, own_corner.signer("creator")
    )

    predicate = checked(own_corner, envelope.encoded())["predicate"]
    assert predicate["stage"]["creator"] == "creator"
    assert predicate["materialization"]["created_by"] == "operator"
    assert [key["kind"] for key in predicate["keys"]].count("gateway") == 1


def test_it_can_be_exported_again_after_authority_has_changed(own_corner):
    own_corner.declare()
    materialization = promoted(own_corner)
    work = own_corner.application.work
    export_promotion(work(), materialization, own_corner.signer("creator"))
    visitor = own_corner.admit(f"visitor-{own_corner.datasource[-6:]}", Role.STEWARD)

    later = export_promotion(work(), materialization, visitor)

    checked(own_corner, later.encoded(), exporter=visitor.actor)


def test_exporting_writes_nothing(own_corner):
    own_corner.declare()
    materialization = promoted(own_corner)
    before = own_corner.count_rows()

    export_promotion(own_corner.application.work(), materialization, own_corner.signer("creator"))

    assert own_corner.count_rows() == before


def test_whoever_may_not_see_counts_exports_nothing(own_corner):
    own_corner.declare()
    materialization = promoted(own_corner)

    with pytest.raises(GuardError) as refused:
        export_promotion(
            own_corner.application.work(), materialization, own_corner.signer("approver-1")
        )

    assert refused.value.code == "not_authorised"


def test_an_unregistered_key_exports_nothing(own_corner, tmp_path):
    own_corner.declare()
    materialization = promoted(own_corner)
    create_key(tmp_path, "creator")

    with pytest.raises(GuardError) as refused:
        export_promotion(
            own_corner.application.work(), materialization, Signer(tmp_path, "creator", "default")
        )

    assert refused.value.code == "attestation_invalid"


def test_an_unknown_materialization_is_not_found(own_corner):
    with pytest.raises(NotFoundError):
        export_promotion(own_corner.application.work(), "nothing", own_corner.signer("creator"))


def test_broken_evidence_is_not_exported(world):
    world.declare()
    materialization = promoted(world)
    world.tamper("stage", "UPDATE governance.stage SET delivery = 'another'")

    with pytest.raises(GuardError) as refused:
        export_promotion(world.application.work(), materialization, world.signer("creator"))

    assert refused.value.code == "evidence_chain_broken"
