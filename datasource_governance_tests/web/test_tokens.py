"""Tokens of an OpenID Connect issuer: one thing wrong and they are refused."""

import base64
import hmac
import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from datasource_governance.errors import GuardError
from datasource_governance.web.settings import TokenSettings
from datasource_governance.web.tokens import (
    FRESH_SECONDS,
    LEEWAY_SECONDS,
    PAUSE_SECONDS,
    STALE_SECONDS,
    TokenVerifier,
)

NOW = 1_800_000_000
CLAIMS = {"iss": "https://issuer", "aud": "governance", "exp": NOW + 300, "sub": "Ann@Example.org"}
KEY = ECKey.generate_key("P-256", {"kid": "one", "use": "sig"})
OTHER = ECKey.generate_key("P-256", {"kid": "one"})
NEXT = ECKey.generate_key("P-256", {"kid": "two"})


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys.json"
    publish(path, KEY)
    return path


def publish(path, *keys) -> None:
    path.write_text(json.dumps(KeySet(list(keys)).as_dict(private=False)))


def verifier(keys, clock=None, **changes) -> TokenVerifier:
    settings = TokenSettings(issuer="https://issuer", audience="governance", keys=str(keys))
    return TokenVerifier(replace(settings, **changes), clock or Clock(), lambda: NOW)


def token(key=KEY, algorithm="ES256", header=None, **claims) -> str:
    stated = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode(
        {"alg": algorithm, "kid": "one", **(header or {})}, stated, key, algorithms=[algorithm]
    )


def unsigned(algorithm: str, signature: bytes = b"") -> str:
    parts = (json.dumps({"alg": algorithm, "kid": "one"}), json.dumps(CLAIMS))
    encoded = [
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (*(part.encode() for part in parts), signature)
    ]
    return ".".join(encoded)


def refused(keys, given: str, **changes) -> str:
    with pytest.raises(GuardError) as caught:
        verifier(keys, **changes).actor(given)
    assert caught.value.code == "not_authorised"
    assert caught.value.__context__ is None
    assert given[:20] not in str(caught.value) or not given
    return str(caught.value).rpartition(" ")[2]


def test_a_right_token_names_the_actor_in_the_one_spelling(keys):
    assert verifier(keys).actor(token()) == "ann@example.org"


def test_another_claim_can_name_the_actor(keys):
    given = token(email="Bob@Example.org", email_verified=True)

    assert verifier(keys, claim="email").actor(given) == "bob@example.org"


@pytest.mark.parametrize("verified", [False, None, "true"])
def test_an_address_that_the_issuer_has_not_verified_names_nobody(keys, verified):
    given = token(email="bob@example.org", email_verified=verified)

    with pytest.raises(GuardError):
        verifier(keys, claim="email").actor(given)


@pytest.mark.parametrize("name", ["\uff41lice", "alice\u3000", "\u212aim", "\ufb01ona", " alice"])
def test_two_people_of_an_issuer_never_become_one(keys, name):
    with pytest.raises(GuardError):
        verifier(keys, claim="sub").actor(token(sub=name))


def test_one_of_several_audiences_is_enough(keys):
    assert verifier(keys).actor(token(aud=["other", "governance"])) == "ann@example.org"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://elsewhere"}, "InvalidClaimError"),
        ({"iss": None}, "MissingClaimError"),
        ({"aud": "other"}, "InvalidClaimError"),
        ({"aud": ["other"]}, "InvalidClaimError"),
        ({"aud": None}, "MissingClaimError"),
        ({"exp": None}, "MissingClaimError"),
        ({"exp": NOW - LEEWAY_SECONDS}, "ExpiredTokenError"),
        ({"exp": "never"}, "InvalidClaimError"),
        ({"nbf": NOW + LEEWAY_SECONDS + 1}, "InvalidClaimError"),
        ({"iat": NOW + LEEWAY_SECONDS + 1}, "InvalidClaimError"),
        ({"sub": None}, "KeyError"),
        ({"sub": 7}, "InvalidClaimError"),
        ({"sub": "system"}, "InvalidArgumentError"),
        ({"sub": "zq canary"}, "InvalidArgumentError"),
    ],
)
def test_claims_that_do_not_hold_are_refused(keys, claims, reason):
    assert refused(keys, token(**claims)) == reason


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - LEEWAY_SECONDS + 1},
        {"nbf": NOW + LEEWAY_SECONDS},
        {"iat": NOW + LEEWAY_SECONDS},
    ],
)
def test_clocks_may_differ_by_half_a_minute(keys, claims):
    assert verifier(keys).actor(token(**claims)) == "ann@example.org"


def test_a_signature_of_another_key_is_refused(keys):
    assert refused(keys, token(OTHER)) == "BadSignatureError"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256"])
def test_a_token_without_an_asymmetric_signature_is_refused(keys, algorithm):
    assert refused(keys, unsigned(algorithm)) in ("UnsupportedAlgorithmError", "DecodeError")


def test_a_public_key_is_no_shared_secret(keys):
    signed = unsigned("HS256").rpartition(".")[0]
    signature = hmac.digest(KEY.as_pem(private=False), signed.encode(), "sha256")

    assert refused(keys, unsigned("HS256", signature)) == "UnsupportedAlgorithmError"


def test_a_shared_secret_among_published_keys_is_not_used(tmp_path):
    path, secret = tmp_path / "keys.json", OctKey.generate_key(256, {"kid": "one"})
    path.write_text(json.dumps({"keys": [secret.as_dict(private=True)]}))

    assert refused(path, token(secret, "HS256"), algorithms=frozenset({"HS256"})) == "GuardError"


def test_an_algorithm_that_is_not_configured_is_refused(tmp_path):
    path, key = tmp_path / "keys.json", OKPKey.generate_key("Ed25519", {"kid": "one"})
    publish(path, key)

    assert refused(path, token(key, "Ed25519")) == "UnsupportedAlgorithmError"
    allowed = verifier(path, algorithms=frozenset({"Ed25519"}))
    assert allowed.actor(token(key, "Ed25519")) == "ann@example.org"


def test_rsa_keys_verify(tmp_path):
    path, key = tmp_path / "keys.json", RSAKey.generate_key(2048, {"kid": "one"})
    publish(path, key)

    assert verifier(path).actor(token(key, "RS256")) == "ann@example.org"


@pytest.mark.parametrize(
    "given",
    ["", ".", "..", "a.b.c", "x" * 200_000, token()[:-4], token() + ".", "ü.ü.ü", "\0"],
    ids=range(9),
)
def test_anything_else_is_refused(keys, given):
    refused(keys, given)


# The last character of a signature has bits that say nothing.
@pytest.mark.parametrize("position", range(0, len(token()) - 1, 7))
def test_a_token_changed_anywhere_is_refused(keys, position):
    given = token()
    changed = "A" if given[position] != "A" else "B"

    refused(keys, f"{given[:position]}{changed}{given[position + 1 :]}")


def test_keys_are_rotated_without_a_restart(keys):
    clock = Clock()
    verify = verifier(keys, clock)
    verify.actor(token())
    publish(keys, NEXT)

    clock.seconds += PAUSE_SECONDS + 1

    assert verify.actor(token(NEXT, header={"kid": "two"})) == "ann@example.org"
    with pytest.raises(GuardError):
        verify.actor(token())


def test_a_withdrawn_key_is_forgotten_in_time(keys):
    clock = Clock()
    verify = verifier(keys, clock)
    verify.actor(token())
    publish(keys, NEXT)

    clock.seconds += FRESH_SECONDS + 1

    with pytest.raises(GuardError):
        verify.actor(token())


def test_keys_that_can_no_longer_be_read_are_used_for_an_hour(keys):
    clock = Clock()
    verify = verifier(keys, clock)
    verify.actor(token())
    keys.write_text("zq")

    clock.seconds += STALE_SECONDS
    assert verify.actor(token()) == "ann@example.org"
    clock.seconds += 1

    with pytest.raises(GuardError):
        verify.actor(token())


@contextmanager
def issuer(answer: bytes, status: int = 200, location: str | None = None):
    """Publish at an address and count who reads."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/keys", asked
        server.shutdown()
        thread.join()


def test_keys_are_read_from_an_address_once_while_they_are_fresh(keys):
    with issuer(keys.read_bytes()) as (address, asked):
        clock = Clock()
        verify = verifier(address, clock)
        verify.actor(token())
        verify.actor(token())
        assert len(asked) == 1

        clock.seconds += FRESH_SECONDS + 1
        verify.actor(token())
        assert len(asked) == 2


def test_tokens_with_unknown_keys_do_not_make_the_issuer_be_asked_each_time(keys):
    with issuer(keys.read_bytes()) as (address, asked):
        verify = verifier(address)
        for _ in range(5):
            with pytest.raises(GuardError):
                verify.actor(token(NEXT, header={"kid": "two"}))

        assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "status", "location"),
    [
        (b"", 500, None),
        (b"{}", 200, None),
        (b"[]", 200, None),
        (b'{"keys": []}', 200, None),
        (b'{"keys": [1]}', 200, None),
        (b"x" * (1024 * 1024 + 1), 200, None),
        (b"", 302, "http://169.254.169.254/"),
    ],
)
def test_an_address_that_answers_otherwise_gives_no_keys(answer, status, location):
    with issuer(answer, status, location) as (address, asked):
        assert refused(address, token()) == "GuardError"
        assert len(asked) == 1
