"""Read a cached origin again: into a stage, or, where nobody has to approve, into force.

The origin is read outside of any transaction. What it says goes the way of every delivery; where it
says what it said before, there is nothing to stage.

Source: SPEC section 11; facts on reliability, I-120 and I-121.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.datasource import DatasourceKind
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.materialization import Promotion
from datasource_governance.domain.origin import OriginVersion
from datasource_governance.domain.policy_version import PolicyKind, recorded_approval_policy
from datasource_governance.domain.stage import Stage, StageState, changed_since
from datasource_governance.domain.subjects import refresh_subject
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import GuardError
from datasource_governance.ports import Evaluator, UnitOfWork
from datasource_governance.ports.artifacts import ArtifactBackend
from datasource_governance.ports.origins import OriginReader, Reading
from datasource_governance.services.creating import created_before, creator_of
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.staging import StageRequest, create_stage


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """An origin to be read, and by what its creator is proved: see `creating.Creation`.

    With `force` it is read and staged even if it says what it said before.
    """

    datasource: str
    origin: OriginReader
    attestation_id: str | None = None
    launch: RunLaunch | None = None
    force: bool = False

    @property
    def signed(self) -> tuple[Action, Mapping[str, Json]]:
        """The action and the subject that a creator signs."""
        subject = refresh_subject(self.datasource, self.origin.definition)
        return Action.STAGE_REFRESH, subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What became of a refresh.

    `stage` holds what the origin says now: a new one, or, when the origin is `not_modified`, the
    one that has it already. `promotion` is what a direct refresh made of it, if it did.
    """

    stage: Stage
    not_modified: bool = False
    promotion: Promotion | None = None


def refresh_stage(work: UnitOfWork, evaluator: Evaluator, request: RefreshRequest) -> Refreshed:
    """Read an origin into a stage, which goes the normal way; nothing if it was not modified.

    It was not modified when the origin says so itself, or has the content of the last stage of it,
    and that stage still stands: it may be decided about, was refused by the policies in force, or
    is current. An attestation that created a stage already gives that stage again.

    Raises:
        NotFoundError: for an unknown datasource or attestation.
        GuardError: `wrong_kind`, `not_authorised`, an attestation's codes, those of `create_stage`.
        InvalidArgumentError, UnreadableSourceError: as the origin; nothing is written then.
    """
    with work:
        target = _cached(work, request.datasource)
        earlier = created_before(work, request)
        if earlier is not None:
            return Refreshed(stage=_same_origin(earlier, request))
        # Who may not stage has nothing read either.
        creator_of(work, request)
        last = None if request.force else _standing(work, request, target)
        version = work.stages.version_read(last.id) if last else None
    if last is None:
        return Refreshed(stage=_staged(work, evaluator, request, request.origin.read()))
    reading = request.origin.read_unless(version) if version else request.origin.read()
    if reading is None or evaluator.fingerprint(reading.payload) == last.payload_fingerprint:
        return Refreshed(stage=last, not_modified=True)
    return Refreshed(stage=_staged(work, evaluator, request, reading))


def refresh(
    work: UnitOfWork,
    evaluator: Evaluator,
    artifacts: ArtifactBackend,
    request: RefreshRequest,
    promotion: Callable[[Stage], PromotionRequest],
) -> Refreshed:
    """Read an origin and bring it into force at once, where nothing asks for a look at it.

    A stage that is blocked or to be reviewed waits as any. `promotion` says who promotes a stage.

    Raises:
        GuardError: `approval_required`, before the origin is read, where somebody has to approve.
        GovernanceError: as `refresh_stage` and `promote_stage`.
    """
    check_refreshable(work, request.datasource)
    refreshed = refresh_stage(work, evaluator, request)
    stage = refreshed.stage
    # Also one that an earlier refresh staged, and died before it was promoted.
    if (stage.state, stage.outcome) != (StageState.READY, Outcome.READY):
        return refreshed
    made = promote_stage(work, artifacts, promotion(stage))
    return replace(refreshed, stage=replace(stage, state=StageState.PROMOTED), promotion=made)


def check_refreshable(work: UnitOfWork, datasource: str) -> None:
    """Refuse a direct refresh where somebody has to approve what becomes current.

    Raises:
        NotFoundError: for an unknown datasource.
        GuardError: `wrong_kind`, `approval_required`.
    """
    with work:
        target = _cached(work, datasource)
        if target.approval_policy_hash is None:
            return
        kept = work.datasources.policy(datasource, PolicyKind.APPROVAL, target.approval_policy_hash)
    if recorded_approval_policy(kept).required:
        raise GuardError(
            f"datasource {datasource!r} requires approval, so its origin is not brought into force "
            f"directly; read it into a stage: stage refresh {datasource}",
            code="approval_required",
        )


def _cached(work: UnitOfWork, datasource: str) -> Target:
    target = work.datasources.get(datasource)
    if target.kind != DatasourceKind.CACHED:
        raise GuardError(
            f"datasource {datasource!r} is {target.kind}; only a {DatasourceKind.CACHED} one has "
            "an origin that can be read again",
            code="wrong_kind",
        )
    return target


def _same_origin(stage: Stage, request: RefreshRequest) -> Stage:
    if stage.origin != request.origin.definition:
        raise GuardError(
            "the attestation created a stage of something else; sign this origin, or launch anew",
            code="attestation_mismatch",
        )
    return stage


def _standing(work: UnitOfWork, request: RefreshRequest, target: Target) -> Stage | None:
    """Return the last stage of the origin, if another one of the same would be no news."""
    stage = work.stages.last_read(target.datasource, request.origin.definition)
    if stage is None or stage.state in {StageState.SUPERSEDED, StageState.DELETED}:
        return None
    if stage.state is StageState.PROMOTED:
        made = work.materializations.of_stage(stage.id)
        if made is None or made.id != target.current:
            return None
        # It was validated against what it replaced.
        target = replace(target, current=stage.base)
    return None if changed_since(stage, target) else stage


def _staged(
    work: UnitOfWork, evaluator: Evaluator, request: RefreshRequest, reading: Reading
) -> Stage:
    staged = StageRequest(
        datasource=request.datasource,
        delivery=reading.name,
        file_sha256=reading.sha256,
        attestation_id=request.attestation_id,
        launch=request.launch,
        read=OriginVersion(origin=request.origin.definition, token=reading.version),
    )
    return create_stage(work, evaluator, reading.payload, staged).stage
