"""Give readers the current materialization: re-authorised, verified, bounded.

Source: SPEC sections 10 ("Reads are bounded and re-authorised") and 15.
"""

import hashlib
from dataclasses import dataclass, field

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import authorise

MAXIMUM_ROWS = 100_000
MAXIMUM_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A materialization and its payload as stored: one Arrow IPC stream, not in the `repr`."""

    materialization: Materialization
    payload: bytes = field(repr=False)


def read_current(
    work: UnitOfWork,
    datasource: str,
    actor: ActorId,
    *,
    maximum_rows: int = MAXIMUM_ROWS,
    maximum_bytes: int = MAXIMUM_BYTES,
) -> Reading:
    """Return what is in force. Both limits are inclusive; bytes are those of the stored payload.

    Raises:
        NotFoundError: when nothing is current yet.
        GuardError: `not_authorised` for an actor without a steward's grant, `payload_too_large`,
            `payload_purged`, `payload_altered` when the bytes are not those that were promoted.
    """
    with work:
        authorise(work, actor, Role.STEWARD, datasource)
        target = work.datasources.get(datasource)
        if target.current is None:
            raise NotFoundError(
                f"datasource {datasource!r} has no current materialization yet; promote a stage"
            )
        materialization = work.materializations.get(target.current)
        _check_retained(materialization)
        _check_size("rows", materialization.row_count, maximum_rows)
        _check_size("bytes", work.materializations.payload_size(materialization.id), maximum_bytes)
        payload = work.materializations.payload(materialization.id)
    if hashlib.sha256(payload).hexdigest() != materialization.payload_sha256:
        raise GuardError(
            f"the payload of materialization {materialization.id} was altered; nothing is given "
            "out; run: evidence verify",
            code="payload_altered",
        )
    return Reading(materialization=materialization, payload=payload)


def _check_retained(materialization: Materialization) -> None:
    if materialization.disposition is not Disposition.RETAINED:
        raise GuardError(
            f"the payload of materialization {materialization.id} is "
            f"{materialization.disposition}; its schema and evidence remain",
            code="payload_purged",
        )


def _check_size(what: str, size: int, maximum: int) -> None:
    if size > maximum:
        raise GuardError(
            f"the current materialization has {size} {what}, the reader's limit is {maximum}",
            code="payload_too_large",
        )
