"""What each action is signed over: one function per action, for the signer and the verifier.

Source: SPEC section 7, last paragraph; section 6 (creator, launches); section 17 (grants, keys).
"""

from collections.abc import Collection

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.approval import Decision, Subject, Verdict
from datasource_governance.domain.attestation import (
    Action,
    Claims,
    KeyKind,
    key_id,
    reason_hash,
)
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION, beside_native
from datasource_governance.domain.retention_plan import targets_hash
from datasource_governance.domain.target import beside_none


def delivery_subject(datasource: str, file_sha256: Sha256) -> dict[str, Json]:
    """Return what a creator signs: this file, for this datasource."""
    return {"datasource": datasource, "file_sha256": file_sha256}


def refresh_subject(datasource: str, origin: Sha256) -> dict[str, Json]:
    """Return what a creator signs: whatever this origin says now, for this datasource."""
    return {"datasource": datasource, "origin": origin}


def decision_subject(subject: Subject, reason: str) -> dict[str, Json]:
    """Return what an approver signs: the hashes that were reviewed, and the reason's."""
    return {**subject.document(), "reason_hash": reason_hash(reason)}


def decision_action(verdict: Verdict) -> Action:
    """Return the action that an approver signs for a verdict."""
    return Action.STAGE_APPROVE if verdict is Verdict.APPROVE else Action.STAGE_REJECT


def states_decision(claims: Claims, decision: Decision) -> bool:
    """Tell whether claims are those of exactly this decision by its actor."""
    action = decision_action(decision.verdict)
    subject = decision_subject(decision.subject, decision.reason)
    return (claims.actor, claims.action, dict(claims.subject)) == (decision.actor, action, subject)


def promotion_subject(subject: Subject) -> dict[str, Json]:
    """Return what an operator signs: the stage exactly as reviewed."""
    return subject.document()


def publication_subject(  # noqa: PLR0913 - the facts of an output, all by name
    *,
    datasource: str,
    partition: str,
    producer: str,
    idempotency_key: str,
    checksum: Sha256,
    supplied_policy: Sha256 | None = None,
    evidence: Sha256 | None = None,
) -> dict[str, Json]:
    """Return what a producer signs: this output, for this datasource, under this key.

    `checksum` is the content fingerprint of an inline payload, and the SHA-256 of an artifact;
    `supplied_policy` is the hash of a quality policy and `evidence` that of producer evidence that
    come with the output.
    """
    named = {"quality_policy": supplied_policy, "evidence": evidence}
    return {
        "datasource": datasource,
        "partition": partition,
        "producer": producer,
        "idempotency_key": idempotency_key,
        "payload": checksum,
        **{name: one for name, one in named.items() if one is not None},
    }


def launch_subject(launch: RunLaunch) -> dict[str, Json]:
    """Return what is signed for whoever launches a run: this run, exactly as it is launched."""
    return {
        "run_id": launch.run_id,
        "job": launch.job,
        "assets": list(launch.assets),
        "config_hash": launch.config_hash,
    }


def stated_launch(claims: Claims) -> RunLaunch | None:
    """Return the launch that claims are about; None when they are about something else."""
    match dict(claims.subject):
        case {
            "run_id": str(run_id),
            "job": str(job),
            "assets": [*assets],
            "config_hash": str(config_hash),
        }:
            launch = RunLaunch(
                run_id=run_id,
                job=job,
                assets=tuple(map(str, assets)),
                config_hash=Sha256(config_hash),
            )
        case _:
            return None
    is_whole = dict(claims.subject) == launch_subject(launch)
    return launch if claims.action is Action.RUN_LAUNCH and is_whole else None


def apply_subject(
    declaration: Datasource, evaluator_version: str = EVALUATOR_VERSION
) -> dict[str, Json]:
    """Return what an administrator signs: what a declaration brings into force, and who evaluates.

    The version of the evaluator is that of the platform manifest's quality provider.
    """
    return {
        "datasource": declaration.id,
        "kind": declaration.kind,
        "promotion": declaration.promote,
        "artifact_evaluation": declaration.artifact_evaluation,
        "allow_supplied_policy": declaration.allow_supplied_policy,
        "quality_policy": _hash(declaration.quality_policy),
        "approval_policy": _hash(declaration.approval_policy),
        "retention_policy": _hash(declaration.retention_policy),
        **beside_native(evaluator_version),
        **beside_none((one.id, one.hash) for one in declaration.contracts),
    }


def _hash(policy: object) -> str | None:
    return getattr(policy, "hash", None)


def key_subject(
    actor: ActorId, kind: KeyKind, public_key: bytes, display_name: str
) -> dict[str, Json]:
    """Return what an administrator signs to let a key attest for an actor."""
    return {
        "actor": actor,
        "display_name": display_name,
        "kind": str(kind),
        "registered_key": key_id(public_key),
    }


def revocation_subject(key: Sha256) -> dict[str, Json]:
    """Return what an administrator signs to end a key."""
    return {"revoked_key": key}


def grant_subject(actor: ActorId, role: Role, datasource: str | None) -> dict[str, Json]:
    """Return what an administrator signs to give authority."""
    return {"actor": actor, "role": str(role), "datasource": datasource}


def withdrawal_subject(grant_id: str) -> dict[str, Json]:
    """Return what an administrator signs to withdraw authority."""
    return {"grant": grant_id}


def apply_retention_subject(plan_hash: str, targets: Collection[str] | None) -> dict[str, Json]:
    """Return what an administrator signs to destroy targets of a plan; None: all not blocked."""
    return {"plan": plan_hash, "targets": None if targets is None else targets_hash(targets)}


def hold_subject(datasource: str, scope: HoldScope, subject: str, reason: str) -> dict[str, Json]:
    """Return what an operator signs to place a hold, with the reason's hash."""
    return {
        "datasource": datasource,
        "scope": str(scope),
        "held": subject,
        "reason_hash": reason_hash(reason),
    }


def release_subject(hold: str, reason: str) -> dict[str, Json]:
    """Return what an administrator signs to release a hold, with the reason's hash."""
    return {"hold": hold, "reason_hash": reason_hash(reason)}


def freeze_subject(datasource: str, materialization: str, reason: str) -> dict[str, Json]:
    """Return what an operator signs to make a materialization frozen evidence."""
    return {
        "datasource": datasource,
        "materialization": materialization,
        "reason_hash": reason_hash(reason),
    }
