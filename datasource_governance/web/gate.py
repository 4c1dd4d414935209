"""The gate: nothing reaches Dagster that is not allowed, over HTTP or WebSocket.

In this order: who is it, is the request of a page of ours, may this actor use this route, may this
actor ask this of GraphQL. Behind the gate `request.state.actor` is the actor's id and
`request.state.authentication` how that was established; nothing else says who somebody is.
`request.state.launcher` attests the runs that this request launches.

Source: SPEC sections 7, 16 and 17; threats T-01 to T-04, T-34 and T-35.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from datasource_governance.domain.actor import ActorId
from datasource_governance.errors import GovernanceError, GuardError, InvalidArgumentError
from datasource_governance.orchestration.coordinator import LAUNCHER
from datasource_governance.web.audit import record
from datasource_governance.web.authority import ActorGrants, RememberedGrants
from datasource_governance.web.headers import asked_in_the_body, single_header, without_identity
from datasource_governance.web.identity import Authentication, Authenticator, Identity, peer
from datasource_governance.web.launcher import RequestLauncher
from datasource_governance.web.messages import graphql_errors, guarded, read_json, replayed
from datasource_governance.web.mutations import GraphQLGate
from datasource_governance.web.origins import is_from
from datasource_governance.web.pages import SIGN_IN, SIGN_OUT, refusal_page
from datasource_governance.web.policy import READ, need_of_route, refreshed_datasource

GRAPHQL = "/graphql"
HEALTH = "/health"
PAGES = "/governance/"
"""Where pages of our own are, which check for themselves what a posted form may do."""
OPEN = frozenset({HEALTH, SIGN_IN, SIGN_OUT})
"""Paths that need nobody."""
_READING = frozenset({"GET", "HEAD"})
_STATUS = {
    "not_signed_in": HTTPStatus.UNAUTHORIZED,
    "invalid_argument": HTTPStatus.BAD_REQUEST,
    "invalid_document": HTTPStatus.BAD_REQUEST,
    "not_found": HTTPStatus.NOT_FOUND,
    "service_unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}
_POLICY_VIOLATION = 1008


class Gate:
    """An ASGI application that stands before Dagster's; a session must be in the scope."""

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        remembered: RememberedGrants,
        graphql: GraphQLGate,
        origins: Collection[str],
        launcher: Callable[[ActorId], RequestLauncher],
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._remembered = remembered
        self._graphql = graphql
        self._origins = origins
        self._launcher = launcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what is allowed, refuse the rest, and record each refusal."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        identity = None
        try:
            identity = await run_in_threadpool(self._authenticator.identify, scope)
            receive = await self._admit(scope, identity, receive, send)
        except GovernanceError as error:
            record(
                "refused",
                actor=identity.actor if identity else None,
                peer=peer(scope),
                path=scope["path"],
                code=error.code,
                reason=str(error),
            )
            refusal = error
        else:
            await self._app(self._inner(scope, identity), receive, send)
            return
        await _refuse(refusal, scope, receive, send)

    def _inner(self, scope: Scope, identity: Identity | None) -> Scope:
        inner = without_identity(scope, self._authenticator.own_headers)
        if scope["type"] == "http" and scope["path"] == GRAPHQL:
            inner = asked_in_the_body(inner)
        inner["state"] = {**scope.get("state", {}), "identity": identity}
        if identity is not None:
            inner["state"]["actor"] = identity.actor
            inner["state"]["authentication"] = str(identity.authentication)
            inner["state"][LAUNCHER] = self._launcher(identity.actor)
        return inner

    async def _admit(
        self, scope: Scope, identity: Identity | None, receive: Receive, send: Send
    ) -> Receive:
        """Return a `receive` with which the request may go on."""
        path: str = scope["path"]
        if not path.isprintable():
            raise InvalidArgumentError("the path has a control character")
        self._check_origin(scope, identity)
        if path in OPEN:
            return receive
        # Whoever gets hold of such a token could otherwise fill in the form of a decision.
        if (
            path != GRAPHQL
            and identity is not None
            and identity.authentication is Authentication.KEY
        ):
            raise GuardError("a token that an actor signed is for GraphQL alone")
        granted = await self._granted(identity)
        need = need_of_route(path)
        if need is None:
            raise GuardError("nobody may use this route through the governed webserver")
        granted.demand(need, f"reading {path}")
        if path != GRAPHQL:
            return receive
        if scope["type"] == "websocket":
            return guarded(receive, send, lambda payload: self._admit_again(scope, payload))
        return await self._admit_post(scope, receive, granted)

    def _check_origin(self, scope: Scope, identity: Identity | None) -> None:
        """Refuse what changes something unless a page of ours asks, and at a place for it."""
        if scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            if path == GRAPHQL and method != "POST":
                raise GuardError("GraphQL is asked by POST")
            if method in _READING:
                return
            if method != "POST" or not _takes_posts(path):
                raise GuardError(f"{method} is not allowed here")
        is_bearer = identity is not None and identity.is_bearer
        if not is_from(scope["headers"], self._origins, bearer=is_bearer):
            raise GuardError("the request does not come from a page of this server")

    async def _granted(self, identity: Identity | None) -> ActorGrants:
        if identity is None:
            raise GuardError("sign in first", code="not_signed_in")
        return await run_in_threadpool(self._remembered.of, identity.actor)

    async def _admit_post(self, scope: Scope, receive: Receive, granted: ActorGrants) -> Receive:
        payload, body = await read_json(scope, receive)
        mutations = await run_in_threadpool(self._graphql.admit_post, payload, granted)
        if mutations:
            record("mutation", actor=granted.actor, peer=peer(scope), names=" ".join(mutations))
        return replayed(body, receive)

    async def _admit_again(self, scope: Scope, payload: object) -> None:
        """Admit one operation on an open WebSocket, whose actor may have changed since."""
        identity = await run_in_threadpool(self._authenticator.identify, scope)
        granted = await self._granted(identity)
        granted.demand(READ, "subscribing")
        await run_in_threadpool(self._graphql.admit_subscription, payload, granted)


def _takes_posts(path: str) -> bool:
    is_known = path in (GRAPHQL, *OPEN) or path.startswith(PAGES)
    return is_known or refreshed_datasource(path) is not None


async def _refuse(error: GovernanceError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
    else:
        await answer(error, scope)(scope, receive, send)


def answer(error: GovernanceError, scope: Scope) -> Response:
    """Return a refusal as a page, a way to sign in, or JSON, as the client takes it."""
    status = _STATUS.get(error.code, HTTPStatus.FORBIDDEN)
    accepts = single_header(scope["headers"], "accept") or ""
    is_page = scope["method"] in _READING or scope["path"].startswith(PAGES)
    if is_page and "text/html" in accepts:
        if error.code == "not_signed_in" and scope["method"] in _READING:
            query = scope["query_string"].decode("latin-1")
            destination = scope["path"] + (f"?{query}" if query else "")
            return RedirectResponse(f"{SIGN_IN}?next={quote(destination)}", 303)
        return refusal_page(str(error), status)
    # GraphQL tells in its answer what was refused, and Dagster's UI shows only such answers.
    is_answer = scope["path"] == GRAPHQL and status is HTTPStatus.FORBIDDEN
    return JSONResponse(graphql_errors(error), HTTPStatus.OK if is_answer else status)
