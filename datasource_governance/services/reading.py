"""Give readers what is in force, or one revision that they name: re-authorised, verified, bounded.

Of an artifact this gives the reference. Whoever opens it then verifies the object, so a store is
touched only for readers who may read.

Source: SPEC sections 9, 10 ("Reads are bounded and re-authorised") and 15.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.artifact import ArtifactReference, parse_artifact_reference
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.errors import GuardError, InvalidArgumentError, NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import authorise

MAXIMUM_ROWS = 10_000_000
MAXIMUM_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of a datasource: what is current, all of it, unless it says otherwise.

    `materialization` names one revision instead, whether it ever was current or not; of a
    partitioned datasource it must be the partition's. `columns` are fields, in the order they are
    wanted.
    """

    partition: str = ""
    materialization: str | None = None
    columns: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is given out; both are inclusive.

    `bytes` are those of an inline payload as it is stored, and of the wanted columns in memory.
    """

    rows: int = MAXIMUM_ROWS
    bytes: int = MAXIMUM_BYTES


CURRENT = Wanted()
DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A materialization and its payload, which is not in the `repr`.

    The payload is as stored: one Arrow IPC stream with all columns, or the reference to an
    artifact, of which nobody has looked at the object yet.
    """

    materialization: Materialization
    payload: bytes | ArtifactReference = field(repr=False)


def read_current(
    work: UnitOfWork,
    datasource: str,
    actor: ActorId,
    wanted: Wanted = CURRENT,
    bounds: Bounds | None = DEFAULT_BOUNDS,
) -> Reading:
    """Return what is wanted of a datasource; None bounds nothing, for who reads step by step.

    Raises:
        NotFoundError: nothing is current yet, or the datasource has no such materialization.
        InvalidArgumentError: columns are repeated, or no fields of it.
        GuardError: `not_authorised` for an actor without a steward's grant, `payload_too_large`,
            `payload_purged`, `payload_altered` when the payload is not what was made current,
            `contract_violated` while a contract that blocks is broken, unless a materialization is
            named.
    """
    with work:
        authorise(work, actor, Role.STEWARD, datasource)
        materialization = _found(work, datasource, wanted)
        _check_retained(work, materialization)
        _check_columns(materialization, wanted.columns)
        if bounds is not None:
            check_size("rows", materialization.row_count, bounds.rows)
        if materialization.artifact is not None:
            reference = parse_artifact_reference(materialization.artifact)
            _check_digest(materialization, reference.sha256, materialization.payload_fingerprint)
            return Reading(materialization=materialization, payload=reference)
        if bounds is not None:
            size = work.materializations.payload_size(materialization.id)
            check_size("bytes", size, bounds.bytes)
        payload = work.materializations.payload(materialization.id)
    found = hashlib.sha256(payload).hexdigest()
    _check_digest(materialization, found, materialization.payload_sha256)
    return Reading(materialization=materialization, payload=payload)


def check_size(what: str, size: int, maximum: int) -> None:
    """Refuse more than may be given out; `what` is rows or bytes.

    Raises:
        GuardError: code `payload_too_large`.
    """
    if size > maximum:
        raise GuardError(
            f"the materialization has {size} {what}, and {maximum} may be read; select columns, "
            "or read it as a lazy scan",
            code="payload_too_large",
        )


def _found(work: UnitOfWork, datasource: str, wanted: Wanted) -> Materialization:
    if wanted.materialization is None:
        return _current(work, datasource, wanted.partition)
    if wanted.materialization in work.materializations.known(datasource, [wanted.materialization]):
        named = work.materializations.get(wanted.materialization)
        if named.partition == wanted.partition:
            return named
    raise NotFoundError(
        f"there is no materialization {wanted.materialization!r} of "
        f"{_place(datasource, wanted.partition)}"
    )


def _current(work: UnitOfWork, datasource: str, partition: str) -> Materialization:
    target = work.datasources.get(datasource, partition)
    if target.current is None:
        raise NotFoundError(
            f"{_place(datasource, partition)} has no current materialization yet; promote a stage, "
            "or publish to it"
        )
    if target.contracts:
        _check_contracts(work, datasource)
    return work.materializations.get(target.current)


def _place(datasource: str, partition: str) -> str:
    within = f"partition {partition!r} of " if partition else ""
    return f"{within}datasource {datasource!r}"


def _check_retained(work: UnitOfWork, materialization: Materialization) -> None:
    if materialization.disposition is Disposition.RETAINED:
        return
    disposed = work.retention.disposition_of(materialization.id)
    plan = disposed.plan if disposed else None
    raise GuardError(
        f"the payload of materialization {materialization.id} is {materialization.disposition} "
        f"under retention plan {plan}; its schema and evidence remain",
        code="payload_purged",
        materialization=materialization.id,
        plan=plan,
    )


def _check_contracts(work: UnitOfWork, datasource: str) -> None:
    blocking = [one for one in work.contracts.open_violations(datasource) if one.is_blocking]
    if blocking:
        told = "; ".join(f"{one.contract}, {one.kind}: {one.message}" for one in blocking)
        raise GuardError(
            f"contracts of datasource {datasource!r} that block readers are broken: {told}; name "
            "a materialization to read it all the same, or restore what is promised",
            code="contract_violated",
            violations=tuple(one.id for one in blocking),
        )


def _check_columns(materialization: Materialization, columns: Sequence[str] | None) -> None:
    if columns is None:
        return
    known = {one.name for one in parse_schema(materialization.schema).fields}
    names = list(columns)
    wrong = [name for name in names if name not in known or names.count(name) > 1]
    if wrong or not names or isinstance(columns, str):
        named = ", ".join(map(repr, dict.fromkeys(wrong))) or "no list of names"
        raise InvalidArgumentError(
            f"columns must be fields of the materialization, each once, and are not: {named}"
        )


def _check_digest(materialization: Materialization, found: str, promised: str) -> None:
    if found != promised:
        raise GuardError(
            f"the payload of materialization {materialization.id} was altered; nothing is given "
            "out; run: evidence verify",
            code="payload_altered",
        )
