"""Bodies and WebSocket messages, read within bounds and handed on as they were read.

Source: ASGI 3; the protocol `graphql-ws` of subscriptions-transport-ws; SPEC section 16.
"""

import json
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

from datasource_governance.errors import GovernanceError, InvalidArgumentError
from datasource_governance.web.headers import single_header

MAXIMUM_BODY_BYTES = 1024 * 1024


async def read_body(receive: Receive, maximum: int) -> bytes:
    """Return the whole body of a request.

    Raises:
        InvalidArgumentError: as soon as it is larger than `maximum`, or when the client leaves.
    """
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidArgumentError("the request was not sent to its end")
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > maximum:
            raise InvalidArgumentError(f"a request body has at most {maximum} bytes")
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first gives a body which was read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


async def read_json(scope: Scope, receive: Receive) -> tuple[object, bytes]:
    """Return what a JSON body says, and the body.

    Raises:
        InvalidArgumentError: for another media type, which a page of a foreign origin could send
            without asking, or a body that is too large or is not JSON.
    """
    media_type = single_header(scope["headers"], "content-type") or ""
    if media_type.partition(";")[0].strip().lower() != "application/json":
        raise InvalidArgumentError("a GraphQL request is posted as application/json")
    body = await read_body(receive, MAXIMUM_BODY_BYTES)
    return _parsed(body), body


def guarded(receive: Receive, send: Send, admit: Callable[[object], Awaitable[None]]) -> Receive:
    """Return a `receive` that lets through what a GraphQL subscription needs, once it is admitted.

    `admit` gets the payload of every operation and raises for one that is not allowed, which is
    answered here and never seen behind.
    """

    async def receive_admitted() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            operation = None
            try:
                operation = _operation(message)
                if operation.get("type") == "start":
                    await admit(operation.get("payload"))
            except GovernanceError as error:
                await send({"type": "websocket.send", "text": _refusal(operation, error)})
            else:
                return message

    return receive_admitted


def graphql_errors(error: GovernanceError) -> dict[str, object]:
    """Return a refusal as GraphQL answers it, which Dagster's UI shows."""
    return {
        "data": None,
        "errors": [{"message": str(error), "extensions": {"code": error.code}}],
    }


def _parsed(text: str | bytes) -> object:
    try:
        # The webserver behind reads the same bytes with the same reader.
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if parsed is None:
        raise InvalidArgumentError("the request is not JSON")
    return parsed


def _operation(message: Message) -> dict[str, object]:
    text = message.get("text")
    if text is None or len(text) > MAXIMUM_BODY_BYTES:
        raise InvalidArgumentError(f"a message is a text of at most {MAXIMUM_BODY_BYTES} bytes")
    parsed = _parsed(text)
    if not isinstance(parsed, dict):
        raise InvalidArgumentError("a message is an object")
    return parsed


def _refusal(operation: dict[str, object] | None, error: GovernanceError) -> str:
    identifier = operation.get("id") if operation else None
    payload = {"message": str(error), "extensions": {"code": error.code}}
    answer = {"type": "error", "id": identifier, "payload": payload}
    return json.dumps(answer)  # noqa: TID251 - an answer, neither hashed nor stored
