"""Asks a Dagster webserver over GraphQL, as an actor where it stands behind the gate.

What the gate refuses is raised here as what it is, with its code and sentence. A webserver without
a gate does not look at who asks.

Source: SPEC sections 6 and 16.
"""

import http.client
import json
from typing import Any
from urllib.parse import SplitResult, urlsplit

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import (
    GovernanceError,
    GuardError,
    InvalidArgumentError,
    ServiceUnavailableError,
)
from datasource_governance.signing import Signer

_SECONDS = 60
_MAXIMUM_BYTES = 64 * 1024 * 1024
_DEFAULT_PORTS = {"http": 80, "https": 443}


class DagsterClient:
    """Asks the webserver at an address as the actor of a signer, or as nobody."""

    def __init__(self, url: str, signer: Signer | None = None) -> None:
        """Take an address; nothing connects yet.

        Raises:
            InvalidArgumentError: when it is not of the form `http://host:port` or `https://…`.
        """
        self.url = url.rstrip("/")
        self._address = _parts(url)
        self._signer = signer

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the data that a query or mutation is answered with.

        Raises:
            GuardError: what the gate refused, with its code.
            ServiceUnavailableError: when no Dagster webserver answers there, or not now.
        """
        answer = self._answer(canonical_bytes({"query": query, "variables": variables}))
        data, errors = answer.get("data"), answer.get("errors")
        if errors:
            raise _refusal(errors, self.url)
        if not isinstance(data, dict):
            raise ServiceUnavailableError(
                f"no Dagster webserver answers at {self.url}; start one (`datasource-governance "
                "dev`), set GOVERNANCE_DAGSTER_URL, or use --in-process"
            )
        return data

    def _answer(self, body: bytes) -> dict[str, Any]:
        connection = self._connection()
        try:
            # Redirects are not followed: a token is for the one that was asked.
            connection.request("POST", f"{self._address.path}/graphql", body, self._headers())
            answer = json.loads(connection.getresponse().read(_MAXIMUM_BYTES))
        except (OSError, ValueError, http.client.HTTPException):
            return {}
        finally:
            connection.close()
        return answer if isinstance(answer, dict) else {}

    def _connection(self) -> http.client.HTTPConnection:
        is_secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        return kind(self._address.hostname or "", self._address.port, timeout=_SECONDS)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._signer is not None:
            token = self._signer.bearer_token(_origin(self._address))
            headers["Authorization"] = f"Bearer {token}"
        return headers


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.rstrip("/"))
        if parts.scheme in _DEFAULT_PORTS and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise InvalidArgumentError(
        "GOVERNANCE_DAGSTER_URL must be the address of a Dagster webserver, http://host:port"
    )


def _origin(address: SplitResult) -> str:
    """Return the origin of an address as browsers spell it."""
    host = address.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    is_default = address.port in (None, _DEFAULT_PORTS[address.scheme])
    return f"{address.scheme}://{shown}" + ("" if is_default else f":{address.port}")


def _refusal(errors: object, url: str) -> GovernanceError:
    """Return our own refusal; what others say could quote anything and is not repeated."""
    first = errors[0] if isinstance(errors, list) else None
    match first:
        case {"message": str(message), "extensions": {"code": "service_unavailable"}}:
            return ServiceUnavailableError(message)
        case {"message": str(message), "extensions": {"code": str(code)}}:
            return GuardError(message, code=code)
    return ServiceUnavailableError(f"Dagster at {url} could not answer; its log says why")
