"""A governed webserver over a real Dagster and a real database, and a client that is no browser."""

import http.client
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import dagster as dg
import uvicorn
from argon2 import PasswordHasher
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from itsdangerous import TimestampSigner
from starlette.types import ASGIApp

from datasource_governance.composition import Application
from datasource_governance.domain.actor import canonical_principal, person
from datasource_governance.web.accounts import Account, read_accounts, write_accounts
from datasource_governance.web.gateway import Gateway
from datasource_governance.web.server import governed_app, server_configuration
from datasource_governance.web.settings import WebSettings

PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts that only tests have
SECRET = "s" * 40
LOCATION = "orders_location.py"
REPOSITORY = "__repository__"
CODE = """
import dagster as dg

class Delivery(dg.Config):
    delivery: str = "none"

@dg.asset(key=["orders", "stage"])
def stage(config: Delivery) -> None: ...

@dg.asset(key=["orders", "current"], deps=[stage])
def current() -> None: ...

@dg.op
def nothing() -> None: ...

@dg.job
def apply_retention_plan(): nothing()

@dg.job
def report(): nothing()

@dg.sensor(job=report)
def waiting(context): return dg.SkipReason("waiting")

defs = dg.Definitions(
    assets=[stage, current],
    jobs=[
        dg.define_asset_job("stage_orders", dg.AssetSelection.assets(["orders", "stage"])),
        dg.define_asset_job("promote_orders", dg.AssetSelection.assets(["orders", "current"])),
        apply_retention_plan,
        report,
    ],
    sensors=[waiting],
)
"""
_START_SECONDS = 30
# A hash names what it cost, so whoever checks it pays no more: a quarter of a second for ours.
_CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@contextmanager
def workspace(
    directory: Path, code: str = CODE, **instance_settings
) -> Iterator[WorkspaceProcessContext]:
    """Serve a small code location on an instance of its own."""
    file = directory / LOCATION
    file.write_text(code)
    target = PythonFileTarget(str(file), None, str(directory), LOCATION)
    with (
        dg.instance_for_test(
            overrides={"nux": {"enabled": False}, **instance_settings}
        ) as instance,
        WorkspaceProcessContext(instance, target) as context,
    ):
        yield context


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str

    def json(self):
        return json.loads(self.text)

    @property
    def refusal(self) -> str:
        """The message of a refused GraphQL request; empty when it was answered."""
        return self.json()["errors"][0]["message"] if "errors" in self.json() else ""


@dataclass
class Client:
    """Keeps cookies as a browser does, and sends what a page of the server would."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fetch(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        sent = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", **self.headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                method, path, body, {key: value for key, value in sent.items() if value is not None}
            )
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()
        for header in response.headers.get_all("Set-Cookie") or ():
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return answer

    def get(self, path: str, accept: str = "text/html", **headers: str) -> Answer:
        return self.fetch("GET", path, headers={"Accept": accept, **headers})

    def form_token(self) -> str:
        page = self.get("/signin").text
        return page.split('name="token" value="')[1].split('"')[0]

    def sign_in(self, name: str, password: str = PASSWORD, **form: str) -> Answer:
        fields = {"token": self.form_token(), "name": name, "password": password, **form}
        return self.post_form("/signin", fields)

    def post_form(self, path: str, fields: Mapping[str, str], **headers: str | None) -> Answer:
        media_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.fetch("POST", path, urlencode(fields), {**media_type, **headers})

    def ask(self, query: str, headers: Mapping[str, str | None] | None = None, **variables):
        body = json.dumps({"query": query, "variables": variables})
        return self.fetch(
            "POST", "/graphql", body, {"Content-Type": "application/json", **(headers or {})}
        )


@dataclass(frozen=True)
class Serving:
    """A running webserver."""

    settings: WebSettings
    context: WorkspaceProcessContext
    signed_in: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return self.settings.port

    def client(self, name: str | None = None) -> Client:
        """Return a client without a session, or with the one of an account."""
        if name is None:
            return Client(self.port)
        if name not in self.signed_in:
            client = Client(self.port)
            assert client.sign_in(name).status == 303
            self.signed_in[name] = client.cookies
        return Client(self.port, dict(self.signed_in[name]))

    def forged_cookie(self, payload: bytes, *, key: str | None = None, age: int = 0) -> str:
        """Return a session cookie signed with the server's key, or another one, some time ago."""

        class Aged(TimestampSigner):
            def get_timestamp(self) -> int:
                return super().get_timestamp() - age

        signing = key or self.settings.session_key_file.read_text()
        return Aged(signing).sign(payload).decode()


@contextmanager
def serving(
    context: WorkspaceProcessContext, settings: WebSettings, application: Application, **options
) -> Iterator[Serving]:
    """Serve in a thread of this process, on a port that is free.

    Unless a test names a `gateway`, it is one whose key nobody registered.
    """
    settings = replace(settings, port=free_port())
    options.setdefault("gateway", Gateway(settings.directory, application.settings.tenant))
    with listening(governed_app(context, settings, application, **options), settings):
        yield Serving(settings, context)


@contextmanager
def listening(app: ASGIApp, settings: WebSettings) -> Iterator[None]:
    """Serve any application in a thread of this process."""
    server = uvicorn.Server(server_configuration(app, settings))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + _START_SECONDS
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield
    server.should_exit = True
    thread.join()


def with_accounts(settings: WebSettings, *names: str) -> WebSettings:
    """Give each name an account of the same actor, unless it has one, all with one password."""
    made = {name: _account(name) for name in names}
    accounts = {**made, **read_accounts(settings.accounts_file)}
    write_accounts(settings.accounts_file, accounts)
    return settings


def _account(name: str) -> Account:
    return Account(
        name=canonical_principal(name), actor=person(name), password_hash=_CHEAP.hash(PASSWORD)
    )


def without_account(settings: WebSettings, name: str) -> None:
    """End an account."""
    accounts = read_accounts(settings.accounts_file)
    del accounts[name]
    write_accounts(settings.accounts_file, accounts)


def unique_actor() -> str:
    return f"actor-{secrets.token_hex(4)}"
