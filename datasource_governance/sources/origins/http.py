"""A file at an HTTP address: asked for only if it changed, bounded in bytes, time and redirects.

Source: SPEC sections 3 ("Hostile files") and 11; RFC 9110, sections 8.8 and 13.
"""

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from http.client import HTTPResponse
from typing import IO, NamedTuple

from typing_extensions import override

from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.origin import usable_token
from datasource_governance.sources.limits import MEBIBYTE, Limits, check_file_bytes
from datasource_governance.sources.refusal import refused, shielded

MAXIMUM_REDIRECTS = 5
SILENCE_SECONDS = 30.0
"""How long a server may send nothing."""
TRANSFER_SECONDS = 300.0
"""How long the whole answer may take."""
_CONDITIONS: Mapping[str, str] = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
"""What names a version in an answer, and the header that asks for any other one."""


class Fetched(NamedTuple):
    """The bytes of a file, and what its server calls this version of it."""

    stored: bytes
    version: str | None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few, only to HTTP, and never from TLS to none."""

    max_redirections = MAXIMUM_REDIRECTS

    @override
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        is_secure = newurl.startswith("https://")
        if not is_secure and (req.type == "https" or not newurl.startswith("http://")):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # typeshed wants the class of http.client


def fetch_http(address: str, name: str, version: str | None, limits: Limits) -> Fetched | None:
    """Return what is at an address, or None where it is still the version that is named.

    Raises:
        UnreadableSourceError: kinds `not_found`, `too_large`, `too_slow` and `unreadable`, which
            tells the status of the answer and nothing else of it.
    """
    unreadable = refused(name, "unreadable", "the address cannot be opened or read")
    return shielded(lambda: _fetched(address, name, version, limits), unreadable)


def _fetched(address: str, name: str, version: str | None, limits: Limits) -> Fetched | None:
    opener = urllib.request.build_opener(_Redirects())
    request = urllib.request.Request(address, headers=_conditions(version))  # noqa: S310 - the declaration's own address, http or https
    try:
        with opener.open(request, timeout=SILENCE_SECONDS) as response:
            return _read(response, name, limits)
    except urllib.error.HTTPError as error:
        error.close()
        status = error.code
    if status == HTTPStatus.NOT_MODIFIED and version is not None:
        return None
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        raise refused(name, "not_found", "no such file")
    raise refused(name, "unreadable", f"the server answered with status {status}", str(status))


def _read(response: HTTPResponse, name: str, limits: Limits) -> Fetched:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise refused(name, "unreadable", "the server sent it encoded, which was not asked for")
    deadline = time.monotonic() + TRANSFER_SECONDS
    parts, size = list[bytes](), 0
    while part := response.read1(MEBIBYTE):
        parts.append(part)
        size += len(part)
        check_file_bytes(name, size, limits)
        if time.monotonic() > deadline:
            raise refused(name, "too_slow", "the server takes too long to send it")
    if response.length:
        raise refused(name, "unreadable", "the server did not send all of it")
    return Fetched(b"".join(parts), _version(response.headers))


def _version(headers: Message) -> str | None:
    """Return what a server calls a version: every name that it gives it, as canonical JSON."""
    given = {name: headers[name] for name in _CONDITIONS if headers[name]}
    return usable_token(canonical_bytes(given).decode()) if given else None


def _conditions(version: str | None) -> dict[str, str]:
    """Return the headers that ask for any other version."""
    named = load_canonical(version.encode()) if version else {}
    if not isinstance(named, dict):
        return {}
    return {header: str(named[name]) for name, header in _CONDITIONS.items() if named.get(name)}
