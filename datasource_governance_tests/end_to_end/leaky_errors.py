"""Errors that leak, each by one face only."""

from collections.abc import Callable, Mapping

from datasource_governance.errors import EvaluationError, GovernanceError


def caught(action: Callable[[], object]) -> Exception:
    """Return what an action raises."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - any is planted
        return error
    raise AssertionError("nothing was raised")


def _with_note(bait: str) -> Exception:
    error = GovernanceError("refused")
    error.add_note(bait)
    return error


def _with_attribute(bait: str) -> Exception:
    return GovernanceError("refused", cell=bait)


def _with_cause(bait: str) -> Exception:
    error = GovernanceError("refused")
    error.__cause__ = ValueError(bait)
    error.__suppress_context__ = True
    return error


def _with_context(bait: str) -> Exception:
    """Raise as `raise … from None` inside an `except` does, which hides a context and keeps it."""

    def convert() -> None:
        try:
            int(bait)
        except ValueError:
            raise GovernanceError("refused") from None

    return caught(convert)


def _with_hidden_frames(bait: str) -> Exception:
    """Hide an exception that says nothing itself, but whose frames hold a cell."""

    def convert(cell: str) -> None:
        raise ValueError("no value in this message")

    error = EvaluationError("nothing in this one either")
    error.__context__ = caught(lambda: convert(bait))
    return error


ERRORS: Mapping[str, Callable[[str], Exception]] = {
    "message": GovernanceError,
    "repr": GovernanceError,
    "arguments": lambda bait: caught(lambda: int(bait)),
    "attributes": _with_attribute,
    "notes": _with_note,
    "cause": _with_cause,
    "context": _with_context,
    "frames of cause and context": _with_hidden_frames,
    "printed traceback": _with_note,
    "pickle": _with_attribute,
}
"""An error with a leak in each face."""
