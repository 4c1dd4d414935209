"""What a refresh needs of an origin, as a Protocol.

Source: SPEC section 11.
"""

from dataclasses import dataclass
from typing import Protocol

from datasource_governance.domain.canonical import Sha256
from datasource_governance.ports.lifecycle import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an origin says now.

    `name` is what the stage calls its delivery, `sha256` the digest of the file that was read, or
    of the stored payload where there was none. `version` is the origin's own word for it, if it has
    one.
    """

    name: str
    payload: Payload
    sha256: Sha256
    version: str | None


class OriginReader(Protocol):
    """A declared origin, which is read each time that it is asked."""

    @property
    def definition(self) -> Sha256:
        """Hash of what is read from where, and how: `domain.origin.origin_hash`."""
        ...

    def read(self) -> Reading:
        """Return what the origin says.

        Raises:
            InvalidArgumentError: it cannot be read as it is declared, such as a missing variable.
            UnreadableSourceError: it cannot be read now, or what it says is refused.
        """
        ...

    def read_unless(self, version: str) -> Reading | None:
        """Return what the origin says, or None where it is still in this version.

        Raises:
            InvalidArgumentError, UnreadableSourceError: as `read`.
        """
        ...
