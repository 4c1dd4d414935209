"""How the governed webserver is run: one TOML file, read once.

Source: SPEC sections 16 and 17; the reference page of the webserver.
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.policy_keys import Different, Key, Record, read_document
from datasource_governance.domain.policy_values import ListOf, Place, Text, Whole
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.settings_files import is_loopback, read_secret, read_toml

ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
)
"""Signatures that a token may have: asymmetric ones only."""
DEFAULT_ALGORITHMS = frozenset(("RS256", "ES256"))
MINIMUM_SECRET_CHARACTERS = 32

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """An authenticating proxy: where it connects from, and the headers it sends.

    `secret` is what the proxy puts into `secret_header`; `actor_header` names the actor.
    """

    peers: tuple[Network, ...]
    actor_header: str
    secret_header: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """An OpenID Connect issuer whose tokens are taken.

    `keys` is the path of a JWK set, or its address, https. `header` holds the token: with the
    scheme Bearer in `authorization`, else bare. `claim` is what becomes the actor.
    """

    issuer: str
    audience: str
    keys: str
    claim: str = "sub"
    header: str = "authorization"
    algorithms: frozenset[str] = DEFAULT_ALGORITHMS


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Everything the webserver is told.

    `host` and `port` are where it listens. `public_url` is how browsers reach it, scheme and host
    only; without one it listens on a loopback address and is reached there. `session_hours` bounds
    a sign-in. `directory` keeps local accounts and the session key. `metrics_token` lets Prometheus
    read metrics.
    """

    directory: Path
    host: str = "127.0.0.1"
    port: int = 3000
    public_url: str | None = None
    session_hours: int = 12
    proxy: ProxySettings | None = None
    token: TokenSettings | None = None
    metrics_token: str | None = field(default=None, repr=False)

    @property
    def accounts_file(self) -> Path:
        """Local accounts; without the file nobody has one."""
        return self.directory / "accounts.json"

    @property
    def session_key_file(self) -> Path:
        """The key that signs session cookies; made when there is none."""
        return self.directory / "session.key"

    @property
    def origins(self) -> frozenset[str]:
        """The origins whose pages are ours, as browsers spell them."""
        if self.public_url is not None:
            return frozenset({self.public_url})
        hosts = ("127.0.0.1", "localhost", "[::1]")
        return frozenset(f"http://{host}:{self.port}" for host in hosts)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it over TLS."""
        return self.public_url is not None and self.public_url.startswith("https:")


def read_web_settings(
    path: Path | None, directory: Path, *, host: str | None = None, port: int | None = None
) -> WebSettings:
    """Read the settings file, if one is named; `host` and `port` override it.

    Relative paths in it are below its own directory. `directory` is where accounts and the session
    key are kept unless the file says another.

    Raises:
        InvalidPolicyError: with everything that is wrong with the file.
        InvalidArgumentError: when it or the proxy's secret cannot be read, or when the webserver
            would be reached from elsewhere without a `public_url`.
    """
    given = read_document(
        _record(path.parent if path else Path()), read_toml(path) if path else {}, what=str(path)
    )
    given["directory"] = given["directory"] or directory
    overriding = {"host": host, "port": port}
    given |= {key: value for key, value in overriding.items() if value is not None}
    made = WebSettings(**given)
    if made.public_url is None and not is_loopback(made.host):
        raise InvalidArgumentError(
            f"{made.host} is not a loopback address: say how browsers reach the webserver, "
            'public_url = "https://…"'
        )
    return made


_TEXT = Text(expected="a printable text that is not blank")
_HEADER = Text(expected="the name of a header", pattern=r"[A-Za-z0-9-]{1,64}")
_ALGORITHM = Text(
    expected=f"one of {', '.join(sorted(ALGORITHMS))}", pattern="|".join(sorted(ALGORITHMS))
)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Scheme and host, as browsers spell an origin; plain http only on this machine."""

    expected: str = "https://host, or http://host on a loopback address, without a path"

    def read(self, value: Json, place: Place) -> str | None:
        try:
            parts = urlsplit(value if isinstance(value, str) else "")
            origin = f"{parts.scheme}://{parts.netloc}".lower()
            is_safe = parts.scheme == "https" or is_loopback(parts.hostname or "")
        except ValueError:
            return place.refuse(self, value)
        is_origin = parts.scheme in ("http", "https") and parts.netloc and "@" not in origin
        if is_origin and is_safe and value in (origin, f"{origin}/"):
            return origin
        return place.refuse(self, value)


@dataclass(frozen=True, slots=True)
class _Network:
    expected: str = "an address or a network such as 10.0.0.0/24"

    def read(self, value: Json, place: Place) -> Network | None:
        try:
            return ipaddress.ip_network(value if isinstance(value, str) else "")
        except ValueError:
            place.refuse(self, value)
        return None


def _record(base: Path) -> Record[dict[str, Any]]:
    proxy = Record(
        keys=(
            Key(
                "peers",
                ListOf(item=_Network(), expected="a list of networks", minimum=1),
                required=True,
            ),
            Key("actor_header", _HEADER, required=True),
            Key("secret_header", _HEADER, required=True),
            Key("secret_file", _TEXT, required=True),
        ),
        build=lambda secret_file, **given: ProxySettings(
            secret=read_secret(base / secret_file, MINIMUM_SECRET_CHARACTERS), **given
        ),
        constraints=(Different("actor_header", "secret_header"),),
    )
    token = Record(
        keys=(
            Key("issuer", _TEXT, required=True),
            Key("audience", _TEXT, required=True),
            Key(
                "keys",
                Text(expected="a file or https address", pattern="(?!http:).+"),
                required=True,
            ),
            Key("claim", _TEXT, default="sub"),
            Key("header", _HEADER, default="authorization"),
            Key(
                "algorithms",
                ListOf(item=_ALGORITHM, expected="a list of algorithms", minimum=1),
                default=tuple(DEFAULT_ALGORITHMS),
            ),
        ),
        build=lambda keys, algorithms, **given: TokenSettings(
            keys=keys if keys.startswith("https:") else str(base / keys),
            algorithms=frozenset(algorithms),
            **given,
        ),
    )
    metrics = Record(
        keys=(Key("token_file", _TEXT, required=True),),
        build=lambda token_file: read_secret(base / token_file, MINIMUM_SECRET_CHARACTERS),
    )
    return Record(
        keys=(
            Key("directory", _TEXT),
            Key("host", _TEXT, default="127.0.0.1"),
            Key("port", Whole(minimum=1, maximum=65535), default=3000),
            Key("public_url", _Origin()),
            Key("session_hours", Whole(minimum=1, maximum=7 * 24), default=12),
            Key("proxy", proxy),
            Key("token", token),
            Key("metrics", metrics),
        ),
        build=lambda directory, metrics, **given: {
            "directory": base / directory if directory else None,
            "metrics_token": metrics,
            **given,
        },
    )
