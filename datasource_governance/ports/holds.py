"""What services need of legal holds and frozen evidence.

Source: SPEC section 12.
"""

from collections.abc import Sequence
from typing import Protocol

from datasource_governance.domain.hold import Freeze, Hold, HoldRelease


class Holds(Protocol):
    """Holds, their releases, and materializations that are frozen evidence.

    Who writes has locked the datasource before.
    """

    def get(self, hold: str) -> Hold:
        """Return a hold, with its release if it was released.

        Raises:
            NotFoundError: the tenant has no such hold.
        """
        ...

    def list(self, datasource: str | None, *, active: bool) -> Sequence[Hold]:
        """Return the holds of one datasource or of all, newest first; only the active ones if so.

        Those on its stages and materializations are a datasource's, too.
        """
        ...

    def place(self, hold: Hold) -> None:
        """Store a hold."""
        ...

    def release(self, release: HoldRelease) -> None:
        """Store the release of a hold; a hold has one."""
        ...

    def freeze(self, freeze: Freeze) -> None:
        """Store that a materialization is frozen evidence; it is once."""
        ...

    def frozen(self, materialization: str) -> Freeze | None:
        """Return that a materialization is frozen evidence, if it is."""
        ...
