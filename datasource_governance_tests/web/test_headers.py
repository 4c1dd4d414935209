"""No header carries an identity past the gate."""

import pytest

from datasource_governance.web.headers import single_header, without_identity

HOSTILE = [
    "Authorization",
    "Cookie",
    "Forwarded",
    "Proxy-Authorization",
    "Remote-User",
    "REMOTE_USER",
    "Remote_User",
    "X-Remote-User",
    "X-Forwarded-User",
    "x-forwarded-user",
    "X_Forwarded_User",
    "X-Forwarded-Email",
    "X-Forwarded-For",
    "X-Forwarded-Access-Token",
    "X-Auth-Request-User",
    "X-Auth-User",
    "X-Amzn-Oidc-Data",
    "X-Amzn-Oidc-Identity",
    "X-Amzn-Oidc-Accesstoken",
    "X-Governance-Actor",
    "x-governance-anything",
    "X-Goog-Authenticated-User-Email",
    "X-Ms-Client-Principal-Name",
    "Cf-Access-Jwt-Assertion",
    "X-Authentik-Username",
    "X-Real-Ip",
    "X-User",
    "X-User-Id",
    "X-Our-Proxy-User",
    "X_OUR_PROXY_USER",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_header_is_dropped(name, kind):
    scope = {"type": kind, "headers": [(name.encode(), b"root"), (b"accept", b"*/*")]}

    inner = without_identity(scope, ["X-Our-Proxy-User"])

    assert inner["headers"] == [(b"accept", b"*/*")]
    assert len(scope["headers"]) == 2


@pytest.mark.parametrize("name", ["accept", "content-type", "host", "origin", "user-agent"])
def test_other_headers_stay(name):
    headers = [(name.encode(), b"a")]

    assert without_identity({"headers": headers}, [])["headers"] == headers


def test_a_header_counts_when_it_is_given_once():
    assert single_header([(b"X-User", b" ann ")], "x-user") == "ann"
    assert single_header([], "x-user") is None
    assert single_header([(b"x-user", b"ann"), (b"X-User", b"bob")], "x-user") is None
    assert single_header([(b"x-user", "änn".encode())], "x-user") is None
