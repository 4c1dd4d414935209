"""Tokens that actors sign themselves: one thing wrong and they are refused."""

import base64
import json
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey

from datasource_governance.cli.key import register_public_key
from datasource_governance.composition import Application
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance.signing import (
    TOKEN_LIFETIME,
    TOKEN_TYPE,
    Signer,
    create_key,
    public_path,
)
from datasource_governance.web.actor_tokens import ActorTokens, is_actor_token
from datasource_governance.web.tokens import LEEWAY_SECONDS
from datasource_governance_tests.web.schema import launch
from datasource_governance_tests.web.serving import Client
from datasource_governance_tests.web.test_tokens import token as issued_token
from datasource_governance_tests.web.test_tokens import unsigned

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
HERE = "https://governance.example"
ORIGINS = frozenset({HERE, "https://other.name.of.it"})
NOW = 1_800_000_000
LAUNCH = "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename } }"
LIFETIME = int(TOKEN_LIFETIME.total_seconds())
CLAIMS = {"aud": HERE, "iat": NOW, "exp": NOW + LIFETIME, "jti": "n"}


@pytest.fixture
def signer(shared_world) -> Signer:
    return shared_world.signer("creator")


def reader(world, now=NOW) -> ActorTokens:
    return ActorTokens(world.application.work, ORIGINS, lambda: now)


def token(signer: Signer, header=None, key=None, algorithm="Ed25519", **claims) -> str:
    """Return a token of an actor, with anything in it changed."""
    stated = {"iss": signer.actor, "sub": signer.actor, **CLAIMS, **claims}
    head = {"alg": algorithm, "kid": signer.key, "typ": TOKEN_TYPE, **(header or {})}
    return jwt.encode(
        {name: value for name, value in head.items() if value is not None},
        {name: value for name, value in stated.items() if value is not None},
        key or OKPKey.import_key(signer._private),
        algorithms=[algorithm],
    )


def refused(world, given: str, now=NOW) -> str:
    with pytest.raises(GuardError) as caught:
        reader(world, now).actor(given)
    assert caught.value.code == "not_authorised"
    assert caught.value.__context__ is None
    return str(caught.value).partition("(")[2].partition(")")[0]


def test_what_the_command_line_sends_names_its_actor(shared_world, signer):
    assert reader(shared_world, time.time()).actor(signer.bearer_token(HERE)) == "creator"


def test_every_origin_of_the_server_is_an_audience(shared_world, signer):
    for origin in ORIGINS:
        assert reader(shared_world).actor(token(signer, aud=origin)) == "creator"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "https://elsewhere.example"}, "InvalidClaimError aud"),
        ({"aud": "default"}, "InvalidClaimError aud"),
        ({"aud": f"{HERE}/"}, "InvalidClaimError aud"),
        ({"aud": None}, "MissingClaimError aud"),
        ({"iss": "operator"}, "InvalidClaimError iss"),
        ({"iss": None}, "MissingClaimError iss"),
        ({"sub": "operator"}, "InvalidClaimError sub"),
        ({"sub": "Creator"}, "InvalidClaimError sub"),
        ({"sub": None}, "MissingClaimError sub"),
        ({"exp": None}, "MissingClaimError exp"),
        ({"exp": "never"}, "InvalidClaimError exp"),
        ({"exp": NOW + LIFETIME + 1}, "InvalidClaimError exp"),
        ({"iat": NOW - 1}, "InvalidClaimError exp"),
        ({"iat": NOW + LEEWAY_SECONDS + 1}, "InvalidClaimError iat"),
        ({"iat": None}, "MissingClaimError iat"),
        ({"nbf": NOW + LEEWAY_SECONDS + 1}, "InvalidClaimError nbf"),
        ({"jti": None}, "MissingClaimError jti"),
    ],
)
def test_claims_that_do_not_hold_are_refused(shared_world, signer, claims, reason):
    assert refused(shared_world, token(signer, **claims)) == reason


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (NOW - LEEWAY_SECONDS, True),
        (NOW - LEEWAY_SECONDS - 1, False),
        (NOW + LIFETIME + LEEWAY_SECONDS - 1, True),
        (NOW + LIFETIME + LEEWAY_SECONDS, False),
    ],
)
def test_a_token_holds_for_five_minutes_and_clocks_that_differ(shared_world, signer, now, holds):
    given = token(signer)

    if holds:
        assert reader(shared_world, now).actor(given) == "creator"
    else:
        refused(shared_world, given, now)


def test_no_signer_makes_one_that_holds_for_longer(shared_world, signer):
    given = signer.bearer_token(HERE, TOKEN_LIFETIME + timedelta(seconds=1))

    assert refused(shared_world, given, now=time.time()) == "InvalidClaimError exp"


def test_two_tokens_are_never_the_same(signer):
    assert signer.bearer_token(HERE) != signer.bearer_token(HERE)


def test_a_key_that_nobody_registered_is_refused(shared_world, tmp_path):
    create_key(tmp_path, "creator")

    assert refused(shared_world, token(Signer(tmp_path, "creator", "default"))) == "unknown key"


def test_a_revoked_key_is_refused_from_then_on(shared_world):
    signer = shared_world.admit("leaver")
    given = token(signer)
    assert reader(shared_world).actor(given) == "leaver"

    shared_world.revoke(signer.key)

    assert refused(shared_world, given) == "unknown key"


def test_a_gateway_key_signs_no_token(shared_world, tmp_path):
    create_key(tmp_path, "gate")
    signer = Signer(tmp_path, "gate", "default")
    register_public_key(
        shared_world.application,
        shared_world.signer("admin"),
        "gate",
        public_path(tmp_path, "gate"),
        KeyKind.GATEWAY,
    )

    assert refused(shared_world, token(signer)) == "unknown key"
    assert refused(shared_world, token(signer, iss="admin", sub="admin")) == "unknown key"


def test_the_key_of_another_is_refused(shared_world, signer):
    other = shared_world.signer("operator")

    assert refused(shared_world, token(signer, {"kid": other.key})) == "BadSignatureError"
    mine = token(signer, iss=other.actor, sub=other.actor)
    assert refused(shared_world, mine) == "InvalidClaimError iss"


def test_a_key_of_another_tenant_is_unknown_here(shared_world, signer):
    elsewhere = Application(replace(shared_world.application.settings, tenant="other"))

    with pytest.raises(GuardError, match="unknown key"):
        ActorTokens(elsewhere.work, ORIGINS, lambda: NOW).actor(token(signer))
    elsewhere.close()


@pytest.mark.parametrize(
    "kid",
    [None, "", "0" * 64, "0" * 63, "\0", "a'--", ["x"], 7],
)
def test_a_key_id_of_another_form_names_no_key(shared_world, signer, kid):
    head = {"alg": "Ed25519", "typ": TOKEN_TYPE} | ({} if kid is None else {"kid": kid})

    refused(shared_world, crafted(head))


def crafted(header: dict[str, object]) -> str:
    """Return a token with any header at all; its signature is nothing."""
    parts = (json.dumps(header).encode(), json.dumps(CLAIMS).encode(), b"")
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize("algorithm", ["none", "None", "", "HS256", "EdDSA", "RS256"])
def test_no_other_algorithm_is_taken(shared_world, signer, algorithm):
    given = crafted({"alg": algorithm, "kid": signer.key, "typ": TOKEN_TYPE})

    assert refused(shared_world, given) in ("UnsupportedAlgorithmError", "DecodeError")


def test_a_public_key_is_no_shared_secret(shared_world, signer):
    given = token(signer, key=OctKey.import_key(signer.public_key), algorithm="HS256")

    assert refused(shared_world, given) == "UnsupportedAlgorithmError"


def test_a_key_that_the_token_brings_along_is_not_used(shared_world, signer):
    own = OKPKey.generate_key("Ed25519")

    given = token(signer, {"jwk": own.as_dict(private=False)}, key=own)

    assert refused(shared_world, given) == "BadSignatureError"


@pytest.mark.parametrize("position", range(0, 400, 13))
def test_a_token_changed_anywhere_is_refused(shared_world, signer, position):
    given = token(signer)
    changed = "A" if given[position] != "A" else "B"

    refused(shared_world, f"{given[:position]}{changed}{given[position + 1 :]}")


@pytest.mark.parametrize(
    "given", ["", ".", "..", "a.b.c", "x" * 200_000, "ü.ü.ü", "\0", "\ud800"], ids=range(8)
)
def test_anything_else_is_no_token_of_an_actor(shared_world, given):
    assert not is_actor_token(given)
    refused(shared_world, given)


def test_a_token_says_itself_whose_it_is(signer):
    assert is_actor_token(signer.bearer_token(HERE))
    assert not is_actor_token(issued_token())
    assert not is_actor_token(issued_token(header={"typ": "JWT"}))
    assert not is_actor_token(unsigned("none"))
    assert is_actor_token(issued_token(header={"typ": TOKEN_TYPE}))


def test_a_token_of_an_issuer_that_says_it_is_an_actors_is_held_to_that(shared_world, signer):
    key = ECKey.generate_key("P-256")
    given = token(signer, key=key, algorithm="ES256")

    assert refused(shared_world, given) == "UnsupportedAlgorithmError"


def test_a_database_that_is_away_is_not_taken_for_a_wrong_token(signer):
    def away():
        raise ServiceUnavailableError("the database is away")

    with pytest.raises(ServiceUnavailableError):
        ActorTokens(away, ORIGINS, lambda: NOW).actor(token(signer))


def asking(client: Client, signer: Signer) -> dict[str, str | None]:
    """Return the headers of a client that is no browser."""
    token = signer.bearer_token(client.origin)
    return {"Authorization": f"Bearer {token}", "Origin": None, "Sec-Fetch-Site": None}


def test_a_webserver_answers_whoever_signs_a_token_for_it(governed, web_world):
    client = governed.client()

    answer = client.ask("{ version }", asking(client, web_world.signer("viewer")))

    assert "version" in answer.json()["data"]
    assert client.cookies == {}


def test_whoever_signs_a_token_launches_what_roles_allow_and_nothing_else(governed, web_world):
    client, mine = governed.client(), launch("stage_orders", runConfigData="{}")

    allowed = client.ask(LAUNCH, asking(client, web_world.signer("steward")), p=mine)
    refused = client.ask(LAUNCH, asking(client, web_world.signer("viewer")), p=mine)

    assert "launchRun" in allowed.json()["data"]
    assert "needs the role steward" in refused.refusal


def test_a_token_for_another_address_opens_nothing(governed, web_world):
    client = governed.client()
    token = web_world.signer("steward").bearer_token("http://127.0.0.1:1")
    headers = asking(client, web_world.signer("steward")) | {"Authorization": f"Bearer {token}"}

    assert "InvalidClaimError aud" in client.ask("{ version }", headers).refusal


def test_a_token_counts_before_whoever_is_signed_in(governed, web_world):
    client = governed.client("steward")
    token = web_world.signer("viewer").bearer_token(client.origin)

    answer = client.ask(LAUNCH, {"Authorization": f"Bearer {token}"}, p=launch("stage_orders"))

    assert "needs the role steward" in answer.refusal


@pytest.mark.parametrize("path", ["/", "/runs", "/server_info", "/governance/decisions"])
def test_no_page_is_shown_for_a_token(governed, web_world, path):
    client = governed.client()
    headers = asking(client, web_world.signer("administrator"))

    assert client.fetch("GET", path, headers=headers).status == 403
    assert client.fetch("GET", "/health", headers=headers).status == 200
