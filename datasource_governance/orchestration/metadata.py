"""Every `datasource_governance/…` metadata key, and the tables people look at.

Metadata hold ids, hashes, counts, states and field names; never a value and never a reason.

Source: SPEC section 15, "Metadata worth looking at".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from datasource_governance.domain.appraisal import stored_score
from datasource_governance.domain.approval_policy import ApprovalPolicy
from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.evidence import Break
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.notification import stage_page
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.retention_policy import RetentionPolicy
from datasource_governance.domain.stage import Stage

Metadata = Mapping[str, str | int | dg.MetadataValue[Any] | dg.TableSchema]

NAMESPACE = "datasource_governance"
# An asset's keys have at most 12 characters here: the UI writes longer ones over their neighbours.
AFFECTED_ROWS = f"{NAMESPACE}/affected_rows"
APPROVED_BY = f"{NAMESPACE}/approved_by"
BASE = f"{NAMESPACE}/base"
BOUND_TO = f"{NAMESPACE}/bound_to"
BREAKS = f"{NAMESPACE}/breaks"
CLASSIFICATION = f"{NAMESPACE}/classification"
COMPLIANCE = f"{NAMESPACE}/compliance"
CONTRACT = f"{NAMESPACE}/contract"
CREATOR = f"{NAMESPACE}/creator"
DATASOURCE = f"{NAMESPACE}/datasource"
DECISION_PAGE = f"{NAMESPACE}/decide"
DECISION_PAGES = f"{NAMESPACE}/decisions"
DELIVERY = f"{NAMESPACE}/delivery"
ENTRIES = f"{NAMESPACE}/entries"
FAILED_RULES = f"{NAMESPACE}/failed_rules"
FIELDS = f"{NAMESPACE}/fields"
INPUTS = f"{NAMESPACE}/inputs"
KEY = f"{NAMESPACE}/key"
MATERIALIZATION_ID = f"{NAMESPACE}/materialization_id"
NEXT_STEP = f"{NAMESPACE}/next_step"
NOT_MODIFIED = f"{NAMESPACE}/not_modified"
OUTCOME = f"{NAMESPACE}/outcome"
PARTITION = f"{NAMESPACE}/partition"
POLICIES = f"{NAMESPACE}/policies"
POLICY_DRIFT = f"{NAMESPACE}/policy_drift"
PRODUCER = f"{NAMESPACE}/producer"
PROMOTED_BY = f"{NAMESPACE}/promoted_by"
PROVENANCE = f"{NAMESPACE}/provenance"
PROVIDER = f"{NAMESPACE}/provider"
PUBLICATION = f"{NAMESPACE}/publication"
PUBLISHED_BY = f"{NAMESPACE}/published_by"
REASON = f"{NAMESPACE}/reason"
REPLAYED = f"{NAMESPACE}/replayed"
REVISION = f"{NAMESPACE}/revision"
ROW_NUMBERS = f"{NAMESPACE}/row_numbers"
ROWS = f"{NAMESPACE}/rows"
RULE_ID = f"{NAMESPACE}/rule_id"
RULES = f"{NAMESPACE}/rules"
SCHEMA_DIFF = f"{NAMESPACE}/schema_diff"
SCORE = f"{NAMESPACE}/score"
SCORE_LEVEL = f"{NAMESPACE}/score_level"
RUN = f"{NAMESPACE}/run"
SECONDS = f"{NAMESPACE}/seconds"
SEVERITY = f"{NAMESPACE}/severity"
STAGE_ID = f"{NAMESPACE}/stage_id"
STATE = f"{NAMESPACE}/state"
STATUS = f"{NAMESPACE}/status"
STUCK_RUN = f"{NAMESPACE}/stuck_run"
TOPIC = f"{NAMESPACE}/topic"
USED = f"{NAMESPACE}/used_percent"
VIOLATION = f"{NAMESPACE}/violation"
WAITING = f"{NAMESPACE}/waiting"

_LISTED = 25
_RULE_COLUMNS = ("rule", "status", "affected", "reason", "severity", "type", "fields")


def policy_metadata(declaration: Datasource) -> Metadata:
    """Return the definition metadata of a datasource's assets: its declared policies."""
    declared: dict[str, QualityPolicy | ApprovalPolicy | RetentionPolicy | None] = {
        "quality": declaration.quality_policy,
        "approval": declaration.approval_policy,
        "retention": declaration.retention_policy,
    }
    records = [
        {"policy": kind, "version": policy.version, "hash": policy.hash}
        for kind, policy in declared.items()
        if policy is not None
    ]
    return {POLICIES: _table(records, "policy", "version", "hash")} if records else {}


def decision_pages(webserver: str) -> Metadata:
    """Return the link to what waits for a decision; `webserver` is its address."""
    return {DECISION_PAGES: dg.MetadataValue.url(f"{webserver.rstrip('/')}/governance/decisions")}


def stage_metadata(
    stage: Stage, tenant: str, declared: QualityPolicy | None, webserver: str
) -> Metadata:
    """Return the metadata of one stage's materialization event, what people look for first.

    `webserver` is the address of the governed webserver, which has a page about every stage.
    """
    page = stage_page(webserver, stage.id)
    validation = validation_of(stage)
    rules = rules_of(validation)
    return {
        NEXT_STEP: dg.MetadataValue.md(next_step(stage, page)),
        DECISION_PAGE: dg.MetadataValue.url(page),
        STATE: str(stage.state),
        OUTCOME: str(stage.outcome),
        **score_metadata(validation),
        FAILED_RULES: sum(rule["status"] != "passed" for rule in rules),
        RULES: rule_table(rules),
        SCHEMA_DIFF: change_table(validation["schema_diff"]),
        STAGE_ID: stage.id,
        BASE: stage.base or "none",
        CREATOR: stage.creator,
        DELIVERY: stage.delivery,
        POLICY_DRIFT: policy_drift(stage.quality_policy_hash, declared),
        BOUND_TO: _identities(
            {
                "stage": stage.fingerprint(tenant),
                "payload": stage.payload_fingerprint,
                "validation": stage.validation_hash,
                "quality policy": stage.quality_policy_hash,
                "approval policy": stage.approval_policy_hash,
            }
        ),
        "dagster/row_count": stage.row_count,
        "dagster/column_schema": column_schema(stage.schema),
    }


def unmodified_metadata(stage: Stage) -> Metadata:
    """Return the metadata of a refresh that made no stage; this one has what the origin says."""
    return {NOT_MODIFIED: "the origin says what it said before", STAGE_ID: stage.id}


def validation_of(stage: Stage) -> dict[str, Json]:
    """Return the stored validation of a stage."""
    return _object(load_canonical(stage.validation))


def rules_of(validation: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return what a stored validation found, rule by rule, in the order of the policy."""
    return [_object(rule) for rule in _list(validation["rules"])]


def score_metadata(validation: Mapping[str, Json]) -> Metadata:
    """Return the score of a stored validation, which Dagster plots over time, and who evaluated.

    There is none without a platform manifest.
    """
    found = stored_score(validation)
    if found is None:
        return {}
    value = found.value
    return {
        **({} if value is None else {SCORE: dg.MetadataValue.float(value)}),
        SCORE_LEVEL: str(found.level),
        PROVIDER: found.provider,
    }


def policy_hash_of(validation: Mapping[str, Json]) -> str:
    """Return the hash of the policy that a stored validation is about."""
    return str(_object(validation["policy"])["hash"])


def policy_drift(policy_hash: str, declared: QualityPolicy | None) -> bool:
    """Whether another policy was applied than the one that this location declares."""
    return declared is None or declared.hash != policy_hash


def materialization_metadata(
    materialization: Materialization, provenance: Mapping[str, Json]
) -> Metadata:
    """Return the metadata of the event of what a stage or a publication became."""
    policies = _object(provenance["policies"])
    published = provenance.get("publication")
    revision = materialization.revision
    return {
        **({} if revision is None else {REVISION: revision}),
        **(
            _promotion(materialization, provenance)
            if published is None
            else _publication(materialization, _object(published))
        ),
        PROVENANCE: _identities(
            {
                "materialization": materialization.id,
                "payload": materialization.payload_fingerprint,
                "validation": provenance["validation_hash"],
                "quality policy": policies["quality"],
                "approval policy": policies["approval"],
            }
        ),
        "dagster/row_count": materialization.row_count,
        "dagster/column_schema": column_schema(materialization.schema),
    }


def _promotion(materialization: Materialization, provenance: Mapping[str, Json]) -> Metadata:
    approval = provenance["approval"]
    approvals = _list(_object(approval)["approvals"]) if isinstance(approval, dict) else []
    return {
        APPROVED_BY: ", ".join(str(_object(one)["actor"]) for one in approvals) or "not required",
        PROMOTED_BY: materialization.created_by,
        STAGE_ID: str(materialization.stage),
    }


def _publication(materialization: Materialization, published: Mapping[str, Json]) -> Metadata:
    partition = materialization.partition
    return {
        STATE: str(published["state"]),
        PRODUCER: str(published["producer"]),
        KEY: str(published["idempotency_key"]),
        **({PARTITION: partition} if partition else {}),
        PUBLISHED_BY: materialization.created_by,
        PUBLICATION: str(materialization.publication),
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


def rule_table(rules: Sequence[dict[str, Json]]) -> dg.TableMetadataValue:
    """Return the complete table of rules, those that did not pass first.

    It tells what a rule found, never in which value.
    """
    records = [
        {
            "rule": str(rule["id"]),
            "status": str(rule["status"]),
            "affected": "" if rule["affected"] is None else str(rule["affected"]),
            "reason": str(rule["reason"] or ""),
            "severity": str(rule["severity"]),
            "type": str(rule["type"]),
            "fields": names(rule["fields"]),
        }
        for rule in sorted(rules, key=lambda rule: rule["status"] == "passed")
    ]
    return _table(records, *_RULE_COLUMNS)


def change_table(diff: Json) -> dg.TableMetadataValue:
    """Return every schema change with its class; no rows when there was nothing to compare with."""
    changes = _list(_object(diff)["changes"]) if isinstance(diff, dict) else []
    records = [
        {
            "field": str(_object(change)["field"] or ""),
            "change": str(_object(change)["change"]),
            "class": str(_object(change)["classification"]),
        }
        for change in changes
    ]
    return _table(records, "field", "change", "class")


def break_table(breaks: Sequence[Break]) -> dg.TableMetadataValue:
    """Return every break of the evidence, named by table and key."""
    records = [
        {
            "break": str(one.kind),
            "table": one.table,
            "key": "/".join(one.key),
            "what": one.message,
        }
        for one in breaks
    ]
    return _table(records, "break", "table", "key", "what")


def input_table(
    before: dg.TableMetadataValue | None,
    asset: dg.AssetKey,
    read: Mapping[str, Materialization],
) -> dg.TableMetadataValue:
    """Return the table of what an asset read, with another input of it, by partition."""
    known = before.records if before else []
    records = [
        dg.TableRecord(
            {
                "asset": asset.to_user_string(),
                "partition": partition,
                "materialization": one.id,
                "revision": "" if one.revision is None else str(one.revision),
            }
        )
        for partition, one in read.items()
    ]
    columns = _columns("asset", "partition", "materialization", "revision")
    return dg.MetadataValue.table([*known, *records], columns)


def names(values: Json) -> str:
    """Return a JSON list as one line of text."""
    return ", ".join(str(value) for value in _list(values))


def counted(number: int, what: str) -> str:
    """Return a number of things, `1 row` or `2 rows`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed(records: Sequence[Mapping[str, str | None]], *columns: str) -> dg.TableMetadataValue:
    """Return the first 25 records as a table; what it is shown with says how many there are."""
    return _table(records[:_LISTED], *columns)


def _identities(found: Mapping[str, Json]) -> dg.TableMetadataValue:
    records = [{"of": name, "hash or id": str(value or "none")} for name, value in found.items()]
    return _table(records, "of", "hash or id")


def _table(records: Sequence[Mapping[str, str | None]], *columns: str) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(record)) for record in records],
        schema=_columns(*columns),
    )


def _columns(*names: str) -> dg.TableSchema:
    return dg.TableSchema(columns=[dg.TableColumn(name=name, type="text") for name in names])


def next_step(stage: Stage, page: str) -> str:
    """Return what a person does next with a stage, as markdown; `page` is where one decides."""
    texts = {
        "failed": "This stage is **blocked** and never becomes current. Correct the delivery and "
        "stage it again.",
        "awaiting_approval": f"Waits for approval: [decide]({page}), or "
        f"`datasource-governance approve {stage.id} --reason …`, or `reject`.",
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
