"""Delete the objects of artifacts whose materializations are being purged, and say that they are.

Source: SPEC section 12 ("go through `purging` to `purged`"); facts 7.10, I-099 and I-100.
"""

from collections.abc import Callable

from datasource_governance.domain.artifact import foreign, parse_artifact_reference
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.errors import GovernanceError, GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend
from datasource_governance.services.recording import record


def finish_purging(
    work: UnitOfWork,
    artifacts: ArtifactBackend,
    plan_hash: str,
    progress: Callable[[int], None] | None = None,
) -> tuple[tuple[str, str], ...]:
    """Delete what is left of the objects that an applied plan destroyed.

    Return the materializations of which that failed, each with a message; they stay `purging`.
    Doing it again goes on, and an object that is gone already counts as deleted. `progress` is told
    of objects that were tried.
    """
    with work:
        purging = work.retention.purging(plan_hash)
    failed = []
    for tried, one in enumerate(purging, start=1):
        problem = _finish(work, artifacts, one, plan_hash)
        if problem is not None:
            failed.append((one.id, problem))
        if progress is not None:
            progress(tried)
    return tuple(failed)


def _finish(
    work: UnitOfWork, artifacts: ArtifactBackend, materialization: Materialization, plan_hash: str
) -> str | None:
    try:
        _purge(work, artifacts, materialization, plan_hash)
    except GovernanceError as error:
        return str(error)
    return None


def _purge(
    work: UnitOfWork, artifacts: ArtifactBackend, materialization: Materialization, plan_hash: str
) -> None:
    locator = _locator(artifacts, materialization)
    with work:
        # The object is deleted under the lock under which others would refer to it anew: a process
        # that was stopped here for long has lost the lock, and everybody sees `purging`.
        work.datasources.get_for_update(materialization.datasource)
        present = work.materializations.get(materialization.id)
        if present.disposition is not Disposition.PURGING:
            return
        shared = work.retention.uses_of_object(locator)
        if not shared:
            artifacts.delete(locator)
        work.retention.mark_purged(present)
        record(
            work,
            present.datasource,
            "materialization.purged",
            subject=present.id,
            facts={"materialization": present.id, "plan": plan_hash, "shared": bool(shared)},
            at=work.now(),
        )
        work.commit()


def _locator(artifacts: ArtifactBackend, materialization: Materialization) -> str:
    """Return where the object is, in this backend.

    Raises:
        GuardError: code `artifact_foreign` when another backend keeps it, so that it could not be
            gone from there; `evidence_chain_broken` when there is none.
    """
    if materialization.artifact is None:
        raise GuardError(
            f"materialization {materialization.id} is being purged and has no artifact; "
            "run: evidence verify",
            code="evidence_chain_broken",
        )
    reference = parse_artifact_reference(materialization.artifact)
    if reference.backend != artifacts.name:
        raise foreign(f"backend {reference.backend!r} keeps it, and this is {artifacts.name!r}")
    return reference.locator


def times_purged(work: UnitOfWork, locator: str | None) -> int:
    """Return how many times an object was purged, 0 for what is kept inline.

    As long as it stays the same, an object that was looked at is still there.

    Raises:
        GuardError: code `artifact_purging` while it is being purged.
    """
    if locator is None:
        return 0
    is_purging, times = work.retention.purges_of_object(locator)
    if is_purging:
        raise GuardError(
            f"artifact {locator} is being purged, so nothing new can refer to it; store it again "
            "when the retention plan was applied as a whole",
            code="artifact_purging",
            locator=locator,
        )
    return times
