"""Rows to domain values and back, explicitly.

Most rows are a dataclass with the same names; what differs is written out.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from datasource_governance.domain.actor import Actor, ActorId, Grant, Role
from datasource_governance.domain.approval import Decision, Subject, Verdict
from datasource_governance.domain.attestation import ActorKey, Attestation, KeyKind, read_claims
from datasource_governance.domain.canonical import Json, Sha256, load_canonical
from datasource_governance.domain.disposition import Application, DisposedTarget
from datasource_governance.domain.event import Event
from datasource_governance.domain.evidence import Entry
from datasource_governance.domain.hold import Freeze, Hold, HoldRelease, HoldScope
from datasource_governance.domain.materialization import Disposition, Materialization
from datasource_governance.domain.policy_version import PolicyKind, PolicySource, PolicyVersion
from datasource_governance.domain.publication import Publication, PublicationState
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.retention import Action, RetentionClass, TargetKind
from datasource_governance.domain.retention_plan import StoredPlan, read_plan
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import GuardError

Row = Mapping[str, Any]
"""A row as SQLAlchemy gives it; the types are those of `tables.py`."""
SUPPLIED_QUALITY = "supplied_quality"
"""The kind under which a quality policy is kept that came with an output."""


def target_row(target: Target) -> dict[str, object]:
    """Return the columns of `datasource`."""
    return {
        "id": target.datasource,
        "kind": target.kind,
        "created_at": target.created_at,
        "quality_policy_hash": target.quality_policy_hash,
        "approval_policy_hash": target.approval_policy_hash,
        "retention_policy_hash": target.retention_policy_hash,
        "settings": target.settings(),
        "current_materialization": target.unpartitioned if target.partition else target.current,
        "revision": target.revision,
    }


def target(row: Row, partition: str = "", current: str | None = None) -> Target:
    """Return the datasource of a row, as it stands in a partition if one is named."""
    settings = load_canonical(row["settings"])
    if not isinstance(settings, dict):
        raise TypeError("settings are a JSON object")
    return Target(
        datasource=row["id"],
        kind=row["kind"],
        quality_policy_hash=row["quality_policy_hash"],
        approval_policy_hash=row["approval_policy_hash"],
        retention_policy_hash=row["retention_policy_hash"],
        promotion=str(settings["promotion"]),
        artifact_evaluation=str(settings.get("artifact_evaluation", "evidence")),
        allow_supplied_policy=settings.get("allow_supplied_policy") is True,
        evaluator_version=str(settings.get("evaluator_version", EVALUATOR_VERSION)),
        contracts=_contracts(settings.get("contracts")),
        current=current if partition else row["current_materialization"],
        revision=row["revision"],
        created_at=row["created_at"],
        partition=partition,
        unpartitioned=row["current_materialization"] if partition else None,
    )


def _contracts(hashes: Json) -> tuple[tuple[str, Sha256], ...]:
    found = hashes.items() if isinstance(hashes, dict) else ()
    return tuple((name, Sha256(str(one))) for name, one in sorted(found))


def flat_row(value: object) -> dict[str, object]:
    """Return the columns of a dataclass whose fields are the columns."""
    return {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]  # every caller passes a dataclass


def partitioned_row(value: object) -> dict[str, object]:
    """Return the columns of a dataclass whose fields are the columns, and no partition is null."""
    row = flat_row(value)
    return {**row, "partition": row["partition"] or None}


def stage(row: Row) -> Stage:
    """Return the stage of a row."""
    return Stage(
        **_without(row, "tenant", "outcome", "partition", "state"),
        partition=row["partition"] or "",
        outcome=Outcome(row["outcome"]),
        state=StageState(row["state"]),
    )


def decision_row(decision: Decision) -> dict[str, object]:
    """Return the columns of `decision`."""
    row = flat_row(decision) | flat_row(decision.subject)
    del row["subject"]
    return row


def decision(row: Row) -> Decision:
    """Return the decision of a row."""
    return Decision(
        id=row["id"],
        subject=Subject(
            datasource=row["datasource"],
            stage=row["stage"],
            stage_fingerprint=row["stage_fingerprint"],
            quality_policy_hash=row["quality_policy_hash"],
            approval_policy_hash=row["approval_policy_hash"],
            base=row["base"],
        ),
        actor=ActorId(row["actor"]),
        grant_id=row["grant_id"],
        verdict=Verdict(row["verdict"]),
        reason=row["reason"],
        attestation_id=row["attestation_id"],
        decided_at=row["decided_at"],
        expires_at=row["expires_at"],
    )


def materialization(row: Row) -> Materialization:
    """Return the materialization of a row."""
    return Materialization(
        **_without(row, "tenant", "disposition", "partition"),
        partition=row["partition"] or "",
        disposition=Disposition(row["disposition"]),
    )


def publication(row: Row) -> Publication:
    """Return the publication of a row."""
    return Publication(
        **_without(row, "tenant", "partition", "policy_source", "state"),
        partition=row["partition"] or "",
        policy_source=PolicySource(row["policy_source"]),
        state=PublicationState(row["state"]),
    )


def stored_plan(row: Row) -> StoredPlan:
    """Return the retention plan of a row.

    Raises:
        GuardError: code `evidence_chain_broken` when the body is not the one that was hashed.
    """
    plan = read_plan(row["body"])
    if plan.hash != row["hash"]:
        raise GuardError(
            f"what is kept of retention plan {row['hash']} is another one; run: evidence verify",
            code="evidence_chain_broken",
        )
    return StoredPlan(plan=plan, planned_by=row["planned_by"], created_at=row["created_at"])


def application(row: Row) -> Application:
    """Return the application of a plan of a row."""
    return Application(**_without(row, "tenant"))


def disposed_target(row: Row) -> DisposedTarget:
    """Return what was destroyed of a row."""
    return DisposedTarget(
        **_without(row, "tenant", "kind", "retention_class", "action"),
        kind=TargetKind(row["kind"]),
        retention_class=RetentionClass(row["retention_class"]),
        action=Action(row["action"]),
    )


def hold(row: Row) -> Hold:
    """Return the hold of a row joined with its release, whose columns are `release_<name>`."""
    named = {name.removeprefix("release_"): name for name in row if name.startswith("release_")}
    release = {name: row[column] for name, column in named.items()}
    return Hold(
        **_without(row, "tenant", "scope", *named.values()),
        scope=HoldScope(row["scope"]),
        released=HoldRelease(**_without(release, "tenant")) if release["hold"] else None,
    )


def freeze(row: Row) -> Freeze:
    """Return the frozen evidence of a row."""
    return Freeze(**_without(row, "tenant"))


def policy_version(row: Row) -> PolicyVersion:
    """Return the policy version of a row."""
    is_supplied = row["kind"] == SUPPLIED_QUALITY
    return PolicyVersion(
        **_without(row, "tenant", "kind"),
        kind=PolicyKind.QUALITY if is_supplied else PolicyKind(row["kind"]),
        source=PolicySource.SUPPLIED if is_supplied else PolicySource.INHERITED,
    )


def policy_kind(kind: PolicyKind, source: PolicySource) -> str:
    """Return the kind under which a policy is kept; only a quality policy is ever supplied."""
    return SUPPLIED_QUALITY if source is PolicySource.SUPPLIED else str(kind)


def policy_version_row(version: PolicyVersion) -> dict[str, object]:
    """Return the columns of `policy_version`."""
    row = flat_row(version) | {"kind": policy_kind(version.kind, version.source)}
    del row["source"]
    return row


def actor(row: Row) -> Actor:
    """Return the actor of a row."""
    return Actor(**_without(row, "tenant"))


def actor_key_row(key: ActorKey) -> dict[str, object]:
    """Return the columns of `actor_key`; a revocation is a row of its own."""
    row = flat_row(key)
    del row["revoked_at"]
    return row


def actor_key(row: Row) -> ActorKey:
    """Return the key of a row joined with its revocation."""
    return ActorKey(**_without(row, "tenant", "kind"), kind=KeyKind(row["kind"]))


def grant(row: Row) -> Grant:
    """Return the grant of a row."""
    return Grant(**_without(row, "tenant", "role"), role=Role(row["role"]))


def attestation_row(value: Attestation) -> dict[str, object]:
    """Return the columns of `attestation`, without the instant of storing."""
    return {
        "id": value.id,
        "key_id": value.claims.key,
        "actor": value.claims.actor,
        "action": str(value.claims.action),
        "nonce": value.claims.nonce,
        "claims": value.claims.signed_bytes(),
        "signature": value.signature,
    }


def attestation(row: Row) -> Attestation:
    """Return the attestation of a row."""
    return Attestation(claims=read_claims(row["claims"]), signature=row["signature"])


def event(row: Row) -> Event:
    """Return the event of a row; its number is only its place."""
    return Event(**_without(row, "tenant", "number"))


def entry(row: Row) -> Entry:
    """Return the evidence entry of a row."""
    return Entry(**{**row, "entry_hash": Sha256(row["entry_hash"])})


def _without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
