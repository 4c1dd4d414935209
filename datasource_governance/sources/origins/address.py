"""A file at any address that fsspec reads, decoded in a child process.

Source: SPEC sections 3 and 11.
"""

import hashlib
from contextlib import suppress

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import AddressOrigin, usable_token
from datasource_governance.sources.child import Content, decode_in_child
from datasource_governance.sources.files import known_suffix, name_of_address
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits, check_file_bytes
from datasource_governance.sources.origins.answer import Answer
from datasource_governance.sources.origins.http import Fetched, fetch_http
from datasource_governance.sources.refusal import refused, shielded


def read_address(
    origin: AddressOrigin,
    csv: CsvOptions,
    version: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Answer | None:
    """Return what is at an address, or None where it is still the version that is named.

    Messages name the last part of the address and never the rest, which may hold a token.

    Raises:
        UnreadableSourceError: as `fetch_http` and `decode_in_child`; kind `unknown_format`.
    """
    name = _name(origin)
    known_suffix(name)
    if origin.url.startswith(("http://", "https://")):
        fetched = fetch_http(origin.url, name, version, limits)
    else:
        fetched = _fetch_file(origin.url, name, version, limits)
    if fetched is None:
        return None
    content = Content(name=name, stored=fetched.stored, csv=csv, limits=limits)
    return Answer(
        name=name,
        table=decode_in_child(content),
        sha256=Sha256(hashlib.sha256(fetched.stored).hexdigest()),
        version=fetched.version,
    )


def _name(origin: AddressOrigin) -> str:
    """Return the last part of an address, with the suffix of its declared format."""
    name = name_of_address(origin.url)
    return name if origin.format is None else f"{name or 'origin'}.{origin.format}"


def _fetch_file(address: str, name: str, version: str | None, limits: Limits) -> Fetched | None:
    unreadable = refused(name, "unreadable", "the address cannot be opened or read")
    return shielded(lambda: _fetched(address, name, version, limits), unreadable)


def _fetched(address: str, name: str, version: str | None, limits: Limits) -> Fetched | None:
    with suppress(FileNotFoundError):
        fetched = _read(address, version, limits)
        if fetched is not None:
            check_file_bytes(name, len(fetched.stored), limits)
        return fetched
    raise refused(name, "not_found", "no such file")


def _read(address: str, version: str | None, limits: Limits) -> Fetched | None:
    import fsspec  # type: ignore[import-untyped]  # it has no types

    files, path = fsspec.core.url_to_fs(address)
    # What it remembers of the folder may be older than the file.
    files.invalidate_cache()
    before: str = files.ukey(path)
    if before == version:
        return None
    with files.open(path, "rb") as file:
        stored: bytes = file.read(limits.file_bytes + 1)
    files.invalidate_cache()
    # Whatever was read while it was replaced is in no version.
    return Fetched(stored, usable_token(before) if files.ukey(path) == before else None)
