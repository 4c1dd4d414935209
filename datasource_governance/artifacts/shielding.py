"""Errors of stores become one of ours, which quotes neither an address nor a password in one.

Source: SPEC section 19.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from datasource_governance.errors import GovernanceError, ServiceUnavailableError

Result = TypeVar("Result")

UNREADABLE = "the artifact cannot be read"
NOT_KEPT = "the artifact was not kept"
NOT_DELETED = "the artifact was not deleted"
NOT_LISTED = "the artifacts cannot be listed"
"""What did not happen, in the words that the reason stands behind."""


def shielded(step: Callable[[], Result], refusal: str) -> Result:
    """Return what a step gives; of a foreign failure say what the system calls it, or its type.

    Raises:
        GovernanceError: raised by the step itself, unchanged.
        ServiceUnavailableError: for any other failure, with neither cause nor context.
    """
    try:
        return step()
    except GovernanceError:
        raise
    except Exception as error:  # noqa: BLE001 - every store has errors of its own
        why = _named(error)
    raise ServiceUnavailableError(f"{refusal}: {why}")


def _named(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return type(error).__name__
