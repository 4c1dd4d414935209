"""The border at which a refusal of this package becomes a failure that Dagster shows.

Source: SPEC section 19.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from datasource_governance.errors import GovernanceError, ServiceUnavailableError

CODE = "datasource_governance/code"


@contextmanager
def business_refusals() -> Iterator[None]:
    """Turn what this package refuses into a plain failure."""
    refusal: GovernanceError | None = None
    try:
        yield
    except GovernanceError as error:
        # The failure's context keeps the refusal; the frames that it came through held data.
        refusal = error.with_traceback(None)
    if refusal is not None:
        # `from None`, because a context manager's caller is still handling the refusal.
        raise refused(refusal) from None


def refused(refusal: GovernanceError) -> dg.Failure:
    """Return how Dagster shows a refusal.

    Trying again helps only where a service was not available.
    """
    return dg.Failure(
        description=str(refusal),
        metadata={CODE: refusal.code},
        allow_retries=isinstance(refusal, ServiceUnavailableError),
    )
