"""Values of the approval life cycle: valid by default, changed by what a test is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import Decision, Verdict, subject_of
from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.target import Target
from datasource_governance.domain.validation import Outcome, RuleOutcome, Status, assemble
from datasource_governance_tests.builders import quality_policy, rule, schema

TENANT = "default"
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
CREATOR = ActorId("creator")


def sha(text):
    """Return something that looks like a hash, the same for the same text."""
    return Sha256(text.encode().hex().ljust(64, "0")[:64])


def policy(**keys):
    """Return an approval policy that asks for one approval which lasts an hour."""
    given = {"version": "v1", "required": True, "expires_after_hours": 1, **keys}
    return parse_approval_policy(
        {name: value for name, value in given.items() if value is not None}
    )


def target(**changes):
    """Return a datasource whose policies are those of `stage()`."""
    made = Target(
        datasource="orders",
        kind="static",
        quality_policy_hash=sha("quality"),
        approval_policy_hash=policy().hash,
        retention_policy_hash=None,
        promotion="manual",
        current=None,
        revision=0,
        created_at=MIDDAY,
    )
    return replace(made, **changes)


def stage(**changes):
    """Return a stage that waits for approval."""
    made = Stage(
        id="stage-1",
        datasource="orders",
        creator=CREATOR,
        attestation_id="attestation-of-the-delivery",
        delivery="delivery.csv",
        delivery_sha256=sha("file"),
        schema=b'[{"name":"id","nullable":false,"type":"integer"}]',
        payload_fingerprint=sha("payload"),
        payload_sha256=sha("bytes"),
        row_count=2,
        byte_count=16,
        base=None,
        quality_policy_hash=sha("quality"),
        approval_policy_hash=policy().hash,
        approval_required=True,
        policy_source="inherited",
        evaluator_version="1",
        outcome=Outcome.READY,
        validation=b'{"outcome":"ready"}',
        validation_hash=sha("validation"),
        created_at=MIDDAY,
        state=StageState.AWAITING_APPROVAL,
    )
    return replace(made, **changes)


def decision(actor="approver-1", **changes):
    """Return an approval of `stage()` made at midday, which expires in an hour."""
    made = Decision(
        id=f"decision-of-{actor}",
        subject=subject_of(stage(), TENANT),
        actor=ActorId(actor),
        grant_id=f"grant-of-{actor}",
        verdict=Verdict.APPROVE,
        reason="checked",
        attestation_id=f"attestation-of-{actor}",
        decided_at=MIDDAY,
        expires_at=MIDDAY + HOUR,
    )
    return replace(made, **changes)


def outcome(rule_id="r", status=Status.PASSED, severity=Severity.ERROR, **changes):
    """Return what a `row_count` rule found."""
    made = RuleOutcome(id=rule_id, type="row_count", severity=severity, status=status, fields=())
    return replace(made, **changes)


def validation(*outcomes, previous=None, **changes):
    """Return the validation of two rows of `id` by rules with these outcomes."""
    rules = outcomes or (outcome(),)
    governing = quality_policy(*(rule(id=one.id, severity=str(one.severity)) for one in rules))
    detected = schema(id="integer")
    facts = {
        "policy": governing,
        "rules": rules,
        "schema": detected,
        "schema_diff": previous and compare_schemas(previous, detected, {}),
        "row_count": 2,
        "byte_count": 16,
        "fingerprint": sha("payload"),
        "engine": "polars",
    }
    return assemble(**{**facts, **changes})
