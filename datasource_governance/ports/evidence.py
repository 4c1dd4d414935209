"""What services need of the hash chains, of who seals what leaves them, and of where it is kept.

Source: SPEC section 13.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import Break, Entry, Head


class Evidence(Protocol):
    """The hash chains."""

    def append(
        self, chain: str, *, kind: str, subject: str, facts: Mapping[str, object], at: datetime
    ) -> Entry:
        """Append one entry that commits to every row written since the last one. Comes last."""
        ...

    def heads_with_lock(self, chain: str) -> Mapping[str, Head]:
        """Lock one chain until the transaction ends; then return the head of every chain."""
        ...

    def segment(self, chain: str, subject: str) -> Sequence[Entry]:
        """Return the entries about one subject, in order."""
        ...

    def span(self, chain: str, first: int, last: int) -> Sequence[Entry]:
        """Return the entries from one sequence to another, both included, in order."""
        ...

    def heads(self) -> Mapping[str, Head]:
        """Return the head of every chain of the tenant."""
        ...

    def since(self, chain: str, sequence: int, limit: int) -> Sequence[Entry]:
        """Return up to `limit` entries of a chain behind one sequence, in order."""
        ...

    def breaks_about(self, chain: str, subject: str) -> Sequence[Break]:
        """Return the breaks from the first entry about a subject to the head, and in its rows."""
        ...


class EnvelopeSigner(Protocol):
    """Whoever holds a private key and signs statements and checkpoints with it."""

    @property
    def key(self) -> Sha256:
        """Id of the public key."""
        ...

    def sign(self, data: bytes) -> bytes:
        """Return the Ed25519 signature over exactly these bytes."""
        ...


class CheckpointPlace(Protocol):
    """Where checkpoints are kept, out of reach of who owns the database."""

    def put(self, name: str, content: bytes) -> None:
        """Keep one file under a name that nothing has yet; never overwrite.

        Raises:
            ServiceUnavailableError: when the place cannot be written to.
        """
        ...
