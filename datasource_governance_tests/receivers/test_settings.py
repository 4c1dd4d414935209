"""The file that says who is told: everything wrong with it is said at once."""

import base64
import json
from datetime import UTC, datetime

import pytest

from datasource_governance.domain.event import TOLD_TYPES
from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError
from datasource_governance.lineage.events import LINEAGE_TYPES
from datasource_governance.receivers.file import File
from datasource_governance.receivers.mail import Mail, Security
from datasource_governance.receivers.openlineage import patient
from datasource_governance.receivers.settings import MAXIMUM_RECEIVERS, read_receivers
from datasource_governance.receivers.webhook import Webhook

URL = "https://governance.example"


def no_database():
    raise AssertionError("reading settings needs no database")


SECRET = bytes(range(24))
WEBHOOK = """
[[receiver]]
name = "chat"
kind = "webhook"
url = "https://chat.example/hooks/1?room=a"
secret_file = "chat.secret"
"""
MAIL = """
[[receiver]]
name = "approvers"
kind = "mail"
host = "mail.example"
port = 465
security = "tls"
sender = "governance@data.example"
recipients = ["ann@data.example"]
user = "governance"
password_file = "mail.secret"
events = ["datasource.stage.created"]
since = "2026-12-01T00:00:00Z"
"""
LINEAGE = """
[[receiver]]
name = "catalogue"
kind = "openlineage"
namespace = "ours"
[receiver.transport]
type = "http"
url = "https://marquez.example"
api_key_file = "mail.secret"
"""
FILE = '[[receiver]]\nname = "archive"\nkind = "file"\npath = "events.jsonl"\n'


@pytest.fixture
def read(tmp_path):
    for name, text in {
        "chat.secret": f"whsec_{base64.b64encode(SECRET).decode()}\n",
        "short.secret": f"whsec_{base64.b64encode(SECRET[:-1]).decode()}",
        "bare.secret": base64.b64encode(SECRET).decode(),
        "garbled.secret": "whsec_?" * 20,
        "mail.secret": "zq-password",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "open.secret").write_text("zq-open")
    (tmp_path / "open.secret").chmod(0o644)

    def read(text: str):
        (tmp_path / "receivers.toml").write_text(text)
        return read_receivers(tmp_path / "receivers.toml", URL, no_database)

    return read


def pointers(read, text) -> list[str]:
    with pytest.raises(InvalidPolicyError) as refused:
        read(text)
    assert "zq-" not in str(refused.value)
    return [problem.pointer for problem in refused.value.problems]


def test_everything_can_be_said(read, tmp_path):
    chat, approvers, archive = read(WEBHOOK + MAIL + FILE)

    assert (chat.name, chat.events, chat.since) == ("chat", frozenset(TOLD_TYPES), None)
    assert chat.transport == Webhook(
        url="https://chat.example/hooks/1?room=a", secret=SECRET, public_url=URL
    )
    assert approvers.events == {"datasource.stage.created"}
    assert approvers.since == datetime(2026, 12, 1, tzinfo=UTC)
    assert approvers.transport == Mail(
        host="mail.example",
        port=465,
        security=Security.TLS,
        sender="governance@data.example",
        recipients=("ann@data.example",),
        user="governance",
        password="zq-password",  # noqa: S106 - of a test
        public_url=URL,
    )
    assert archive.transport == File(path=tmp_path / "events.jsonl")
    assert "zq-password" not in repr((chat, approvers, archive))


def test_mail_needs_no_user_and_goes_to_the_port_of_submission(read):
    text = '[[receiver]]\nname = "m"\nkind = "mail"\nhost = "h"\nsender = "a@b.example"\n'

    (found,) = read(text + 'recipients = ["c@d.example"]')

    assert (found.transport.port, found.transport.security) == (587, Security.STARTTLS)
    assert found.transport.user is None


def test_everything_wrong_is_said_at_once(read):
    text = """
    [[receiver]]
    name = "Chat"
    kind = "webhook"
    url = "http://chat.example"
    secret_file = "missing.secret"
    events = ["datasource.stage.forgotten"]

    [[receiver]]
    name = "m"
    kind = "mail"
    host = ""
    port = 0
    security = "none"
    sender = "nobody"
    recipients = ["a@b.example", "c"]
    user = "u"
    since = "2026-12-01"

    [[receiver]]
    name = "m"
    kind = "pigeon"

    [[receiver]]
    name = "e"
    kind = "entry_point"
    callable = "nobody"
    """

    assert sorted(pointers(read, text)) == sorted(
        [
            *("/receiver/0/name", "/receiver/0/url", "/receiver/0/secret_file"),
            "/receiver/0/events/0",
            *("/receiver/1/host", "/receiver/1/port", "/receiver/1/security"),
            *("/receiver/1/sender", "/receiver/1/recipients/1", "/receiver/1/since"),
            *("/receiver/1", "/receiver/2/name", "/receiver/2/kind", "/receiver/3/callable"),
        ]
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://chat.example/",
        "https://user:zq-secret@chat.example/",
        "https:///zq-path",
        "ftp://chat.example/",
        "https://[zq",
        "chat.example",
        3,
    ],
)
def test_an_address_is_encrypted_and_is_not_repeated(read, url):
    text = WEBHOOK.replace('"https://chat.example/hooks/1?room=a"', json.dumps(url))

    assert pointers(read, text) == ["/receiver/0/url"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_on_this_machine_an_address_may_be_plain(read, host):
    url = f"http://{host}:9000/hook"

    (found,) = read(WEBHOOK.replace("https://chat.example/hooks/1?room=a", url))

    assert found.transport.url == url


@pytest.mark.parametrize("name", ["short", "bare", "garbled", "open", "missing"])
def test_a_signing_secret_is_private_and_long_enough(read, name):
    assert pointers(read, WEBHOOK.replace("chat.secret", f"{name}.secret")) == [
        "/receiver/0/secret_file"
    ]


def test_a_password_is_private(read):
    assert pointers(read, MAIL.replace("mail.secret", "open.secret")) == [
        "/receiver/0/password_file"
    ]


def test_somebody_has_to_be_named_and_not_too_many(read):
    many = "".join(
        FILE.replace("archive", f"archive-{number}") for number in range(MAXIMUM_RECEIVERS + 1)
    )

    assert pointers(read, "") == [""]
    assert pointers(read, "receiver = []") == ["/receiver"]
    assert pointers(read, many) == ["/receiver"]


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError):
        read_receivers(tmp_path / "missing.toml", URL, no_database)


def test_a_lineage_receiver_gets_what_is_lineage_through_the_named_transport(read):
    (found,) = read(LINEAGE)

    assert found.events == frozenset(LINEAGE_TYPES)
    assert found.transport.namespace == "ours"
    assert found.transport.transport["auth"] == {"type": "api_key", "apiKey": "zq-password"}
    assert "zq-password" not in repr(found)
    patiently = patient(found.transport.transport)
    assert (patiently["retry"], patiently["timeout"]) == ({"total": 0}, 4.0)


@pytest.mark.parametrize(
    "transport", ['type = "async_http"', 'type = "nothing"', 'url = "https://marquez.example"']
)
def test_a_transport_that_does_not_tell_what_was_taken_is_refused(read, transport):
    head = '[[receiver]]\nname = "catalogue"\nkind = "openlineage"\n[receiver.transport]\n'
    with pytest.raises(InvalidPolicyError) as caught:
        read(head + transport)
    assert [one.pointer for one in caught.value.problems] == ["/receiver/0/transport/type"]


COMPOSITE = """
[[receiver]]
name = "catalogues"
kind = "openlineage"
[receiver.transport]
type = "composite"
"""


@pytest.mark.parametrize(
    ("inner", "pointer"),
    [
        ("", ""),
        ("transports = []", ""),
        ('transports = ["http"]', "/0"),
        ('transports = [{type = "console"}, {type = "noop"}]', "/1/type"),
        ('transports.a = {type = "noop"}', "/a/type"),
        ('transports.a = {type = "http", api_key_file = "open.secret"}', "/a/api_key_file"),
        ('transports.a = {type = "composite", transports.b.type = "noop"}', "/a/transports/b/type"),
    ],
)
def test_a_composite_is_made_of_transports_that_may_stand_alone(read, inner, pointer):
    assert pointers(read, COMPOSITE + inner) == [f"/receiver/0/transport/transports{pointer}"]


def test_each_transport_of_a_composite_has_its_own_key(read):
    http = 'type = "http", url = "https://marquez.example", api_key_file = "mail.secret"'
    (found,) = read(f'{COMPOSITE}transports = [{{type = "console"}}, {{{http}}}]')

    console, keyed = found.transport.transport["transports"].values()
    assert console == {"type": "console"}
    assert keyed["auth"] == {"type": "api_key", "apiKey": "zq-password"}


def test_inner_transports_of_a_composite_are_patient_and_fail_together():
    inner = {"type": "http", "url": "https://marquez.example"}
    found = patient({"type": "composite", "transports": {"a": inner}})
    assert found["continue_on_failure"] is False
    assert found["transports"]["a"]["retry"] == {"total": 0}
    assert "retry" not in inner
