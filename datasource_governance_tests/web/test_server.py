"""The whole application, as it is put together: other ways to sign in, and Dagster's own routes."""

import ipaddress
import time

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.web.authority import RememberedGrants
from datasource_governance.web.forms import read_form
from datasource_governance.web.policy import READ, need_of_route
from datasource_governance.web.redaction import Redaction
from datasource_governance.web.server import (
    KEPT_ROUTES,
    GovernedWebserver,
    server_configuration,
    session_key,
)
from datasource_governance.web.settings import ProxySettings, TokenSettings, WebSettings
from datasource_governance_tests.web.schema import RUNS
from datasource_governance_tests.web.serving import SECRET, serving, with_accounts
from datasource_governance_tests.web.test_gate import FOREIGN
from datasource_governance_tests.web.test_tokens import KEY, NOW, publish, token

pytestmark = pytest.mark.postgres
GONE = {
    "/notebook",
    "/dagit/notebook",
    "/report_asset_materialization/{asset_key:path}",
    "/report_asset_check/{asset_key:path}",
    "/report_asset_observation/{asset_key:path}",
}


async def who(request: Request) -> JSONResponse:
    """Tell what a page behind the gate knows of whoever asks."""
    form = await read_form(request) if request.method == "POST" else {}
    return JSONResponse(
        {
            "actor": request.state.actor,
            "authentication": request.state.authentication,
            "headers": sorted(request.headers),
            "form": form,
        }
    )


async def refusing(_request: Request) -> JSONResponse:
    raise GuardError("the stage is outdated", code="stage_outdated")


@pytest.fixture(scope="module")
def behind_proxy(web_world, web_context, tmp_path_factory):
    """A webserver that believes a proxy on this machine, and an issuer's tokens."""
    directory = tmp_path_factory.mktemp("behind_proxy")
    publish(directory / "keys.json", KEY)
    settings = WebSettings(
        directory=directory,
        proxy=ProxySettings(
            peers=(ipaddress.ip_network("127.0.0.1"),),
            actor_header="X-Proxy-User",
            secret_header="X-Proxy-Secret",  # noqa: S106 - the name of a header
            secret=SECRET,
        ),
        token=TokenSettings(
            issuer="https://issuer", audience="governance", keys=str(directory / "keys.json")
        ),
    )
    pages = [
        Route("/governance/who", who, methods=["GET", "POST"]),
        Route("/governance/refusing", refusing),
    ]
    application = web_world.application
    with serving(web_context, settings, application, pages=pages, now=lambda: NOW) as running:
        yield running


def by_proxy(name: str) -> dict[str, str]:
    return {"X-Proxy-User": name, "X-Proxy-Secret": SECRET}


def by_token(**claims: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(sub='viewer', **claims)}"}


@pytest.mark.parametrize(
    ("headers", "authentication"), [(by_proxy("Viewer"), "proxy"), (by_token(), "token")]
)
def test_a_page_behind_is_told_who_asks_and_nothing_to_take_it_from(
    behind_proxy, headers, authentication
):
    sent = {**headers, "X-Forwarded-User": "root", "X-Governance-Actor": "root", "Cookie": "a=b"}

    told = behind_proxy.client().fetch("GET", "/governance/who", headers=sent).json()

    assert (told["actor"], told["authentication"]) == ("viewer", authentication)
    assert set(told["headers"]) <= {"accept-encoding", "host", "origin", "sec-fetch-site"}


def test_a_page_behind_takes_forms_of_its_own_pages_only(behind_proxy):
    client = behind_proxy.client()

    told = client.post_form("/governance/who", {"verdict": "approve"}, **by_proxy("viewer"))
    assert told.json()["form"] == {"verdict": "approve"}

    for foreign in FOREIGN:
        headers = {**by_proxy("viewer"), **foreign}
        assert client.post_form("/governance/who", {"a": "b"}, **headers).status == 403


def test_what_a_page_behind_refuses_is_answered_in_a_sentence(behind_proxy):
    headers = {**by_proxy("viewer"), "Accept": "text/html"}

    answer = behind_proxy.client().fetch("GET", "/governance/refusing", headers=headers)

    assert answer.status == 403
    assert "the stage is outdated" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Proxy-User": "viewer"},
        {"X-Proxy-User": "viewer", "X-Proxy-Secret": "wrong"},
        by_proxy("system"),
        by_token(exp=NOW - 31),
        by_token(aud="other"),
        {"Authorization": "Bearer " + token(sub="viewer")[:-6]},
    ],
)
def test_nobody_else_is_let_in(behind_proxy, headers):
    assert behind_proxy.client().fetch("GET", "/", headers=headers).status == 401


def test_a_client_with_a_bearer_token_is_no_browser(behind_proxy):
    absent = {"Origin": None, "Sec-Fetch-Site": None}
    client = behind_proxy.client()

    assert client.ask("{ version }", {**by_token(), **absent}).status == 200
    assert client.ask("{ version }", {**by_proxy("viewer"), **absent}).refusal
    assert client.ask("{ version }", {**by_token(), "Origin": "https://evil.example"}).refusal


def test_every_route_of_dagster_is_known_and_those_that_forge_are_gone(web_world, web_context):
    from dagster_webserver.webserver import DagsterWebserver

    theirs = {route.path for route in DagsterWebserver(web_context).build_routes()}
    redaction = Redaction(RememberedGrants(web_world.application.work, time.monotonic), RUNS.get)
    kept = {route.path for route in GovernedWebserver(web_context, [], redaction).build_routes()}

    ours = {"/datasources/{datasource}/refresh/stage"}
    static = kept - KEPT_ROUTES - ours
    assert theirs == (kept - ours) | GONE
    assert kept >= KEPT_ROUTES | ours
    assert {need_of_route(path) for path in static} == {READ}
    assert not [path for path in static if "{" in path]
    assert {need_of_route(path) for path in GONE} == {None}


def test_over_tls_the_cookie_is_for_this_host_and_tls_alone(web_world, web_context, tmp_path):
    settings = with_accounts(
        WebSettings(directory=tmp_path, public_url="https://governance.example"), "viewer"
    )
    with serving(web_context, settings, web_world.application) as running:
        client = running.client()
        client.headers["Origin"] = "https://governance.example"
        answer = client.sign_in("viewer")

        assert client.get("/").status == 200
        client.headers["Origin"] = client.origin
        assert client.ask("{ version }").status == 200
        assert client.ask("{ version }").refusal

    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-governance=")
    assert "secure" in cookie.lower()
    assert "Strict-Transport-Security" in answer.headers


def test_accounts_that_cannot_be_read_let_nobody_in(web_world, web_context, tmp_path):
    settings = with_accounts(WebSettings(directory=tmp_path), "viewer")
    with serving(web_context, settings, web_world.application) as running:
        client = running.client("viewer")
        settings.accounts_file.chmod(0o644)

        assert client.get("/", accept="*/*").status == 503
        client.cookies.clear()
        assert client.sign_in("viewer").status == 503


def test_the_session_key_is_made_once_and_private(tmp_path):
    path = tmp_path / "new" / "session.key"

    made = session_key(path)

    assert session_key(path) == made
    assert len(made) >= 32
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("content", "mode"), [("short", 0o600), ("x" * 64, 0o644)])
def test_a_session_key_that_is_short_or_not_private_is_refused(tmp_path, content, mode):
    path = tmp_path / "session.key"
    path.write_text(content)
    path.chmod(mode)

    with pytest.raises(InvalidArgumentError, match="mode 0600"):
        session_key(path)


def test_who_connects_is_never_taken_from_a_header(tmp_path):
    configuration = server_configuration(who, WebSettings(directory=tmp_path))

    assert configuration.proxy_headers is False
    assert configuration.host == "127.0.0.1"
