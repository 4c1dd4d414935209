"""The one border at which foreign exceptions end: they quote cells, ours name positions.

Source: SPEC sections 3 and 16; DESIGN section 6, "Errors".
"""

from collections.abc import Callable
from typing import TypeVar

from datasource_governance.errors import GovernanceError, Problem, UnreadableSourceError

Result = TypeVar("Result")

MAXIMUM_POSITIONS_LISTED = 25
"""How many row numbers a problem names; its message still counts them all."""


def refused(what: str, kind: str, message: str, *names: str) -> UnreadableSourceError:
    """Build the refusal of a source for one reason."""
    return UnreadableSourceError(what, [Problem(kind=kind, message=message, names=names)])


def shielded(read: Callable[[], Result], otherwise: GovernanceError) -> Result:
    """Return what `read` returns; raise `otherwise` in place of any foreign exception.

    The replacement is raised after the foreign exception is gone, so that neither its text nor the
    frames that hold the data can be reached from ours.

    Raises:
        GovernanceError: raised by `read` itself, unchanged.
        GovernanceError: `otherwise`, or UnreadableSourceError of kind `too_large` when memory ran
            out; with neither cause nor context.
    """
    refusal = otherwise
    try:
        return read()
    except GovernanceError:
        raise
    except MemoryError:
        refusal = refused("the source", "too_large", "it does not fit into memory")
    except Exception:  # noqa: BLE001, S110 - readers raise anything, and every message may quote a cell
        pass
    except BaseException as error:
        # A panic inside Polars is no Exception, and its message may quote a cell as well.
        if type(error).__name__ != "PanicException":
            raise
    raise refusal


def first_positions(rows: list[int]) -> tuple[str, ...]:
    """Return the lowest positions a problem may list, as its `names`."""
    return tuple(str(row) for row in sorted(rows)[:MAXIMUM_POSITIONS_LISTED])
