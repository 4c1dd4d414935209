"""Transaction-scoped advisory locks, named by digests of framed texts.

Source: facts on concurrency, E1 and E6: a lock is a statement of its own, its key 64 bits, signed.
"""

from sqlalchemy import func, select

from datasource_governance.domain.canonical import digest
from datasource_governance.persistence.connection import Connection

_HEX_DIGITS_OF_64_BITS = 16


def try_lock(connection: Connection, *names: str) -> bool:
    """Take the lock of these names if nobody has it, without waiting; tell whether it was taken.

    It ends with the transaction. Whoever has it already, in the same transaction, gets it again.
    """
    named = digest("datasource_governance/lock/v1", *(name.encode() for name in names))
    unsigned = int(named[:_HEX_DIGITS_OF_64_BITS], 16)
    key = unsigned - 2**64 if unsigned >= 2**63 else unsigned
    taken: bool = connection.execute(select(func.pg_try_advisory_xact_lock(key))).scalar_one()
    return taken
