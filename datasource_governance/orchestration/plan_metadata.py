"""What people look at of a retention plan, and of what applying one destroyed.

Source: SPEC sections 12 and 15, "Metadata worth looking at".
"""

import dagster as dg

from datasource_governance.domain.disposition import Applied
from datasource_governance.domain.launch import RETENTION_APPLY_JOB
from datasource_governance.domain.retention_plan import PlannedTarget, RetentionPlan
from datasource_governance.orchestration.metadata import (
    NAMESPACE,
    NEXT_STEP,
    POLICIES,
    ROWS,
    Metadata,
    counted,
    listed,
)

AS_OF = f"{NAMESPACE}/as_of"
BLOCKED = f"{NAMESPACE}/blocked"
BLOCKERS = f"{NAMESPACE}/blockers"
BYTES = f"{NAMESPACE}/bytes"
DESTROYED = f"{NAMESPACE}/destroyed"
DUE = f"{NAMESPACE}/due"
EXPIRES = f"{NAMESPACE}/expires"
PLAN = f"{NAMESPACE}/plan"
TARGETS = f"{NAMESPACE}/targets"


def plan_metadata(plan: RetentionPlan) -> Metadata:
    """Return the metadata of one plan's materialization; numbers are plotted over time.

    Tables have the first 25 records, and the plan's hash is that of all of it. Rows and bytes are
    of targets that nothing blocks.
    """
    totals = plan.totals
    return {
        NEXT_STEP: dg.MetadataValue.md(_next_step(plan)),
        PLAN: plan.hash,
        AS_OF: plan.as_of.isoformat(),
        EXPIRES: plan.expires_at.isoformat(),
        DUE: totals.targets,
        BLOCKED: totals.blocked,
        ROWS: totals.rows,
        BYTES: totals.bytes,
        TARGETS: _target_table(plan),
        BLOCKERS: _blocker_table(plan),
        POLICIES: _policy_table(plan),
    }


def applied_metadata(applied: Applied) -> Metadata:
    """Return the metadata of an application: who applied which plan, and what it destroyed."""
    records: list[dict[str, str | None]] = [
        {
            "what": str(one.kind),
            "id": one.subject,
            "datasource": one.datasource,
            "was": one.state_before,
            "action": str(one.action),
        }
        for one in applied.targets
    ]
    return {
        PLAN: applied.application.plan,
        DUE: len(applied.targets),
        DESTROYED: listed(records, "what", "id", "datasource", "was", "action"),
    }


def _next_step(plan: RetentionPlan) -> str:
    free = plan.totals.targets - plan.totals.blocked
    if not free:
        return "Nothing is to be destroyed."
    return (
        f"{counted(free, 'target')} of {plan.totals.targets} can be destroyed. Review all of it: "
        f"`datasource-governance retention show {plan.hash[:12]}`. Then an administrator launches "
        f"the job `{RETENTION_APPLY_JOB}` with the plan's hash, or runs "
        f"`datasource-governance retention apply {plan.hash[:12]}`."
    )


def _target_table(plan: RetentionPlan) -> dg.TableMetadataValue:
    records: list[dict[str, str | None]] = [
        {
            "what": str(target.kind),
            "id": target.id,
            "datasource": target.datasource,
            "class": str(target.retention_class),
            "due since": target.eligible_at.isoformat(),
            "action": str(target.action),
            "rows": str(target.rows),
            "bytes": str(target.bytes),
            "kept by": ", ".join(str(blocker.kind) for blocker in target.blockers),
        }
        for target in plan.targets
    ]
    columns = ("what", "id", "datasource", "class", "due since", "action", "rows", "bytes")
    return listed(records, *columns, "kept by")


def _blocker_table(plan: RetentionPlan) -> dg.TableMetadataValue:
    records = [record for target in plan.targets for record in _explained(target)]
    return listed(records, "what", "id", "kept by", "why")


def _explained(target: PlannedTarget) -> list[dict[str, str | None]]:
    return [
        {
            "what": str(target.kind),
            "id": target.id,
            "kept by": str(blocker.kind),
            "why": blocker.explanation(),
        }
        for blocker in target.blockers
    ]


def _policy_table(plan: RetentionPlan) -> dg.TableMetadataValue:
    records: list[dict[str, str | None]] = [
        {
            "datasource": one.datasource,
            "version": one.version,
            "hash": one.hash,
            "enabled": "yes" if one.enabled else "no",
        }
        for one in plan.policies
    ]
    return listed(records, "datasource", "version", "hash", "enabled")
