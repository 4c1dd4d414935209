"""What browsers are told with every answer."""

import anyio
import pytest
from starlette.responses import PlainTextResponse

from datasource_governance.web.security_headers import SecurityHeaders


def headers(path: str = "/", *, is_secure: bool = True, **own: str) -> dict[str, list[str]]:
    sent = []

    async def send(message):
        sent.append(message)

    app = SecurityHeaders(PlainTextResponse("a", headers=own), is_secure=is_secure)
    scope = {"type": "http", "path": path, "headers": []}
    anyio.run(app, scope, None, send)
    found: dict[str, list[str]] = {}
    for name, value in sent[0]["headers"]:
        found.setdefault(name.decode(), []).append(value.decode())
    return found


def test_no_page_of_another_site_shows_or_reads_ours():
    found = headers()

    assert found["x-frame-options"] == ["DENY"]
    assert "frame-ancestors 'none'" in found["content-security-policy"][0]
    assert found["cross-origin-resource-policy"] == ["same-origin"]
    assert found["cross-origin-opener-policy"] == ["same-origin"]
    assert found["x-content-type-options"] == ["nosniff"]
    assert found["referrer-policy"] == ["same-origin"]


def test_a_policy_that_is_there_stays_and_is_narrowed():
    policies = headers(**{"Content-Security-Policy": "script-src 'nonce-x'"})[
        "content-security-policy"
    ]

    assert policies[0] == "script-src 'nonce-x'"
    assert len(policies) == 2


@pytest.mark.parametrize(
    ("path", "stored"), [("/", False), ("/signin", False), ("/_next/static/a.js", True)]
)
def test_only_static_files_may_be_stored(path, stored):
    assert ("cache-control" not in headers(path)) is stored


def test_tls_is_demanded_where_there_is_tls():
    assert headers()["strict-transport-security"] == ["max-age=31536000"]
    assert "strict-transport-security" not in headers(is_secure=False)
