"""What services need to know of actors, keys, grants and attestations, as a Protocol.

Source: SPEC sections 7 and 17.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from datasource_governance.domain.actor import Actor, ActorId, Grant
from datasource_governance.domain.attestation import ActorKey, Attestation
from datasource_governance.domain.canonical import Sha256


class Authority(Protocol):
    """Actors, keys, grants and attestations."""

    def hold(self) -> None:
        """Keep keys and grants as they are until the transaction ends; before any other lock.

        Others may hold them, too; who changes them waits. A locked datasource holds them as well.
        """
        ...

    def lock(self) -> None:
        """Wait until nobody else changes or holds keys and grants; the first lock that is taken."""
        ...

    def actor(self, actor: ActorId) -> Actor | None:
        """Return a registered actor."""
        ...

    def actors(self) -> Sequence[Actor]:
        """Return all actors, ordered by id."""
        ...

    def add_actor(self, actor: Actor) -> None:
        """Store an actor."""
        ...

    def key(self, key: Sha256) -> ActorKey | None:
        """Return a registered key, with its revocation."""
        ...

    def keys(self, actor: ActorId | None) -> Sequence[ActorKey]:
        """Return the keys of one actor or of all, oldest first."""
        ...

    def add_key(self, key: ActorKey) -> None:
        """Store a key."""
        ...

    def revoke_key(self, key: Sha256, attestation_id: str, now: datetime) -> None:
        """Record that a key no longer attests."""
        ...

    def grants(self, actor: ActorId | None = None) -> Sequence[Grant]:
        """Return the grants in force, of one actor or of all."""
        ...

    def add_grant(self, grant: Grant) -> None:
        """Store a grant."""
        ...

    def withdraw_grant(self, grant_id: str, attestation_id: str, now: datetime) -> None:
        """Record that a grant is no longer in force."""
        ...

    def attestation(self, attestation_id: str) -> Attestation | None:
        """Return a stored attestation."""
        ...

    def attestations(self, ids: Collection[str]) -> Mapping[str, Attestation]:
        """Return those of these attestations that are stored, by id."""
        ...

    def attested_with(self, key: Sha256) -> Sequence[tuple[datetime, Attestation]]:
        """Return what a key attested and when that was stored, newest first."""
        ...

    def add_attestation(self, attestation: Attestation, now: datetime) -> None:
        """Store an attestation; its id and nonce can be stored once."""
        ...

    def launch_attestation(self, run_id: str) -> Attestation | None:
        """Return the attestation of who launched a run, if any."""
        ...

    def add_launch_attestation(self, run_id: str, attestation_id: str) -> None:
        """Record that a stored attestation is the one of a run; a run has one."""
        ...
