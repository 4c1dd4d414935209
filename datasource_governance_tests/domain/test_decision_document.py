"""Offline documents: what is read is what was made, to the byte."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import Action, Attestation, Claims, key_id
from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.decision_document import (
    OfflineRequest,
    SignedDecision,
    read_request,
    read_signed,
)
from datasource_governance.domain.subjects import decision_subject
from datasource_governance.errors import GovernanceError, GuardError, InvalidPolicyError
from datasource_governance_tests.domain.lifecycle import MIDDAY, TENANT, stage

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
REASON = "looked at every page"


def request(**changes):
    made = OfflineRequest(
        subject=subject_of(stage(), TENANT),
        stage=stage().identity(TENANT),
        requested_at=MIDDAY.isoformat(),
        approval={"required": 2, "missing": 1, "approved_by": ["approver-1"]},
        validation={"rules": [], "schema_diff": None},
    )
    return replace(made, **changes)


def signed(action=Action.STAGE_APPROVE, subject=None, reason=REASON):
    signed_subject = decision_subject(subject_of(stage(), TENANT), REASON)
    claims = Claims(
        tenant=TENANT,
        actor=ActorId("approver-1"),
        key=key_id(PRIVATE.public_key().public_bytes_raw()),
        action=action,
        subject=signed_subject if subject is None else subject,
        issued_at=MIDDAY.isoformat(),
        nonce="n",
    )
    signature = PRIVATE.sign(claims.signed_bytes())
    attestation = Attestation(claims=claims, signature=signature)
    return SignedDecision(attestation=attestation, reason=reason)


REQUEST, SIGNED = request().file_bytes(), signed().file_bytes()


def test_a_request_is_read_as_it_was_made():
    assert read_request(REQUEST) == request()


def test_a_signed_decision_is_read_as_it_was_made():
    found = read_signed(SIGNED)

    assert found == signed()
    assert (found.verdict, found.subject) == (Verdict.APPROVE, subject_of(stage(), TENANT))


def test_the_claims_are_those_of_an_online_decision():
    claims = signed().attestation.claims

    assert load_canonical(SIGNED)["claims"] == load_canonical(claims.signed_bytes())
    assert set(claims.subject) == {*subject_of(stage(), TENANT).document(), "reason_hash"}


@given(st.integers(0, len(REQUEST) - 1), st.integers(1, 255))
def test_a_request_that_differs_by_a_byte_is_refused(place, flip):
    altered = REQUEST[:place] + bytes([REQUEST[place] ^ flip]) + REQUEST[place + 1 :]

    with pytest.raises(GovernanceError):
        read_request(altered)


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_a_signed_decision_that_differs_by_a_byte_is_refused_or_signed_by_nobody(place, flip):
    altered = SIGNED[:place] + bytes([SIGNED[place] ^ flip]) + SIGNED[place + 1 :]

    try:
        attestation = read_signed(altered).attestation
    except GovernanceError:
        return

    # Its claims or its signature are others, which is for whoever has the key to find.
    assert attestation != signed().attestation


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"\xff", REQUEST, SIGNED[:-1]])
def test_what_is_no_signed_decision_is_refused(data):
    with pytest.raises(InvalidPolicyError):
        read_signed(data)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", SIGNED, REQUEST + b"\n", b" " + REQUEST])
def test_what_is_no_request_is_refused(data):
    with pytest.raises(InvalidPolicyError):
        read_request(data)


@pytest.mark.parametrize("name", [*stage().identity(TENANT)])
def test_a_request_whose_facts_are_not_those_of_its_fingerprint_is_refused(name):
    facts = {**stage().identity(TENANT), name: "another"}

    with pytest.raises(InvalidPolicyError) as caught:
        read_request(request(stage=facts).file_bytes())

    assert caught.value.problems[0].pointer == "/stage"


def test_a_request_that_asks_about_another_stage_than_it_shows_is_refused():
    other = replace(request().subject, stage="stage-2")

    with pytest.raises(InvalidPolicyError):
        read_request(request(subject=other).file_bytes())


@pytest.mark.parametrize("key", ["stage", "approval", "validation", "subject"])
def test_a_request_with_something_else_than_an_object_is_refused_where_that_is(key):
    document = load_canonical(REQUEST)
    document[key] = "text"

    with pytest.raises(InvalidPolicyError) as caught:
        read_request(canonical_bytes(document) + b"\n")

    assert caught.value.problems[0].pointer == f"/{key}"


@pytest.mark.parametrize(
    "other",
    [
        signed(action=Action.STAGE_PROMOTE),
        signed(subject={}),
        signed(subject={**decision_subject(subject_of(stage(), TENANT), REASON), "more": None}),
        signed(subject={**decision_subject(subject_of(stage(), TENANT), REASON), "stage": [1]}),
    ],
)
def test_a_signed_statement_about_anything_else_is_refused(other):
    with pytest.raises(InvalidPolicyError):
        read_signed(other.file_bytes())


def test_a_reason_that_was_not_signed_is_refused():
    with pytest.raises(GuardError) as caught:
        read_signed(signed(reason="never said").file_bytes())

    assert caught.value.code == "attestation_mismatch"
    assert "never said" not in str(caught.value)


def test_the_digest_covers_what_is_shown():
    verdicts = {"rules": [{"id": "r", "status": "failed"}], "schema_diff": None}

    assert request(validation=verdicts).digest != request().digest
