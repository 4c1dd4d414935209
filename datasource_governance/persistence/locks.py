"""What a transaction locks, in one order for all, so that no two ever wait for each other.

Retention comes first, as plans and what they destroy are of all datasources. Then the key of a
publication, so that its attempts wait for nothing else. Then keys and
grants: whatever rests on them holds them, so that a revocation or withdrawal comes before it or
after it as a whole. Then datasources and stages by id, chains last.

Source: SPEC section 17 ("lock order"); facts on concurrency, 4.1, E1 and E6: an advisory lock is a
statement of its own, its key 64 bits, signed.
"""

from enum import IntEnum

from sqlalchemy import BigInteger, bindparam, func, select

from datasource_governance.domain.canonical import digest
from datasource_governance.errors import GovernanceError
from datasource_governance.persistence.connection import Connection

_HEX_DIGITS_OF_64_BITS = 16
_AUTHORITY = "authority"
_PUBLICATION = "publication"
_RETENTION = "retention"
_CHANGING, _HOLDING = "changing", "holding"
_KEY = bindparam("key", type_=BigInteger)
_EXCLUSIVE = select(func.pg_advisory_xact_lock(_KEY))
_SHARED = select(func.pg_advisory_xact_lock_shared(_KEY))
_IF_FREE = select(func.pg_try_advisory_xact_lock(_KEY).label("given"))


class Place(IntEnum):
    """Where a lock comes in the order; within a place they are taken by name."""

    RETENTION = 1
    PUBLICATION = 2
    AUTHORITY = 3
    DATASOURCE = 4
    STAGE = 5
    CHAIN = 6


class Locks:
    """The locks of one transaction of a tenant. They end with it."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._taken: list[tuple[Place, str]] = []

    def forget(self) -> None:
        """Begin a new transaction, which has locked nothing."""
        self._taken.clear()

    def take(self, place: Place, name: str) -> bool:
        """Note that a lock is about to be taken; tell whether it is the first time.

        Raises:
            GovernanceError: when one that comes later is held already.
        """
        wanted = (place, name)
        if wanted in self._taken:
            return False
        if self._taken and wanted < self._taken[-1]:
            raise GovernanceError(
                f"locks are taken in one order: {place.name.lower()} {name} comes before "
                f"{self._taken[-1][0].name.lower()} {self._taken[-1][1]}"
            )
        self._taken.append(wanted)
        return True

    def hold_authority(self) -> None:
        """Keep keys and grants as whatever is asked next finds them. Any number may."""
        if (Place.AUTHORITY, _CHANGING) not in self._taken and self.take(Place.AUTHORITY, _HOLDING):
            self._connection.later(_SHARED, {"key": self._key(_AUTHORITY)})

    def change_authority(self) -> None:
        """Wait until nobody else changes or holds keys and grants."""
        if self.take(Place.AUTHORITY, _CHANGING):
            self._connection.run(_EXCLUSIVE, {"key": self._key(_AUTHORITY)})

    def retention(self) -> None:
        """Wait, before anything else is asked, until nobody else keeps or applies a plan."""
        if self.take(Place.RETENTION, ""):
            self._connection.later(_EXCLUSIVE, {"key": self._key(_RETENTION)})

    def publication_key(self, producer: str, idempotency_key: str) -> None:
        """Wait, before anything else is asked, until no other attempt under a key goes on."""
        key = self._key(_PUBLICATION, producer, idempotency_key)
        if self.take(Place.PUBLICATION, str(key)):
            self._connection.later(_EXCLUSIVE, {"key": key})

    def take_turn(self, name: str) -> bool:
        """Take a lock if nobody has it, without waiting, so out of any order; tell whether so."""
        (given,) = self._connection.run(_IF_FREE, {"key": self._key(name)})
        return bool(given["given"])

    def _key(self, *names: str) -> int:
        parts = (self._tenant.encode(), *(name.encode() for name in names))
        unsigned = int(digest("datasource_governance/lock/v1", *parts)[:_HEX_DIGITS_OF_64_BITS], 16)
        return unsigned - 2**64 if unsigned >= 2**63 else unsigned
