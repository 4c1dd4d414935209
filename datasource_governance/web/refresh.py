"""`POST /datasources/{datasource}/refresh/stage`: launch the job that reads an origin into a stage.

Behind the gate the request has an actor, who needs what launching the job over GraphQL needs. It is
launched the same way, so that whoever signed in is attested to have launched the run.

Source: SPEC sections 11 and 16.
"""

from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from datasource_governance.domain.launch import refresh_job_name
from datasource_governance.domain.policy_keys import Key, Record, read_document
from datasource_governance.domain.policy_values import Flag
from datasource_governance.errors import NotFoundError, ServiceUnavailableError
from datasource_governance.orchestration.jobs import refresh_run_config
from datasource_governance.orchestration.launching import JOBS, LAUNCH, launched, selector_of
from datasource_governance.web.audit import record
from datasource_governance.web.identity import peer
from datasource_governance.web.messages import read_body

MAXIMUM_REQUEST_BYTES = 1024
_BODY: Record[bool] = Record(keys=(Key("force", Flag(), default=False),), build=lambda force: force)


class Ask(Protocol):
    """Asks Dagster's GraphQL on behalf of a request, and returns its whole answer."""

    def __call__(
        self, request: Request, query: str, **variables: object
    ) -> Awaitable[dict[str, Any]]:
        """Ask."""
        ...


def refresh_route(ask: Ask) -> Route:
    """Return the route. Its body is empty or `{"force": true}`.

    It answers with 202, the run's id and its address in `Location`; 404 for a datasource that has
    no such job, 400 for another body.
    """

    async def refresh_stage(request: Request) -> Response:
        datasource = request.path_params["datasource"]
        force = _force(await read_body(request.receive, MAXIMUM_REQUEST_BYTES))
        run_id = await _launch(ask, request, datasource, force=force)
        actor, address = request.state.actor, peer(request.scope)
        record("refresh", actor=actor, peer=address, datasource=datasource, run=run_id)
        answer = {"datasource": datasource, "run_id": run_id}
        location = {"Location": f"/runs/{run_id}"}
        return JSONResponse(answer, HTTPStatus.ACCEPTED, headers=location)

    return Route("/datasources/{datasource}/refresh/stage", refresh_stage, methods=["POST"])


def _force(body: bytes) -> bool:
    return bool(body) and read_document(_BODY, body, what="refresh request")


async def _launch(ask: Ask, request: Request, datasource: str, *, force: bool) -> str:
    selector = selector_of(_data(await ask(request, JOBS)), refresh_job_name(datasource))
    if selector is None:
        raise NotFoundError(f"no datasource {datasource!r} with an origin is loaded here")
    run_config = refresh_run_config(datasource, "", force=force)
    parameters = {"selector": selector, "runConfigData": run_config}
    run_id = launched(_data(await ask(request, LAUNCH, parameters=parameters))["launchRun"])
    if run_id is None:
        raise _unavailable()
    return run_id


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    data = answer.get("data")
    if answer.get("errors") or not isinstance(data, dict):
        raise _unavailable()
    return data


def _unavailable() -> ServiceUnavailableError:
    return ServiceUnavailableError("Dagster did not launch it; its log says why")
