"""DSSE envelopes: the standard's bytes are signed, and only exact spellings are read."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from datasource_governance.domain.attestation import key_id
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.envelope import (
    pre_authentication_encoding,
    read_envelope,
    seal,
)

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(32))
PUBLIC = PRIVATE.public_key().public_bytes_raw()


def envelope(payload=b'{"a":1}', payload_type="application/json"):
    return seal(payload_type, payload, key=key_id(PUBLIC), sign=PRIVATE.sign)


def test_what_is_signed_is_the_encoding_that_the_standard_gives_as_its_example():
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")

    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_are_of_bytes_and_not_of_characters():
    assert pre_authentication_encoding("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_an_envelope_is_read_as_it_was_written():
    assert read_envelope(envelope().encoded()) == envelope()


def test_it_is_signed_with_its_key_and_no_other():
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()

    assert envelope().is_signed_with(PUBLIC)
    assert not envelope().is_signed_with(other)
    assert not envelope().is_signed_with(b"no key")


def test_a_signature_is_not_good_for_another_type_or_payload():
    signature = envelope().signature
    for other in (envelope(b'{"a":2}'), envelope(payload_type="text/plain")):
        assert other.signature != signature


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        canonical_bytes({**envelope().document(), "signatures": []}),
        canonical_bytes({**envelope().document(), "signatures": ["x"]}),
        canonical_bytes({**envelope().document(), "signatures": "x"}),
        canonical_bytes({**envelope().document(), "more": 1}),
        canonical_bytes({**envelope().document(), "payload": "?"}),
        envelope().encoded() + b"\n",
        envelope().encoded().replace(b'":', b'": '),
    ],
    ids=range(12),
)
def test_anything_but_the_one_spelling_is_no_envelope(content):
    assert read_envelope(content) is None
