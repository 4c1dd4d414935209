"""Servers that receivers talk to, on this machine: HTTP, and SMTP with TLS."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HOST = "127.0.0.1"
USER, PASSWORD = "governance", "zq-password-5521"


class HttpServer(ThreadingHTTPServer):
    """Keeps every request as (path, headers, body) and answers with `status`.

    While `is_silent` it keeps the request and answers only when it is closed.
    """

    def __init__(self):
        super().__init__((HOST, 0), _Request)
        self.status = 200
        self.is_silent = False
        self.closing = threading.Event()
        self.requests = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/hook"


class _Request(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        server.requests.append((self.path, dict(self.headers), body))
        if server.is_silent:
            server.closing.wait()
            return
        self.send_response(server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def http_server() -> Iterator[HttpServer]:
    server = HttpServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Mailbox:
    """Keeps messages as (recipients, message); refuses recipients and contents when told to."""

    def __init__(self):
        self.messages = []
        self.refused = {}
        self.answer = "250 OK"

    @property
    def received(self):
        return [message for _, message in self.messages]

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802 - aiosmtpd's name
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):  # noqa: N802 - aiosmtpd's name
        if self.answer.startswith("250"):
            message = message_from_bytes(envelope.content, policy=policy.default)
            self.messages.append((envelope.rcpt_tos, message))
        return self.answer


@contextmanager
def smtp_server(directory: Path, *, starttls: bool = True) -> Iterator[tuple[Mailbox, int]]:
    """Yield a mailbox and the port of a server; with STARTTLS it asks for a password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(directory))
    mailbox, loop = Mailbox(), asyncio.new_event_loop()
    guarded = {
        "tls_context": context,
        "require_starttls": True,
        "auth_required": True,
        "authenticator": _authenticate,
    }

    def connection() -> SMTP:
        return SMTP(mailbox, loop=loop, hostname=HOST, **(guarded if starttls else {}))

    listening = loop.create_server(connection, HOST, 0, ssl=None if starttls else context)
    server = loop.run_until_complete(listening)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield mailbox, server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    """Close a server and wait until nobody talks to it any more."""
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _authenticate(_server: SMTP, _session, _envelope, _mechanism, given) -> AuthResult:
    known = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known)


def certificate(directory: Path) -> Path:
    """Return a file with a key and a certificate of this machine that nobody else has signed."""
    path = directory / "mail.pem"
    if path.exists():
        return path
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + made.public_bytes(Encoding.PEM))
    return path
