"""Files by their suffix: local ones here, those behind a URL in a child process.

Source: SPEC section 3.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeGuard

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources.arrow_ipc import read_arrow
from datasource_governance.sources.child import Content, decode_in_child
from datasource_governance.sources.csv.read import read_csv
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits, Source, check_file_bytes
from datasource_governance.sources.parquet.read import read_parquet
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

_READERS: Final[Mapping[str, Callable[[Source, Limits], "pa.Table"]]] = {
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".ipc": read_arrow,
}


def read_file(
    path: str | os.PathLike[str], csv: CsvOptions | None = None, limits: Limits = DEFAULT_LIMITS
) -> "pa.Table":
    """Read `.csv`, `.parquet`, `.arrow`, `.feather` or `.ipc`, in any case, into the typed form.

    `csv` says how a CSV file is written; other files say so themselves. No format is guessed from
    the content. A text with `://` is an address of fsspec, whose file a child process decodes.

    Raises:
        UnreadableSourceError: kind `unknown_format`, or what the reader of the format refuses; for
            an address also `unreadable` and what `decode_in_child` refuses, naming the last part of
            its path and never the rest, which may hold a password.
    """
    if is_address(path):
        return _read_address(path, csv or CsvOptions(), limits)
    return _read(Path(path).name, Path(path), csv or CsvOptions(), limits)


def is_address(path: str | os.PathLike[str]) -> TypeGuard[str]:
    """Tell whether a path is an address of fsspec and no local file."""
    return isinstance(path, str) and "://" in path


def read_content(content: Content) -> "pa.Table":
    """Read the bytes of a file by the suffix of its name, in this process.

    Raises:
        UnreadableSourceError: as `read_file`.
    """
    return _read(content.name, content.stored, content.csv, content.limits)


def _read(name: str, source: Source, csv: CsvOptions, limits: Limits) -> "pa.Table":
    suffix = known_suffix(name)
    return read_csv(source, csv, limits) if suffix == _CSV else _READERS[suffix](source, limits)


_CSV = ".csv"


def known_suffix(name: str) -> str:
    """Return the suffix of a file's name in lower case.

    Raises:
        UnreadableSourceError: kind `unknown_format`.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix != _CSV and suffix not in _READERS:
        known = ", ".join((_CSV, *_READERS))
        raise refused(name, "unknown_format", f"the name must end in one of {known}")
    return suffix


def _read_address(address: str, csv: CsvOptions, limits: Limits) -> "pa.Table":
    name = name_of_address(address)
    known_suffix(name)
    otherwise = refused(name, "unreadable", "the address cannot be opened or read")
    stored = shielded(lambda: _fetched(address, name, limits), otherwise)
    return decode_in_child(Content(name=name, stored=stored, csv=csv, limits=limits))


def name_of_address(address: str) -> str:
    """Return the last part of the path, without what may be secret before and behind it."""
    if address.startswith(("http://", "https://")):
        address = re.split("[?#]", address, maxsplit=1)[0]
    return address.rpartition("/")[2].rpartition("@")[2]


def _fetched(address: str, name: str, limits: Limits) -> bytes:
    import fsspec  # type: ignore[import-untyped]  # it has no types

    stored: bytes | None = None
    try:
        with fsspec.open(address, "rb") as file:
            stored = file.read(limits.file_bytes + 1)
    except FileNotFoundError:
        pass
    if stored is None:
        raise refused(name, "not_found", "no such file")
    check_file_bytes(name, len(stored), limits)
    return stored
