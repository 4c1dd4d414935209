"""Mail, against a real server with certificates and passwords."""

import socket
import threading
from dataclasses import replace

import pytest

from datasource_governance.domain.event import event
from datasource_governance.errors import GuardError, ServiceUnavailableError
from datasource_governance.receivers.mail import Mail, Security
from datasource_governance_tests.domain.lifecycle import MIDDAY
from datasource_governance_tests.receivers.servers import (
    HOST,
    PASSWORD,
    USER,
    certificate,
    smtp_server,
)

SUPERSEDED = event(
    "event-1",
    "stage.superseded",
    datasource="orders",
    facts={"stage": "stage-1", "stage_fingerprint": "f", "base": None, "current": "m-1"},
    now=MIDDAY,
)
QUIET = event("event-2", "governance.applied", datasource="orders", facts={}, now=MIDDAY)


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """This machine trusts the mail server's certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path)))


@pytest.fixture
def server(tmp_path):
    with smtp_server(tmp_path) as running:
        yield running


def mail(port, **options) -> Mail:
    return replace(
        Mail(
            host=HOST,
            port=port,
            security=Security.STARTTLS,
            sender="governance@data.example",
            recipients=("ann@data.example", "bob@data.example"),
            user=USER,
            password=PASSWORD,
            public_url="https://governance.example",
        ),
        **options,
    )


def test_one_plain_message_goes_to_everybody(server, trusted):
    mailbox, port = server

    mail(port).deliver(SUPERSEDED)

    ((recipients, message),) = mailbox.messages
    assert recipients == ["ann@data.example", "bob@data.example"]
    assert message["From"] == "governance@data.example"
    assert message["To"] == "ann@data.example, bob@data.example"
    assert message["Subject"] == "orders: superseded (stage stage-1)"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "text/plain"
    assert message.get_content().splitlines() == [
        "datasource: orders",
        "stage: stage-1",
        "at: 2026-03-01 12:00:00+00:00",
        "current materialization: m-1",
        "stage fingerprint: f",
        "",
        "https://governance.example/governance/stages/stage-1",
    ]


def test_a_duplicate_is_known_by_its_message_id_and_date(server, trusted):
    mailbox, port = server

    for _ in range(2):
        mail(port).deliver(SUPERSEDED)

    first, second = mailbox.received
    assert first["Message-ID"] == second["Message-ID"] == "<event-1@data.example>"
    assert first["Date"] == second["Date"] == "Sun, 01 Mar 2026 12:00:00 +0000"


def test_an_event_that_concerns_nobody_is_accepted_silently():
    mail(1).deliver(QUIET)


def test_it_speaks_tls_from_the_first_byte(tmp_path, trusted):
    with smtp_server(tmp_path, starttls=False) as (mailbox, port):
        mail(port, security=Security.TLS, user=None).deliver(SUPERSEDED)

    assert len(mailbox.received) == 1


@pytest.mark.parametrize("security", Security)
def test_a_certificate_that_nobody_vouches_for_is_not_spoken_to(tmp_path, security):
    starttls = security is Security.STARTTLS
    with (
        smtp_server(tmp_path, starttls=starttls) as (mailbox, port),
        pytest.raises(ServiceUnavailableError) as raised,
    ):
        mail(port, security=security).deliver(SUPERSEDED)

    assert mailbox.messages == []
    assert "SSLCertVerificationError" in str(raised.value)


def test_a_wrong_password_is_told_without_it(server, trusted):
    with pytest.raises(ServiceUnavailableError) as raised:
        mail(server[1], password="zq-wrong").deliver(SUPERSEDED)  # noqa: S106 - a wrong one

    assert "zq-wrong" not in str(raised.value) + repr(mail(1))
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_taken_for_one_recipient_it_is_accepted(server, trusted):
    mailbox, port = server
    mailbox.refused = {"bob@data.example": "550 no such user"}

    mail(port).deliver(SUPERSEDED)

    assert [recipients for recipients, _ in mailbox.messages] == [["ann@data.example"]]


@pytest.mark.parametrize(
    ("reply", "error"),
    [("550 no such user", GuardError), ("451 try later", ServiceUnavailableError)],
)
def test_taken_for_nobody_it_is_refused_for_good_or_for_now(server, trusted, reply, error):
    mailbox, port = server
    mailbox.refused = dict.fromkeys(mail(port).recipients, reply)

    with pytest.raises(error):
        mail(port).deliver(SUPERSEDED)


@pytest.mark.parametrize(
    ("reply", "error"),
    [("554 zq-quoted", GuardError), ("452 zq-quoted", ServiceUnavailableError)],
)
def test_a_refused_message_is_told_without_the_servers_words(server, trusted, reply, error):
    mailbox, port = server
    mailbox.answer = reply

    with pytest.raises(error) as raised:
        mail(port).deliver(SUPERSEDED)

    assert "zq-quoted" not in str(raised.value)


def test_nobody_there_is_told():
    with pytest.raises(ServiceUnavailableError):
        mail(1).deliver(SUPERSEDED)


def test_a_server_without_tls_gets_neither_password_nor_message():
    """A server that offers nothing: whoever stands in the middle and strips STARTTLS."""
    heard = []

    def serve(listening):
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.write(b"220 plain\r\n")
            stream.flush()
            for line in stream:
                heard.append(line)
                stream.write(b"250 plain\r\n")
                stream.flush()

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        with pytest.raises(ServiceUnavailableError):
            mail(listening.getsockname()[1]).deliver(SUPERSEDED)
        thread.join()

    assert [line.split()[0] for line in heard] == [b"ehlo"]
