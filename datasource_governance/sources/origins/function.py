"""An origin that a Python function reads: it says itself in which version.

Source: SPEC sections 6 and 11.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from datasource_governance.domain.origin import (
    MAXIMUM_VERSION_CHARACTERS,
    PythonOrigin,
    usable_token,
)
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.origins.answer import Answer
from datasource_governance.sources.refusal import refused, shielded


class NotModified(Enum):
    """The class of `NOT_MODIFIED`, which a function answers while its origin stays as it was."""

    NOT_MODIFIED = "not_modified"


NOT_MODIFIED: Final = NotModified.NOT_MODIFIED
"""What a function answers whose origin is still in the version that it was told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OriginData:
    """What a function read of its origin.

    `data` is a pandas or Polars frame or an Arrow table. `version` is a text of 1 to 1000 printable
    characters, which is kept, never shown, and handed to the function the next time; without one it
    is always read.
    """

    data: object = field(repr=False)
    version: str | None = None


def ask_function(origin: PythonOrigin, version: str | None = None) -> Answer | None:
    """Return what a function reads, or None where it answers that the version is still the same.

    It is called in this process. Nothing of what it raises is kept: it may quote a cell.

    Raises:
        InvalidArgumentError: there is no such function, or it answers with something else.
        UnreadableSourceError: kind `unreadable` when it fails, and as `from_data`.
    """
    failed = refused(
        origin.function,
        "unreadable",
        "the function raised an error, of which nothing is said here: it may quote a cell; call "
        "it yourself to see it",
    )
    function = _found(origin.function)
    answer = shielded(lambda: _outcome(function, version), failed)
    if answer is None:
        raise failed
    if answer is NOT_MODIFIED:
        return None
    if not isinstance(answer, OriginData):
        raise InvalidArgumentError(
            f"{origin.function} answers with a {type(answer).__name__}; expected OriginData or "
            "NOT_MODIFIED"
        )
    if answer.version is not None and usable_token(answer.version) is None:
        raise InvalidArgumentError(
            f"the version that {origin.function} gives is no text of 1 to "
            f"{MAXIMUM_VERSION_CHARACTERS} printable characters"
        )
    table = from_data(answer.data)
    return Answer(name=origin.function, table=table, version=answer.version)


def _outcome(function: Callable[[str | None], object], version: str | None) -> object:
    """Return what a function answers; None also where it raised, even an error of our own."""
    try:
        return function(version)
    except (Exception, SystemExit):  # noqa: BLE001 - whatever it raises may quote a cell
        return None


def _found(name: str) -> Callable[[str | None], object]:
    module, _, function = name.partition(":")
    missing = InvalidArgumentError(
        f"the function {name} cannot be imported; it must be where this process imports from"
    )
    found = shielded(lambda: getattr(importlib.import_module(module), function), missing)
    if not callable(found):
        raise missing
    return found  # type: ignore[no-any-return]  # whatever has the name
