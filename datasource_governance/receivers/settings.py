"""Who is told of events: one TOML file, `[[receiver]]` by `[[receiver]]`.

Source: SPEC section 13; the how-to guide on notifications.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.event import EVENT_TYPES, TOLD_TYPES
from datasource_governance.domain.policy_keys import (
    Constraint,
    Key,
    Record,
    Tag,
    Variants,
    read_document,
)
from datasource_governance.domain.policy_values import Choice, ListOf, Place, Text, Whole
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.lineage.events import DEFAULT_NAMESPACE, LINEAGE_TYPES
from datasource_governance.ports import UnitOfWork
from datasource_governance.receivers import entry_point, file, mail, openlineage, webhook
from datasource_governance.receivers.subscription import Subscription, Transport
from datasource_governance.settings_files import is_loopback, read_secret, read_toml

MAXIMUM_RECEIVERS = 16
SECRET_PREFIX = "whsec_"  # noqa: S105 - what Standard Webhooks puts before a secret
_SECRET_BYTES = range(24, 65)


def read_receivers(
    path: Path, public_url: str, work: Callable[[], UnitOfWork]
) -> tuple[Subscription, ...]:
    """Read the settings file.

    Relative paths in it are below its own directory. `public_url` is where browsers reach the
    governed webserver, for the links that people get. With `work` a receiver looks up what an event
    is about.

    Raises:
        InvalidPolicyError: with everything that is wrong with the file and the secrets it names.
        InvalidArgumentError: when it cannot be read.
    """
    settings = _settings(path.parent, public_url, work)
    return read_document(settings, read_toml(path), what=str(path))


_TEXT = Text(expected="a printable text that is not blank")
_NAME = Key(
    "name",
    Text(expected="a name of 1 to 63 of a-z 0-9 _ -", pattern="[a-z][a-z0-9_-]{0,62}"),
    required=True,
)
_ADDRESS = Text(expected="an e-mail address", pattern=r"[\w.+-]+@[A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class _Instant:
    expected: str = "an instant with its offset, 2026-12-01T00:00:00Z"

    def read(self, value: Json, place: Place) -> datetime | None:
        try:
            instant = datetime.fromisoformat(value if isinstance(value, str) else "")
        except ValueError:
            return place.refuse(self, value)
        return instant if instant.tzinfo is not None else place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class _Url:
    expected: str = "an https address, or http on a loopback address, without credentials"

    def read(self, value: Json, place: Place) -> str | None:
        if isinstance(value, str) and _is_safe(value):
            return value
        # The path of an address can be a secret: it is not repeated.
        place.report("invalid_value", f"expected {self.expected}")
        return None


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return bool(host) and is_private and "@" not in parts.netloc and url.isprintable()


@dataclass(frozen=True, slots=True)
class _Secret:
    """The text of a private file below a directory."""

    base: Path
    minimum: int = 1
    expected: str = "the name of a private file"

    def read(self, value: Json, place: Place) -> str | None:
        name = _TEXT.read(value, place)
        if name is None:
            return None
        try:
            return read_secret(self.base / name, self.minimum)
        except InvalidArgumentError as error:
            place.report("invalid_value", str(error))
        return None


@dataclass(frozen=True, slots=True)
class _SigningSecret:
    base: Path
    expected: str = f"a private file with {SECRET_PREFIX} and base64 of 24 to 64 bytes"

    def read(self, value: Json, place: Place) -> bytes | None:
        text = _Secret(self.base).read(value, place)
        if text is None:
            return None
        try:
            secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            secret = b""
        if text.startswith(SECRET_PREFIX) and len(secret) in _SECRET_BYTES:
            return secret
        place.report("invalid_value", f"expected {self.expected}")
        return None


@dataclass(frozen=True, slots=True)
class _EntryPoint:
    expected: str = f"an entry point of the group {entry_point.GROUP}"

    def read(self, value: Json, place: Place) -> EntryPoint | None:
        found = entry_point.find_entry_point(value) if isinstance(value, str) else None
        return found or place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class _Together:
    """A user has a password, and nobody else has one."""

    def check(self, given: Collection[str], _values: Mapping[str, object], place: Place) -> None:
        if ("user" in given) != ("password_file" in given):
            place.report("missing_key", "user and password_file are given together", "user")


@dataclass(frozen=True, slots=True)
class _LineageTransport:
    """The configuration of a transport, as openlineage-python has it, with its secret in a file."""

    base: Path
    expected: str = "a table with a type, and what that transport needs"

    def read(self, value: Json, place: Place) -> Mapping[str, object] | None:
        if find_spec("openlineage") is None:
            message = (
                "openlineage-python is not installed: pip install 'datasource-governance[lineage]'"
            )
            place.report("invalid_value", message)
        return self._configuration(value, place)

    def _configuration(self, value: Json, place: Place) -> Mapping[str, object] | None:
        if not isinstance(value, dict):
            return place.refuse(self, value)
        place.at("type").read(Tag(openlineage.TRANSPORTS, "invalid_value"), value.get("type"))
        given: dict[str, object] = {**value}
        if "api_key_file" in given:
            del given["api_key_file"]
            secret = _Secret(self.base).read(value["api_key_file"], place.at("api_key_file"))
            given["auth"] = {"type": "api_key", "apiKey": secret}
        if value.get("type") == "composite":
            given["transports"] = self._composed(value.get("transports"), place.at("transports"))
        return given

    def _composed(self, value: Json, place: Place) -> Mapping[str, object] | None:
        """Read what a composite is made of: tables by their names, or a list of them."""
        named = dict(enumerate(value)) if isinstance(value, list) else value
        if not isinstance(named, dict) or not named:
            return place.refuse(self, value)
        return {str(n): self._configuration(one, place.at(n)) for n, one in named.items()}


def _settings(
    base: Path, public_url: str, work: Callable[[], UnitOfWork]
) -> Record[tuple[Subscription, ...]]:
    records = {
        "webhook": _receiver(
            Key("url", _Url(), required=True),
            Key("secret_file", _SigningSecret(base), required=True),
            build=lambda url, secret_file: webhook.Webhook(
                url=url, secret=secret_file, public_url=public_url
            ),
        ),
        "mail": _receiver(
            *_mail_keys(base),
            build=lambda password_file, **given: mail.Mail(
                password=password_file or "", public_url=public_url, **given
            ),
            constraints=(_Together(),),
        ),
        "file": _receiver(
            Key("path", _TEXT, required=True), build=lambda path: file.File(path=base / path)
        ),
        "openlineage": _receiver(
            Key("namespace", _TEXT, default=DEFAULT_NAMESPACE),
            Key("transport", _LineageTransport(base), required=True),
            build=lambda **given: openlineage.OpenLineage(work=work, **given),
            events=LINEAGE_TYPES,
        ),
        "entry_point": _receiver(
            Key("callable", _EntryPoint(), required=True),
            build=lambda callable: entry_point.Callable(  # noqa: A006 - the word of the settings
                entry_point=callable, public_url=public_url
            ),
        ),
    }
    receiver = Variants(
        by="kind",
        records=records,
        otherwise=Record(keys=(_NAME,), build=Subscription, named_by="name", is_open=True),
        unknown="invalid_value",
    )
    receivers = ListOf(
        item=receiver,
        expected=f"1 to {MAXIMUM_RECEIVERS} tables [[receiver]]",
        minimum=1,
        maximum=MAXIMUM_RECEIVERS,
        repeated="conflicting_keys",
        distinct_by="name",
    )
    return Record(
        keys=(Key("receiver", receivers, required=True),), build=lambda receiver: receiver
    )


def _receiver(
    *keys: Key,
    build: Callable[..., Transport],
    constraints: tuple[Constraint, ...] = (),
    events: tuple[str, ...] = TOLD_TYPES,
) -> Record[Subscription]:
    """Return the table of one kind: its own keys, and those that every receiver has.

    `events` are those that it gets where the settings name none.
    """
    types = ListOf(
        item=Tag(EVENT_TYPES, "invalid_value"), expected="a list of event types", minimum=1
    )
    return Record(
        keys=(_NAME, Key("events", types, default=events), Key("since", _Instant()), *keys),
        build=lambda name, events, since, **given: Subscription(
            name=name, transport=build(**given), events=frozenset(events), since=since
        ),
        constraints=constraints,
        named_by="name",
    )


def _mail_keys(base: Path) -> tuple[Key, ...]:
    recipients = ListOf(item=_ADDRESS, expected="a list of e-mail addresses", minimum=1)
    return (
        Key("host", _TEXT, required=True),
        Key("port", Whole(minimum=1, maximum=65535), default=587),
        Key("security", Choice(mail.Security), default=mail.Security.STARTTLS),
        Key("sender", _ADDRESS, required=True),
        Key("recipients", recipients, required=True),
        Key("user", _TEXT),
        Key("password_file", _Secret(base)),
    )
