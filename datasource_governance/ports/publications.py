"""What services need of publications, as a Protocol.

Source: SPEC section 9.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.publication import Publication, PublicationState


class Publications(Protocol):
    """Outputs of producers, each under a key that is used once."""

    def lock_key(self, producer: str, idempotency_key: str) -> None:
        """Wait until no other attempt under the key goes on; the first lock of a transaction.

        Looking the key up is a later statement, so that it sees what the other attempt committed.
        """
        ...

    def find(self, producer: str, idempotency_key: str) -> Publication | None:
        """Return what a producer published under a key, if it did."""
        ...

    def get(self, publication: str) -> Publication:
        """Return the publication."""
        ...

    def attested_by(
        self, attestation_id: str, datasource: str, partition: str
    ) -> Publication | None:
        """Return what was published for a partition under an attestation, if anything was."""
        ...

    def list(
        self, datasource: str | None, states: Collection[PublicationState], limit: int
    ) -> Sequence[Publication]:
        """Return up to `limit` publications in any of the states (none given: all), newest first.

        Of one datasource, or of all.
        """
        ...

    def add(
        self, publication: Publication, materialization: Materialization, payload: bytes | None
    ) -> None:
        """Store a publication with the materialization that it became, and the payload of that.

        Of an artifact only the materialization has the reference.
        """
        ...
