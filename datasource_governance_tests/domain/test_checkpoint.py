"""Checkpoints are read exactly as they were signed, or named for what is wrong with them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from datasource_governance.domain.attestation import key_id
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.checkpoint import (
    PAYLOAD_TYPE,
    Checkpoint,
    TrustedKey,
    open_checkpoint,
    read_checkpoint,
)
from datasource_governance.domain.envelope import seal
from datasource_governance.domain.evidence import Break, BreakKind, Head

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(32))
PUBLIC = PRIVATE.public_key().public_bytes_raw()
AT = datetime(2026, 3, 1, 12, 30, 0, 5, UTC)


def checkpoint(tenant="default", sequence=8, at=AT):
    heads = (
        Head(tenant=tenant, chain="datasource/orders", sequence=3, entry_hash=Sha256("a" * 64)),
        Head(tenant=tenant, chain="tenant", sequence=sequence - 1, entry_hash=Sha256("b" * 64)),
    )
    return Checkpoint(tenant=tenant, sequence=sequence, at=at, heads=heads)


def kept(payload, payload_type=PAYLOAD_TYPE):
    return seal(payload_type, payload, key=key_id(PUBLIC), sign=PRIVATE.sign).encoded()


def opened(content, revoked_at=None, keys=None):
    trusted = {key_id(PUBLIC): TrustedKey(public_key=PUBLIC, revoked_at=revoked_at)}
    keys = trusted if keys is None else keys
    return open_checkpoint("file.json", content, tenant="default", keys=keys)


def test_names_sort_as_checkpoints_were_made():
    east = timezone(timedelta(hours=2))

    assert checkpoint().name == "000000000008-20260301T123000.000005Z.json"
    assert checkpoint(at=AT.astimezone(east)).name == checkpoint().name
    assert checkpoint(sequence=9).name < checkpoint(sequence=10).name


def test_a_checkpoint_is_read_as_it_was_signed():
    assert read_checkpoint(checkpoint().payload()) == checkpoint()
    assert opened(kept(checkpoint().payload())) == checkpoint()


def test_one_instant_has_one_spelling():
    east = timezone(timedelta(hours=2))

    assert checkpoint(at=AT.astimezone(east)).id == checkpoint().id


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {**checkpoint().document(), "format": "datasource_governance/checkpoint/v2"},
        {**checkpoint().document(), "more": 1},
        {**checkpoint().document(), "sequence": "8"},
        {**checkpoint().document(), "sequence": True},
        {**checkpoint().document(), "heads": {}},
        {**checkpoint().document(), "heads": ["x"]},
        {**checkpoint().document(), "at": "yesterday"},
        {**checkpoint().document(), "at": "2026-03-01T12:30:00.000005"},
        {**checkpoint().document(), "at": "2026-03-01T14:30:00.000005+02:00"},
    ],
    ids=range(11),
)
def test_what_is_signed_but_no_checkpoint_is_named_altered(document):
    found = opened(kept(canonical_bytes(document)))

    assert isinstance(found, Break)
    assert (found.kind, found.key) == (BreakKind.ALTERED_CHECKPOINT, ("file.json",))


def test_a_statement_of_another_type_is_no_checkpoint():
    found = opened(kept(checkpoint().payload(), "application/vnd.in-toto+json"))

    assert found.kind is BreakKind.ALTERED_CHECKPOINT


def test_every_byte_that_is_altered_is_noticed():
    content = kept(checkpoint().payload())

    for place in range(len(content)):
        altered = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        found = opened(altered)
        assert isinstance(found, Break), place
        assert found.kind in {BreakKind.ALTERED_CHECKPOINT, BreakKind.UNTRUSTED_CHECKPOINT}


def test_a_key_that_is_not_trusted_is_named():
    assert opened(kept(checkpoint().payload()), keys={}).kind is BreakKind.UNTRUSTED_CHECKPOINT


def test_another_tenants_checkpoint_is_named():
    foreign = kept(checkpoint(tenant="other").payload())

    assert opened(foreign).kind is BreakKind.FOREIGN_CHECKPOINT


def test_a_key_signs_until_the_instant_at_which_it_is_revoked():
    content = kept(checkpoint().payload())
    after = AT + timedelta(microseconds=1)

    assert opened(content, revoked_at=after) == checkpoint()
    assert opened(content, revoked_at=AT).kind is BreakKind.UNTRUSTED_CHECKPOINT


def test_a_list_in_another_order_is_another_checkpoint():
    reversed_heads = replace(checkpoint(), heads=checkpoint().heads[::-1])

    assert reversed_heads.id != checkpoint().id
