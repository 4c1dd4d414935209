"""The tables of schema `governance` as SQLAlchemy Core sees them.

The migrations define the tables; this is what queries are written against, and a test holds the two
together. Columns that the application may change say so in `info`, and so do those that were added
to a table later: without a value they are no part of what evidence commits to, as they were not.
"""

from functools import cache

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, MetaData, Table, Text

from datasource_governance.persistence import columns, contract_tables
from datasource_governance.persistence.columns import INSTANT as _INSTANT
from datasource_governance.persistence.columns import added as _added
from datasource_governance.persistence.columns import key as _key
from datasource_governance.persistence.columns import mutable as _mutable
from datasource_governance.persistence.columns import optional as _optional
from datasource_governance.persistence.columns import required as _set
from datasource_governance.persistence.columns import table as _table

REVISION = "0007"
"""The revision of the schema that these tables are, and the only one that is worked with."""

metadata = columns.metadata

actor = _table("actor", _key("id"), _set("display_name"), _set("created_at", _INSTANT))

attestation = _table(
    "attestation",
    _key("id"),
    _set("key_id"),
    _set("actor"),
    _set("action"),
    _set("nonce"),
    _set("claims", LargeBinary),
    _set("signature", LargeBinary),
    _set("stored_at", _INSTANT),
)

run_attestation = _table("run_attestation", _key("run_id"), _set("attestation_id"))

actor_key = _table(
    "actor_key",
    _key("id"),
    _set("actor"),
    _set("kind"),
    _set("public_key", LargeBinary),
    _optional("attestation_id"),
    _set("created_at", _INSTANT),
)

key_revocation = _table(
    "key_revocation", _key("key_id"), _set("attestation_id"), _set("revoked_at", _INSTANT)
)

role_grant = _table(
    "role_grant",
    _key("id"),
    _set("actor"),
    _set("role"),
    _optional("datasource"),
    _optional("attestation_id"),
    _set("granted_at", _INSTANT),
)

grant_withdrawal = _table(
    "grant_withdrawal", _key("grant_id"), _set("attestation_id"), _set("withdrawn_at", _INSTANT)
)

datasource = _table(
    "datasource",
    _key("id"),
    _set("kind"),
    _set("created_at", _INSTANT),
    _mutable("quality_policy_hash", Text, nullable=True),
    _mutable("approval_policy_hash", Text, nullable=True),
    _mutable("retention_policy_hash", Text, nullable=True),
    _mutable("settings", LargeBinary),
    _mutable("current_materialization", Text, nullable=True),
    _mutable("revision", BigInteger),
)

policy_version = _table(
    "policy_version",
    _key("datasource"),
    _key("kind"),
    _key("hash"),
    _optional("version"),
    _set("document", LargeBinary),
    _optional("attestation_id"),
    _set("created_at", _INSTANT),
)

stage = _table(
    "stage",
    _key("id"),
    _set("datasource"),
    _set("creator"),
    _optional("attestation_id"),
    _set("delivery"),
    _set("delivery_sha256"),
    _set("schema", LargeBinary),
    _set("payload_fingerprint"),
    _set("payload_sha256"),
    _set("row_count", BigInteger),
    _set("byte_count", BigInteger),
    _optional("base"),
    _set("quality_policy_hash"),
    _optional("approval_policy_hash"),
    _set("approval_required", Boolean),
    _set("policy_source"),
    _set("evaluator_version"),
    _set("outcome"),
    _set("validation", LargeBinary),
    _set("validation_hash"),
    _set("created_at", _INSTANT),
    _mutable("state", Text),
    _added("publication"),
    _added("partition"),
    _added("artifact", LargeBinary),
    _added("origin"),
)

stage_payload = _table("stage_payload", _key("stage"), _set("payload", LargeBinary))

origin_version = _table("origin_version", _key("stage"), _set("version"))

decision = _table(
    "decision",
    _key("id"),
    _set("datasource"),
    _set("stage"),
    _set("stage_fingerprint"),
    _set("quality_policy_hash"),
    _optional("approval_policy_hash"),
    _optional("base"),
    _set("actor"),
    _set("grant_id"),
    _set("verdict"),
    _set("reason"),
    _set("attestation_id"),
    _set("decided_at", _INSTANT),
    _optional("expires_at", _INSTANT),
)

materialization = _table(
    "materialization",
    _key("id"),
    _set("datasource"),
    _optional("stage"),
    _optional("revision", BigInteger),
    _set("schema", LargeBinary),
    _set("payload_fingerprint"),
    _set("payload_sha256"),
    _set("row_count", BigInteger),
    _set("byte_count", BigInteger),
    _set("provenance", LargeBinary),
    _set("created_by"),
    _set("created_at", _INSTANT),
    _mutable("disposition", Text),
    _added("publication"),
    _added("partition"),
    _added("artifact", LargeBinary),
)

materialization_payload = _table(
    "materialization_payload", _key("materialization"), _set("payload", LargeBinary)
)

publication = _table(
    "publication",
    _key("id"),
    _set("datasource"),
    _set("producer"),
    _set("idempotency_key"),
    _optional("partition"),
    _set("request_hash"),
    _set("state"),
    _set("materialization"),
    _set("validation", LargeBinary),
    _set("validation_hash"),
    _optional("evidence", LargeBinary),
    _set("quality_policy_hash"),
    _set("policy_source"),
    _set("actor"),
    _set("grant_id"),
    _optional("attestation_id"),
    _optional("run_id"),
    _set("created_at", _INSTANT),
)

current_partition = _table(
    "current_partition",
    _key("datasource"),
    _key("partition"),
    _mutable("materialization", Text),
    _mutable("revision", BigInteger),
)

retention_plan = _table(
    "retention_plan",
    _key("hash"),
    _optional("datasource"),
    _set("as_of", _INSTANT),
    _set("body", LargeBinary),
    _set("planned_by"),
    _set("created_at", _INSTANT),
)

retention_application = _table(
    "retention_application",
    _key("plan"),
    _set("actor"),
    _set("attestation_id"),
    _optional("run_id"),
    _set("targets"),
    _set("applied_at", _INSTANT),
)

disposition = _table(
    "disposition",
    _key("kind"),
    _key("subject"),
    _set("plan"),
    _set("datasource"),
    _set("retention_class"),
    _set("action"),
    _set("state_before"),
    _set("disposed_at", _INSTANT),
)

legal_hold = _table(
    "legal_hold",
    _key("id"),
    _set("datasource"),
    _set("scope"),
    _set("subject"),
    _set("reason"),
    _set("actor"),
    _set("grant_id"),
    _set("attestation_id"),
    _set("placed_at", _INSTANT),
)

hold_release = _table(
    "hold_release",
    _key("hold"),
    _set("actor"),
    _set("grant_id"),
    _set("reason"),
    _set("attestation_id"),
    _set("released_at", _INSTANT),
)

frozen_evidence = _table(
    "frozen_evidence",
    _key("materialization"),
    _set("datasource"),
    _set("reason"),
    _set("actor"),
    _set("grant_id"),
    _set("attestation_id"),
    _set("frozen_at", _INSTANT),
)

contract_check = contract_tables.contract_check
contract_violation = contract_tables.contract_violation
violation_resolution = contract_tables.violation_resolution
contract_watch = contract_tables.contract_watch

outbox = _table(
    "outbox",
    _key("id"),
    _set("datasource"),
    _set("number", BigInteger),
    _set("type"),
    _set("body", LargeBinary),
    _set("created_at", _INSTANT),
)

outbox_position = _table(
    "outbox_position",
    _key("receiver"),
    _key("datasource"),
    _mutable("delivered", BigInteger),
    _mutable("attempts", Integer),
    _mutable("retry_at", _INSTANT, nullable=True),
)

dead_letter = _table(
    "dead_letter",
    _key("receiver"),
    _key("event"),
    _set("attempts", Integer),
    _set("problem"),
    _set("at", _INSTANT),
    _mutable("accepted_at", _INSTANT, nullable=True),
)

evidence = _table(
    "evidence",
    _key("chain"),
    _key("sequence", BigInteger),
    _set("previous_hash"),
    _set("kind"),
    _set("subject"),
    _set("body", LargeBinary),
    _set("at", _INSTANT),
    _set("entry_hash"),
)

evidence_head = _table(
    "evidence_head",
    _key("chain"),
    _mutable("sequence", BigInteger),
    _mutable("entry_hash", Text),
)

GOVERNED = (
    actor,
    attestation,
    run_attestation,
    actor_key,
    key_revocation,
    role_grant,
    grant_withdrawal,
    datasource,
    policy_version,
    publication,
    stage,
    stage_payload,
    origin_version,
    decision,
    materialization,
    materialization_payload,
    current_partition,
    retention_plan,
    retention_application,
    disposition,
    legal_hold,
    hold_release,
    frozen_evidence,
    contract_check,
    contract_violation,
    violation_resolution,
    outbox,
)
"""The tables whose rows evidence speaks about, in an order that foreign keys allow."""

_views = MetaData(schema="governance")
DIGESTS = {
    table.name: Table(
        f"{table.name}_digest",
        _views,
        *(Column(column.name, Text) for column in table.primary_key),
        Column("sha256", Text),
    )
    for table in (stage_payload, materialization_payload)
}
"""The views that give the digest of a payload to who may not read it, by the table's name."""


@cache
def immutable_columns(table: Table) -> tuple[Column[object], ...]:
    """Return the columns that never change, payloads included."""
    return tuple(column for column in table.columns if not column.info.get("mutable"))


@cache
def mutable_columns(table: Table) -> tuple[Column[object], ...]:
    """Return the columns that transitions may change and evidence follows."""
    return tuple(column for column in table.columns if column.info.get("mutable"))
