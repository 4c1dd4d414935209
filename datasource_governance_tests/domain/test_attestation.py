from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.attestation import (
    FORMAT,
    LIFETIME,
    OWN_KEY_ONLY,
    Action,
    ActorKey,
    Attestation,
    Claims,
    KeyKind,
    check_lifetime,
    is_signed,
    key_id,
    read_claims,
    reason_hash,
    verify,
)
from datasource_governance.domain.canonical import canonical_bytes, digest, load_canonical
from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance_tests.domain.lifecycle import MIDDAY, TICK

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = PRIVATE.public_key().public_bytes_raw()
SUBJECT = {"stage": "s", "base": None}
ANN, BOB = ActorId("ann"), ActorId("bob")


def key(**changes):
    made = ActorKey(
        id=key_id(PUBLIC),
        actor=ANN,
        kind=KeyKind.ACTOR,
        public_key=PUBLIC,
        attestation_id=None,
        created_at=MIDDAY,
    )
    return replace(made, **changes)


def claims(**changes):
    made = Claims(
        tenant="default",
        actor=ANN,
        key=key_id(PUBLIC),
        action=Action.STAGE_APPROVE,
        subject=SUBJECT,
        issued_at="2026-03-01T12:00:00+00:00",
        nonce="n",
    )
    return replace(made, **changes)


def signed(**changes):
    stated = claims(**changes)
    return Attestation(claims=stated, signature=PRIVATE.sign(stated.signed_bytes()))


def proven(attestation, known=None, tenant="default", subject=SUBJECT):
    known = known or key()
    return verify(attestation, known, tenant=tenant, action=Action.STAGE_APPROVE, subject=subject)


def refusal(*arguments, **keys):
    with pytest.raises(GuardError) as caught:
        proven(*arguments, **keys)
    return caught.value


def test_a_signed_statement_proves_its_actor():
    assert proven(signed()) == ANN


def test_a_gateway_key_proves_whoever_it_names():
    assert proven(signed(actor=BOB), key(kind=KeyKind.GATEWAY)) == BOB


@pytest.mark.parametrize(
    ("attestation", "known"),
    [
        (signed(), key(revoked_at=MIDDAY)),
        (signed(), key(id=key_id(bytes(32)))),
        (signed(actor=BOB), key()),
        (signed(), key(actor=BOB)),
        (replace(signed(), signature=bytes(64)), key()),
        (replace(signed(), signature=b""), key()),
        (replace(signed(), signature=signed(nonce="other").signature), key()),
        (signed(), key(public_key=bytes(31))),
    ],
)
def test_without_a_key_of_the_actor_and_its_signature_nothing_is_proven(attestation, known):
    assert refusal(attestation, known).code == "attestation_invalid"


@pytest.mark.parametrize("action", list(Action))
def test_a_gateway_key_speaks_for_nobody_about_authority_and_policies(action):
    attestation, gateway = signed(actor=BOB, action=action), key(kind=KeyKind.GATEWAY)
    own = key(actor=BOB)

    assert verify(attestation, own, tenant="default", action=action, subject=SUBJECT) == BOB
    assert is_signed(attestation, gateway) is (action not in OWN_KEY_ONLY)
    if action in OWN_KEY_ONLY:
        with pytest.raises(GuardError, match="may not attest") as refused:
            verify(attestation, gateway, tenant="default", action=action, subject=SUBJECT)
        assert refused.value.code == "attestation_invalid"


def test_an_unknown_key_proves_nothing():
    with pytest.raises(GuardError) as caught:
        verify(signed(), None, tenant="default", action=Action.STAGE_APPROVE, subject=SUBJECT)

    assert caught.value.code == "attestation_invalid"


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "other"},
        {"actor": BOB},
        {"action": Action.STAGE_REJECT},
        {"subject": {"stage": "t", "base": None}},
        {"issued_at": "2026-03-01T12:00:01+00:00"},
        {"nonce": "m"},
    ],
)
def test_the_signature_covers_every_claim(change):
    altered = replace(signed(), claims=claims(**change))

    assert not is_signed(altered, key())
    assert refusal(altered, key(kind=KeyKind.GATEWAY)).code == "attestation_invalid"


@pytest.mark.parametrize("change", [{"tenant": "other"}, {"action": Action.STAGE_REJECT}])
def test_a_statement_for_another_tenant_or_action_does_not_match(change):
    assert refusal(signed(**change)).code == "attestation_mismatch"


@pytest.mark.parametrize(
    ("subject", "different"),
    [
        ({"stage": "t", "base": None}, ("stage",)),
        ({"stage": "t", "base": "m"}, ("base", "stage")),
        ({"stage": "s", "base": None, "extra": 1}, ("extra",)),
        ({"base": None}, ("stage",)),
    ],
)
def test_a_statement_about_another_subject_names_what_differs(subject, different):
    error = refusal(signed(), subject=subject)

    assert (error.code, error.facts["different"]) == ("attestation_mismatch", different)


def test_a_claim_that_is_null_is_not_a_claim_that_is_missing():
    error = refusal(signed(subject={"stage": "s"}))

    assert error.code == "attestation_mismatch"


def test_a_key_that_was_revoked_later_still_signed():
    assert is_signed(signed(), key(revoked_at=MIDDAY))


def test_the_same_statement_has_the_same_id():
    assert signed().id == signed().id == digest(FORMAT, claims().signed_bytes())
    assert signed(nonce="m").id != signed().id


@given(
    st.builds(
        Claims,
        tenant=st.text(st.characters(codec="utf-8")),
        actor=st.text(st.characters(codec="utf-8")),
        key=st.text("0123456789abcdef", max_size=64),
        action=st.sampled_from(Action),
        subject=st.dictionaries(st.text("abc"), st.none() | st.integers() | st.text("xyz")),
        issued_at=st.text("0123456789"),
        nonce=st.text("0123456789abcdef"),
    )
)
def test_claims_are_read_as_they_were_signed(stated):
    assert read_claims(stated.signed_bytes()) == stated


@pytest.mark.parametrize(
    "change",
    [
        {"format": "datasource_governance/attestation/v2"},
        {"action": "stage.forge"},
        {"subject": []},
        {"extra": 1},
    ],
)
def test_claims_of_another_form_are_not_read(change):
    document = {**load_canonical(claims().signed_bytes()), **change}

    with pytest.raises(GuardError) as caught:
        read_claims(canonical_bytes(document))

    assert caught.value.code == "attestation_invalid"


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b" "])
def test_claims_that_are_no_json_object_are_not_read(data):
    with pytest.raises(GuardError) as caught:
        read_claims(data)

    assert caught.value.code == "attestation_invalid"
    assert caught.value.__context__ is None


def test_claims_are_read_in_their_one_spelling_only():
    with pytest.raises(GuardError):
        read_claims(claims().signed_bytes().replace(b":", b": ", 1))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_public_key_has_32_bytes(length):
    with pytest.raises(InvalidArgumentError):
        key_id(bytes(length))


def test_a_reason_is_known_by_its_exact_text():
    assert reason_hash("checked") == reason_hash("checked")
    assert reason_hash("checked") != reason_hash("Checked")
    assert "checked" not in reason_hash("checked")


@pytest.mark.parametrize("issued_at", [MIDDAY - LIFETIME + TICK, MIDDAY, MIDDAY + LIFETIME])
def test_a_statement_can_be_submitted_for_hours_and_one_dated_ahead_too(issued_at):
    check_lifetime(claims(issued_at=issued_at.isoformat()), MIDDAY)


@pytest.mark.parametrize("age", [LIFETIME, LIFETIME + TICK])
def test_at_the_end_of_its_lifetime_a_statement_is_expired(age):
    with pytest.raises(GuardError) as caught:
        check_lifetime(claims(issued_at=(MIDDAY - age).isoformat()), MIDDAY)

    assert caught.value.code == "attestation_expired"


@pytest.mark.parametrize("issued_at", ["", "yesterday", "2026-03-01T12:00:00", "0"])
def test_a_statement_without_an_instant_of_signing_proves_nothing(issued_at):
    with pytest.raises(GuardError) as caught:
        check_lifetime(claims(issued_at=issued_at), MIDDAY)

    assert caught.value.code == "attestation_invalid"
    assert caught.value.__context__ is None
