"""The border of evaluation: an exception inside it is known outside only as "did not work".

Source: SPEC section 5, "No cell value leaves evaluation".
"""

from collections.abc import Callable
from typing import TypeVar

from datasource_governance.errors import EvaluationError, GovernanceError
from datasource_governance.sources.refusal import refused, shielded

Result = TypeVar("Result")


def attempt(compute: Callable[[], Result]) -> Result | None:
    """Return what `compute` returns, or None where it raised; nothing of the exception survives."""
    try:
        return shielded(compute, refused("table", "not_evaluated", "could not be evaluated"))
    except GovernanceError:
        return None


def not_evaluable() -> EvaluationError:
    """Return the error that stands for whatever went wrong with a payload."""
    return EvaluationError(
        "the payload could not be evaluated; nothing of it is said here, because errors of "
        "the libraries used quote cells"
    )
