"""What was destroyed, under which plan and by whom, and the certificate that says so.

A stage that was deleted leaves its row, its validation and its evidence: the tombstone. A purged
materialization loses its payload alone.

Source: SPEC section 12.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import Json, Sha256, canonical_bytes, load_object
from datasource_governance.domain.evidence import Entry
from datasource_governance.domain.retention import Action, RetentionClass, TargetKind
from datasource_governance.domain.retention_plan import PlannedTarget, RetentionPlan
from datasource_governance.errors import GuardError

FORMAT = "datasource_governance/disposition_certificate/v1"
PAYLOAD_TYPE = "application/vnd.datasource-governance.disposition.v1+json"
WHAT_PURGING_IS_NOT = (
    "The payloads were deleted from the governed tables and from the artifact store. Until the "
    "database is vacuumed their bytes may stay in its pages, and copies may stay in write-ahead "
    "logs, backups and older versions of objects for as long as those are kept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisposedTarget:
    """One object that a plan destroyed. `state_before` is a stage's, `retained` of the others."""

    plan: Sha256
    kind: TargetKind
    subject: str
    datasource: str
    retention_class: RetentionClass
    action: Action
    state_before: str
    disposed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """That a plan was applied; it can be once, also in part. `targets` is the digest of their ids.

    The attestation is the applier's own, or the one of whoever launched the run `run_id`.
    """

    plan: Sha256
    actor: ActorId
    attestation_id: str
    run_id: str | None
    targets: Sha256
    applied_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What applying a plan did.

    `unfinished` are the materializations of which an object is still in its artifact store, each
    with the message of why; applying again goes on with them.
    """

    application: Application
    targets: tuple[DisposedTarget, ...]
    unfinished: tuple[tuple[str, str], ...] = ()


class AlreadyAppliedError(GuardError):
    """A plan was applied before, and nothing more was destroyed; `first` is what that did.

    Objects of artifacts that were still there were tried again.
    """

    code = "already_applied"

    def __init__(self, first: Applied) -> None:
        self.first = first
        application = first.application
        super().__init__(
            f"plan {application.plan} was applied already, by {application.actor!r} at "
            f"{application.applied_at.isoformat()}, to {len(first.targets)} target(s); for what "
            "is due now make and review a new one: retention plan",
            plan=application.plan,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DispositionCertificate:
    """What a certificate is made from: records alone, so that it can be made again and compared.

    `evidence` are the links of the chains that speak of the application.
    """

    plan: RetentionPlan
    application: Application
    targets: tuple[DisposedTarget, ...]
    evidence: tuple[Entry, ...]

    def payload(self) -> bytes:
        """Return the canonical bytes that are signed."""
        return canonical_bytes(self.document())

    def document(self) -> dict[str, Json]:
        """Return the JSON form: what, under which policy, by whom, when."""
        planned = {(one.kind, one.id): one for one in self.plan.targets}
        disposed = sorted(self.targets, key=lambda one: (one.datasource, one.kind, one.subject))
        named = {one.datasource for one in disposed}
        application = self.application
        return {
            "format": FORMAT,
            "tenant": self.plan.tenant,
            "plan": self.plan.hash,
            "as_of": self.plan.as_of.isoformat(),
            "policies": [one.document() for one in self.plan.policies if one.datasource in named],
            "applied_by": application.actor,
            "attestation": application.attestation_id,
            "run": application.run_id,
            "applied_at": _text(application.applied_at),
            "targets": [_disposed(planned[one.kind, one.subject], one) for one in disposed],
            "targets_hash": application.targets,
            "evidence": [
                {"chain": one.chain, "sequence": one.sequence, "entry_hash": one.entry_hash}
                for one in self.evidence
            ],
            "statement": WHAT_PURGING_IS_NOT,
        }


def _disposed(planned: PlannedTarget, disposed: DisposedTarget) -> dict[str, Json]:
    described = planned.document()
    del described["blockers"]
    return {
        **described,
        "state_before": disposed.state_before,
        "disposed_at": _text(disposed.disposed_at),
    }


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()


def certified_plan(payload: bytes) -> Sha256 | None:
    """Return the hash of the plan that a certificate's payload names; None if it is no such."""
    try:
        document = load_object(payload)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return None
    plan = document.get("plan")
    if document.get("format") != FORMAT or not isinstance(plan, str):
        return None
    return Sha256(plan)
