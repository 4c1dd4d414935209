"""Bodies and WebSocket messages, within exact bounds."""

import json

import anyio
import pytest

from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.web.messages import (
    MAXIMUM_BODY_BYTES,
    graphql_errors,
    guarded,
    read_body,
    read_json,
    replayed,
)


def receiving(*messages):
    """Return a `receive` that gives these messages."""
    waiting = [*messages]

    async def receive():
        return waiting.pop(0)

    return receive


def part(body: bytes, *, more: bool = False):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_is_read_to_its_end_and_bounded_exactly():
    parts = (part(b"ab", more=True), part(b"cd"))

    assert anyio.run(read_body, receiving(*parts), 4) == b"abcd"
    with pytest.raises(InvalidArgumentError, match="at most 3 bytes"):
        anyio.run(read_body, receiving(*parts), 3)


def test_reading_stops_as_soon_as_there_is_too_much():
    receive = receiving(part(b"abcd", more=True))  # asking again would fail

    with pytest.raises(InvalidArgumentError):
        anyio.run(read_body, receive, 3)


def test_a_client_that_leaves_sends_nothing():
    receive = receiving(part(b"a", more=True), {"type": "http.disconnect"})

    with pytest.raises(InvalidArgumentError, match="not sent to its end"):
        anyio.run(read_body, receive, 10)


def test_what_was_read_is_read_again_behind():
    async def twice():
        receive = replayed(b"abc", receiving({"type": "http.disconnect"}))
        return await receive(), await receive()

    assert anyio.run(twice) == (part(b"abc"), {"type": "http.disconnect"})


@pytest.mark.parametrize(
    "media_type", [b"application/json", b"Application/JSON; charset=utf-8", b" application/json "]
)
def test_json_is_read_with_the_bytes_that_said_it(media_type):
    scope = {"headers": [(b"content-type", media_type)]}

    assert anyio.run(read_json, scope, receiving(part(b'{"a": 1}'))) == ({"a": 1}, b'{"a": 1}')


def test_two_media_types_are_none():
    scope = {"headers": [(b"content-type", b"application/json")] * 2}

    with pytest.raises(InvalidArgumentError, match="application/json"):
        anyio.run(read_json, scope, receiving(part(b"{}")))


def received(*messages):
    """Return the first message that is let through, and what was answered before it."""
    answers = []

    async def send(message):
        answers.append(json.loads(message["text"]))

    async def admit(payload):
        if payload != "admitted":
            raise GuardError("not this one")

    async def run():
        return await guarded(receiving(*messages), send, admit)()

    return anyio.run(run), answers


def text(message: object):
    return {"type": "websocket.receive", "text": json.dumps(message)}


def test_an_operation_is_handed_on_only_when_it_is_admitted():
    refused = text({"type": "start", "id": "7", "payload": "refused"})
    admitted = text({"type": "start", "id": "8", "payload": "admitted"})

    message, answers = received(refused, admitted)

    assert message == admitted
    payload = {"message": "not this one", "extensions": {"code": "refused"}}
    assert answers == [{"type": "error", "id": "7", "payload": payload}]


@pytest.mark.parametrize(
    "message",
    [text({"type": "connection_init"}), text({"type": "stop", "id": "1"}), text({})],
)
def test_messages_that_start_nothing_are_handed_on(message):
    assert received(message) == (message, [])


@pytest.mark.parametrize("kind", ["websocket.connect", "websocket.disconnect"])
def test_the_connection_itself_is_handed_on(kind):
    assert received({"type": kind}) == ({"type": kind}, [])


@pytest.mark.parametrize(
    "message",
    [
        text([]),
        text(1),
        {"type": "websocket.receive", "text": "{"},
        {"type": "websocket.receive", "text": '"' + "x" * MAXIMUM_BODY_BYTES + '"'},
        {"type": "websocket.receive", "bytes": b"{}"},
        {"type": "websocket.receive", "text": None, "bytes": b"{}"},
    ],
    ids=range(6),
)
def test_messages_of_another_form_are_answered(message):
    end = {"type": "websocket.disconnect"}

    handed_on, answers = received(message, end)

    assert handed_on == end
    assert [answer["type"] for answer in answers] == ["error"]


def test_a_refusal_has_the_form_of_a_graphql_answer():
    assert graphql_errors(GuardError("no", code="not_authorised")) == {
        "data": None,
        "errors": [{"message": "no", "extensions": {"code": "not_authorised"}}],
    }
