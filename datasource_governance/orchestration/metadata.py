"""Every `datasource_governance/…` metadata key, and the tables people look at.

Metadata hold ids, hashes, counts, states and field names; never a value and never a reason.

Source: SPEC section 15, "Metadata worth looking at".
"""

from collections.abc import Mapping

import dagster as dg

# The documented extension point for a library's own metadata keys; Dagster exports it nowhere else.
from dagster._core.definitions.metadata.metadata_set import (
    NamespacedMetadataSet,
)

from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.stage import Stage

NAMESPACE = "datasource_governance"
AFFECTED_ROWS = f"{NAMESPACE}/affected_rows"
ROW_NUMBERS = f"{NAMESPACE}/row_numbers"
RULE_ID = f"{NAMESPACE}/rule_id"
REASON = f"{NAMESPACE}/reason"
STATUS = f"{NAMESPACE}/status"
FIELDS = f"{NAMESPACE}/fields"
RULES = f"{NAMESPACE}/rules"
CHANGES = f"{NAMESPACE}/schema_changes"
NEXT_STEP = f"{NAMESPACE}/next_step"


class PolicyMetadata(NamespacedMetadataSet):
    """What a declaration says, shown on the asset definition."""

    quality_policy_version: str | None = None
    quality_policy_hash: str | None = None
    approval_policy_version: str | None = None
    approval_policy_hash: str | None = None
    required_approvals: int | None = None

    @classmethod
    def namespace(cls) -> str:
        """Return the namespace of the keys."""
        return NAMESPACE


class StageMetadata(NamespacedMetadataSet):
    """What a stage is bound to and how its validation ended."""

    stage_id: str
    state: str
    outcome: str
    stage_fingerprint: str
    payload_fingerprint: str
    validation_hash: str
    quality_policy_hash: str
    approval_policy_hash: str | None
    base: str | None
    creator: str
    delivery: str
    policy_drift: bool
    failed_rules: int

    @classmethod
    def namespace(cls) -> str:
        """Return the namespace of the keys."""
        return NAMESPACE


class MaterializationMetadata(NamespacedMetadataSet):
    """The provenance of what is in force."""

    materialization_id: str
    revision: int
    stage_id: str
    payload_fingerprint: str
    quality_policy_hash: str
    approval_policy_hash: str | None
    validation_hash: str
    approved_by: str
    promoted_by: str

    @classmethod
    def namespace(cls) -> str:
        """Return the namespace of the keys."""
        return NAMESPACE


def policy_metadata(declaration: Datasource) -> Mapping[str, object]:
    """Return the definition metadata of a datasource's assets."""
    quality, approval = declaration.quality_policy, declaration.approval_policy
    return {
        **PolicyMetadata(
            quality_policy_version=quality.version if quality else None,
            quality_policy_hash=quality.hash if quality else None,
            approval_policy_version=approval.version if approval else None,
            approval_policy_hash=approval.hash if approval else None,
            required_approvals=approval.required_approvals if approval else None,
        )
    }


def stage_metadata(
    stage: Stage, tenant: str, declared: QualityPolicy | None
) -> Mapping[str, object]:
    """Return the metadata of one stage's materialization event."""
    validation = _object(load_canonical(stage.validation))
    rules = [_object(rule) for rule in _list(validation["rules"])]
    return {
        **StageMetadata(
            stage_id=stage.id,
            state=str(stage.state),
            outcome=str(stage.outcome),
            stage_fingerprint=stage.fingerprint(tenant),
            payload_fingerprint=stage.payload_fingerprint,
            validation_hash=stage.validation_hash,
            quality_policy_hash=stage.quality_policy_hash,
            approval_policy_hash=stage.approval_policy_hash,
            base=stage.base,
            creator=stage.creator,
            delivery=stage.delivery,
            policy_drift=declared is None or declared.hash != stage.quality_policy_hash,
            failed_rules=sum(rule["status"] != "passed" for rule in rules),
        ),
        "dagster/row_count": stage.row_count,
        "dagster/column_schema": column_schema(stage.schema),
        RULES: rule_table(rules),
        CHANGES: change_table(validation["schema_diff"]),
        NEXT_STEP: dg.MetadataValue.md(next_step(stage)),
    }


def materialization_metadata(
    materialization: Materialization, provenance: Mapping[str, Json]
) -> Mapping[str, object]:
    """Return the metadata of one promotion's materialization event."""
    policies = _object(provenance["policies"])
    approval = provenance["approval"]
    approvals = _list(_object(approval)["approvals"]) if isinstance(approval, dict) else []
    return {
        **MaterializationMetadata(
            materialization_id=materialization.id,
            revision=materialization.revision,
            stage_id=materialization.stage,
            payload_fingerprint=materialization.payload_fingerprint,
            quality_policy_hash=str(policies["quality"]),
            approval_policy_hash=None if policies["approval"] is None else str(policies["approval"]),
            validation_hash=str(provenance["validation_hash"]),
            approved_by=", ".join(str(_object(one)["actor"]) for one in approvals) or "not required",
            promoted_by=materialization.created_by,
        ),
        "dagster/row_count": materialization.row_count,
        "dagster/column_schema": column_schema(materialization.schema),
    }


def column_schema(schema: bytes) -> dg.TableSchema:
    """Return a stored schema the way Dagster shows columns."""
    fields = [_object(field) for field in _list(load_canonical(schema))]
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=str(field["name"]),
                type=str(field["type"]),
                constraints=dg.TableColumnConstraints(nullable=bool(field["nullable"])),
            )
            for field in fields
        ]
    )


def rule_table(rules: list[dict[str, Json]]) -> dg.MetadataValue[object]:
    """Return the complete table of rules; what a rule found, never in which value."""
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "rule": str(rule["id"]),
                    "type": str(rule["type"]),
                    "severity": str(rule["severity"]),
                    "status": str(rule["status"]),
                    "affected": "" if rule["affected"] is None else str(rule["affected"]),
                    "reason": str(rule["reason"] or ""),
                    "fields": ", ".join(str(field) for field in _list(rule["fields"])),
                }
            )
            for rule in rules
        ],
        schema=_text_columns("rule", "type", "severity", "status", "affected", "reason", "fields"),
    )


def change_table(diff: Json) -> dg.MetadataValue[object]:
    """Return every schema change with its class; no rows when there was nothing to compare with."""
    changes = _list(_object(diff)["changes"]) if isinstance(diff, dict) else []
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "field": str(_object(change)["field"] or ""),
                    "change": str(_object(change)["change"]),
                    "class": str(_object(change)["classification"]),
                }
            )
            for change in changes
        ],
        schema=_text_columns("field", "change", "class"),
    )


def _text_columns(*names: str) -> dg.TableSchema:
    return dg.TableSchema(columns=[dg.TableColumn(name=name, type="text") for name in names])


def next_step(stage: Stage) -> str:
    """Return what a person does next with a stage, as markdown."""
    texts = {
        "failed": "This stage is **blocked** and never becomes current. Correct the delivery and "
        "stage it again.",
        "awaiting_approval": f"Waits for approval: `datasource-governance approve {stage.id} "
        "--reason …` or `reject`.",
        "ready": f"Ready: an operator runs `datasource-governance promote {stage.id}`.",
    }
    return texts.get(stage.state, f"This stage is {stage.state}.")


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("expected a JSON object")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("expected a JSON list")
    return value
