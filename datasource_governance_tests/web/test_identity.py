"""Who makes a request: a proxy, a token or a session says it, each only when it may."""

import ipaddress
import time
from dataclasses import replace

import pytest

from datasource_governance.errors import GuardError
from datasource_governance.signing import TOKEN_TYPE
from datasource_governance.web.accounts import Accounts
from datasource_governance.web.actor_tokens import ActorTokens
from datasource_governance.web.identity import Authentication, Authenticator, session_of
from datasource_governance.web.settings import ProxySettings, TokenSettings, WebSettings
from datasource_governance.web.tokens import TokenVerifier
from datasource_governance_tests.web.serving import SECRET, with_accounts, without_account
from datasource_governance_tests.web.test_tokens import KEY, NOW, Clock, publish, token

PROXY = ProxySettings(
    peers=(ipaddress.ip_network("10.0.0.0/24"), ipaddress.ip_network("fd00::/8")),
    actor_header="X-Proxy-User",
    secret_header="X-Proxy-Secret",  # noqa: S106 - the name of a header
    secret=SECRET,
)
HOUR = 3600
HERE = "http://127.0.0.1:3000"


@pytest.fixture
def settings(tmp_path) -> WebSettings:
    publish(tmp_path / "keys.json", KEY)
    issued = TokenSettings(
        issuer="https://issuer", audience="governance", keys=str(tmp_path / "keys.json")
    )
    made = WebSettings(directory=tmp_path, proxy=PROXY, token=issued, session_hours=12)
    return with_accounts(made, "carol")


def nothing_registered():
    raise AssertionError("no key is looked up for a token that is no actor's")


def identify(settings, headers=None, peer="10.0.0.7", session=None, now=NOW, begin=None):
    verifier = TokenVerifier(settings.token, Clock(), lambda: NOW) if settings.token else None
    actor_tokens = ActorTokens(begin or nothing_registered, settings.origins, lambda: now)
    accounts = Accounts(settings.accounts_file)
    authenticator = Authenticator(settings, accounts, actor_tokens, verifier, lambda: now)
    given = [
        (name.lower().encode(), value.encode())
        for name, values in (headers or {}).items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    scope = {"headers": given, "client": (peer, 1) if peer else None, "session": session}
    return authenticator.identify(scope)


def carol(settings, began=NOW) -> dict[str, object]:
    return session_of(Accounts(settings.accounts_file).find("carol"), began)


@pytest.mark.parametrize("peer", ["10.0.0.7", "fd00::1"])
def test_a_proxy_names_the_actor(settings, peer):
    found = identify(settings, {"X-Proxy-User": "Ann", "X-Proxy-Secret": SECRET}, peer)

    assert (found.actor, found.authentication) == ("ann", Authentication.PROXY)
    assert not found.is_bearer


@pytest.mark.parametrize(
    ("headers", "peer"),
    [
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET}, "10.0.1.7"),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET}, "127.0.0.1"),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET}, "::ffff:10.0.0.7"),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET}, None),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET}, "nowhere"),
        (
            {"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET, "X-Forwarded-For": "10.0.0.7"},
            "10.0.1.7",
        ),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": SECRET[:-1]}, "10.0.0.7"),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": ""}, "10.0.0.7"),
        ({"X-Proxy-User": "ann"}, "10.0.0.7"),
        ({"X-Proxy-User": "ann", "X-Proxy-Secret": [SECRET, SECRET]}, "10.0.0.7"),
        ({"X-Proxy-User": ["ann", "root"], "X-Proxy-Secret": SECRET}, "10.0.0.7"),
        ({"X-Proxy-User": "", "X-Proxy-Secret": SECRET}, "10.0.0.7"),
        ({"X-Proxy-User": "system", "X-Proxy-Secret": SECRET}, "10.0.0.7"),
        ({"X-Proxy-User": "a b", "X-Proxy-Secret": SECRET}, "10.0.0.7"),
        ({"X-Forwarded-User": "ann", "X-Proxy-Secret": SECRET}, "10.0.0.7"),
        ({"X-Forwarded-User": "ann", "Remote-User": "ann"}, "10.0.0.7"),
    ],
)
def test_nobody_else_names_one_by_header(settings, headers, peer):
    assert identify(settings, headers, peer) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Proxy-User": "Jos\u00e9", "X-Proxy-Secret": SECRET},
        {"X-Proxy-User": ["ann", "ann"], "X-Proxy-Secret": SECRET},
        {"X-Proxy-Secret": SECRET},
        {"X-Proxy-User": "ann", "X-Proxy-Secret": "wrong"},
        {"X-Proxy-User": "ann"},
        {"Authorization": ["Bearer x", "Bearer y"]},
        {"Authorization": "Bearer \u00e9"},
        {"Authorization": "Bearer x"},
    ],
)
def test_a_claim_that_nobody_can_use_is_nobody_and_not_who_the_session_says(settings, headers):
    assert identify(settings, headers, "10.0.0.7", session=carol(settings)) is None


def test_where_the_proxy_is_a_session_holds_when_the_proxy_says_nothing(settings):
    assert identify(settings, {}, "10.0.0.7", session=carol(settings)).actor == "carol"


def test_a_bearer_token_names_the_actor(settings):
    found = identify(settings, {"Authorization": f"bearer {token()}"}, peer="203.0.113.9")

    assert (found.actor, found.authentication) == ("ann@example.org", Authentication.TOKEN)
    assert found.is_bearer


def test_a_token_in_a_proxys_header_is_no_bearer_token(settings):
    handed = replace(settings, token=replace(settings.token, header="X-Id-Token"))

    assert identify(handed, {"X-Id-Token": token()}).is_bearer is False
    assert identify(handed, {"Authorization": f"Bearer {token()}"}) is None


@pytest.mark.parametrize("value", ["Bearer x", "Bearer", f"Basic {token()}", token(), "Bearer  "])
def test_no_other_token_names_anybody(settings, value):
    assert identify(settings, {"Authorization": value}) is None


def test_without_settings_neither_proxies_nor_tokens_are_believed(settings):
    plain = replace(settings, proxy=None, token=None)
    headers = {
        "X-Proxy-User": "ann",
        "X-Proxy-Secret": SECRET,
        "Authorization": f"Bearer {token()}",
    }

    assert identify(plain, headers) is None


def test_a_session_names_the_actor_of_its_account(settings):
    found = identify(settings, session=carol(settings))

    assert (found.actor, found.authentication) == ("carol", Authentication.ACCOUNT)


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        (NOW, True),
        (NOW + 12 * HOUR - 1, True),
        (NOW + 12 * HOUR, False),
        (NOW - 1, False),
    ],
)
def test_a_session_ends_exactly_at_its_bound(settings, now, holds):
    assert (identify(settings, session=carol(settings), now=now) is not None) is holds


@pytest.mark.parametrize(
    "change",
    [{"account": "root"}, {"password": "0" * 32}, {"began": "now"}, {"account": 7}],
)
def test_a_session_of_another_form_names_nobody(settings, change):
    assert identify(settings, session=carol(settings) | change) is None


def test_a_new_password_and_a_removed_account_end_sessions(settings):
    before = carol(settings)
    without_account(settings, "carol")
    assert identify(settings, session=before) is None

    with_accounts(settings, "carol")

    assert identify(settings, session=before) is None
    assert identify(settings, session=carol(settings)) is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer expired"},
        {"X-Proxy-User": "a b", "X-Proxy-Secret": SECRET},
    ],
)
def test_a_claim_that_does_not_hold_does_not_fall_back_to_the_session(settings, headers):
    assert identify(settings, headers, session=carol(settings)) is None


def bearer(given: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {given}"}


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("issuer", [True, False], ids=["with an issuer", "without"])
def test_an_actors_own_token_names_the_actor(settings, shared_world, issuer):
    given = shared_world.signer("creator").bearer_token(HERE)
    settings = settings if issuer else replace(settings, token=None, proxy=None)

    found = identify(settings, bearer(given), begin=shared_world.application.work, now=time.time())

    assert (found.actor, found.authentication) == ("creator", Authentication.KEY)
    assert found.is_bearer


@pytest.mark.postgres
@pytest.mark.slow
def test_an_actors_token_that_does_not_hold_falls_back_to_nothing(settings, shared_world):
    given = shared_world.signer("creator").bearer_token("http://127.0.0.1:3001")
    begin, session = shared_world.application.work, carol(settings)

    with pytest.raises(GuardError) as caught:
        identify(settings, bearer(given), begin=begin, session=session, now=time.time())

    assert caught.value.code == "not_authorised"


def test_an_issuers_token_that_does_not_hold_is_not_tried_as_an_actors(settings):
    assert identify(settings, bearer(token(iss="creator", aud=HERE))) is None


@pytest.mark.postgres
@pytest.mark.slow
def test_a_token_that_says_it_is_an_actors_is_not_tried_as_an_issuers(settings, shared_world):
    given = token(header={"typ": TOKEN_TYPE})

    with pytest.raises(GuardError, match="unknown key"):
        identify(settings, bearer(given), begin=shared_world.application.work)
