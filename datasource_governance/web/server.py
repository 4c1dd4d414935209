"""Dagster's webserver behind the gate, put together and served.

Source: SPEC section 16; facts on `dagster_webserver` and the private names it takes to embed it.
"""

import json
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import uvicorn

# Dagster exports no names for what its own webserver command is made of.
from dagster._core.workspace.context import WorkspaceProcessContext  # noqa: TID251
from dagster._core.workspace.load_target import WorkspaceFileTarget  # noqa: TID251
from dagster_webserver.version import __version__
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp
from typing_extensions import override

from datasource_governance import private_files
from datasource_governance.composition import Application
from datasource_governance.errors import GovernanceError, InvalidArgumentError
from datasource_governance.settings_files import read_secret
from datasource_governance.web.accounts import Accounts
from datasource_governance.web.actor_tokens import ActorTokens
from datasource_governance.web.authority import RememberedGrants
from datasource_governance.web.contracts import contract_pages
from datasource_governance.web.gate import HEALTH, Gate, answer
from datasource_governance.web.gateway import Gateway
from datasource_governance.web.identity import Authenticator
from datasource_governance.web.launcher import RequestLauncher
from datasource_governance.web.messages import MAXIMUM_BODY_BYTES
from datasource_governance.web.metrics import Scraped, metrics_route
from datasource_governance.web.mutations import GraphQLGate
from datasource_governance.web.policy import Launch
from datasource_governance.web.redaction import Redaction
from datasource_governance.web.refresh import refresh_route
from datasource_governance.web.security_headers import SecurityHeaders
from datasource_governance.web.settings import WebSettings
from datasource_governance.web.sign_in import SignIn
from datasource_governance.web.tokens import TokenVerifier

if TYPE_CHECKING:
    from graphql import GraphQLSchema

KEPT_ROUTES = frozenset(
    {
        "/graphql",
        "/server_info",
        "/dagit_info",
        "/logs/{path:path}",
        "/download_debug/{run_id:str}",
        "/{path:path}",
        "/",
    }
)
"""Dagster's routes that exist behind the gate, besides its static files."""
_SESSION_KEY_CHARACTERS = 32
_STATEMENT_TIMEOUT_MILLISECONDS = 15_000
_POOL_RECYCLE_SECONDS = 3600
_POOL_MAXIMUM_OVERFLOW = 20
_STOP_SECONDS = 5


class GovernedWebserver(DagsterWebserver[Any, Any]):
    """Dagster's webserver without the routes that forge, and with ours before its own."""

    def __init__(
        self, context: WorkspaceProcessContext, routes: Sequence[BaseRoute], redaction: Redaction
    ) -> None:
        self._own_routes = list(routes)
        self._redaction = redaction
        super().__init__(context)

    @property
    def schema(self) -> "GraphQLSchema":
        """Dagster's schema, as it executes it."""
        schema: GraphQLSchema = self._graphene_schema.graphql_schema
        return schema

    @override
    def build_graphql_schema(self) -> Any:
        built: Any = super().build_graphql_schema()
        self._redaction.apply(built.graphql_schema)
        return built

    @override
    def build_routes(self) -> list[BaseRoute]:
        routes: list[Any] = super().build_routes()  # type: ignore[no-untyped-call]  # Dagster's own
        own = [*self._own_routes, refresh_route(self._ask)]
        return [*own, *(route for route in routes if _is_kept(route))]

    async def _ask(self, request: Request, query: str, **variables: object) -> dict[str, Any]:
        """Return what a query or mutation of ours is answered with, as if the request had it."""
        answered = await self.execute_graphql_request(request, query, variables, None)
        answer: dict[str, Any] = json.loads(bytes(answered.body))
        return answer


def governed_app(
    context: WorkspaceProcessContext,
    settings: WebSettings,
    application: Application,
    *,
    gateway: Gateway,
    pages: Sequence[BaseRoute] = (),
    now: Callable[[], float] = time.time,
) -> ASGIApp:
    """Return the whole application: headers, session, gate, our pages, Dagster.

    `gateway` signs for who signed in; `pages` are routes below `/governance/`; `now` is a clock in
    seconds since the epoch.

    Raises:
        InvalidArgumentError: when the session key cannot be used.
    """
    accounts, clock = Accounts(settings.accounts_file), time.monotonic
    verifier = TokenVerifier(settings.token, clock, now) if settings.token else None
    actor_tokens = ActorTokens(application.work, settings.origins, now)
    authenticator = Authenticator(settings, accounts, actor_tokens, verifier, now)
    sign_in = SignIn(accounts, authenticator, clock, now)
    health = Route(HEALTH, _health, methods=["GET"])
    remembered = RememberedGrants(application.work, clock)
    find_run = partial(_find_run, context.instance)
    metrics = metrics_route(application)
    routes = [health, *sign_in.routes, metrics, *contract_pages(application), *pages]
    webserver = GovernedWebserver(context, routes, Redaction(remembered, find_run))
    gate = Gate(
        webserver.create_asgi_app(exception_handlers={GovernanceError: _answer}),
        authenticator,
        remembered,
        GraphQLGate(webserver.schema, find_run, partial(_find_datasources, application)),
        settings.origins,
        partial(RequestLauncher, gateway=gateway, work=application.work),
    )
    session = SessionMiddleware(
        Scraped(gate, metrics, settings.metrics_token),
        secret_key=session_key(settings.session_key_file),
        # The prefix holds a browser to sending it to this host alone, over TLS.
        session_cookie="__Host-governance" if settings.is_secure else "governance",
        max_age=settings.session_hours * 3600,
        same_site="lax",
        https_only=settings.is_secure,
    )
    return SecurityHeaders(session, is_secure=settings.is_secure)


def serve(
    workspace: Path,
    settings: WebSettings,
    application: Application,
    *,
    gateway: Gateway,
    pages: Sequence[BaseRoute] = (),
) -> None:
    """Serve the code locations of a workspace file until Ctrl-C or SIGTERM, in the main thread.

    Dagster's instance is that of DAGSTER_HOME. What was started ends with it.

    Raises:
        InvalidArgumentError: when the session key cannot be used.
    """
    # uvicorn raises the signal that stopped it once more: by default that would end the process
    # before Dagster's code servers are told to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with suppress(KeyboardInterrupt), dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(
            _STATEMENT_TIMEOUT_MILLISECONDS, _POOL_RECYCLE_SECONDS, _POOL_MAXIMUM_OVERFLOW
        )
        target = WorkspaceFileTarget([str(workspace)])
        with WorkspaceProcessContext(instance, target, version=__version__) as context:
            app = governed_app(context, settings, application, gateway=gateway, pages=pages)
            uvicorn.Server(server_configuration(app, settings)).run()


def server_configuration(app: ASGIApp, settings: WebSettings) -> uvicorn.Config:
    """Return how uvicorn serves it."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        # By default uvicorn lets X-Forwarded-For from this machine replace the peer's address.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="warning",
        ws_max_size=MAXIMUM_BODY_BYTES,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def session_key(path: Path) -> str:
    """Return the key that signs sessions; it is made, with mode 0600, on the first start.

    Raises:
        InvalidArgumentError: when it is there and cannot be used.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_files.create(path, secrets.token_urlsafe(48).encode())
    return read_secret(path, _SESSION_KEY_CHARACTERS)


def _is_kept(route: Any) -> bool:  # noqa: ANN401 - routes of any kind
    return route.path in KEPT_ROUTES or str(route.name).endswith("_static")


def _find_run(instance: dg.DagsterInstance, run_id: str) -> Launch | None:
    run_found = instance.get_run_by_id(run_id)
    if run_found is None:
        return None
    checks = run_found.asset_check_selection or ()
    keys = {*(run_found.asset_selection or ()), *(check.asset_key for check in checks)}
    return Launch(job=run_found.job_name, assets=frozenset(tuple(key.path) for key in keys))


def _find_datasources(application: Application) -> frozenset[str]:
    with application.work() as work:
        return frozenset(target.datasource for target in work.datasources.list())


async def _health(_request: Request) -> Response:
    return PlainTextResponse("ok")


async def _answer(request: Request, error: Exception) -> Response:
    if not isinstance(error, GovernanceError):
        raise InvalidArgumentError("only what was refused on purpose is answered here")
    return answer(error, request.scope)
