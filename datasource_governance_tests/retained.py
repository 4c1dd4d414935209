"""Retention policies, candidates and plans for tests: due and free by default."""

from datetime import UTC, datetime, timedelta

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.retention import (
    Candidate,
    GoverningPolicy,
    RetentionClass,
    TargetKind,
)
from datasource_governance.domain.retention_plan import make_plan
from datasource_governance.domain.retention_policy import parse_retention_policy

AS_OF = datetime(2024, 6, 30, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
EVERY_DAYS = {"stage_days": 30, "materialization_days": 365, "frozen_evidence_days": 3650}


def retention_document(**keys):
    """Return an enabled retention policy document with days for every class."""
    return {"version": "r1", "enabled": True, **EVERY_DAYS, **keys}


def governing(datasource="orders", **keys):
    """Return the policy of a datasource, as `retention_document`."""
    policy = parse_retention_policy(retention_document(**keys))
    return GoverningPolicy(datasource=datasource, policy=policy)


def candidate(name="s1", kind=TargetKind.STAGE, **facts):
    """Return something that was created long ago."""
    is_stage = kind is TargetKind.STAGE
    defaults = {
        "datasource": "orders",
        "partition": "",
        "retention_class": RetentionClass.STAGE if is_stage else RetentionClass.MATERIALIZATION,
        "created_at": datetime(2001, 1, 1, tzinfo=UTC),
        "rows": 2,
        "bytes": 20,
        "payload_sha256": Sha256("a" * 64),
    }
    return Candidate(id=name, kind=kind, **defaults | facts)


def plan_of(*candidates, policies=None, as_of=AS_OF, tenant="default", datasource=None):
    """Return the plan over candidates, by default all of one datasource."""
    governs = [governing()] if policies is None else policies
    return make_plan(tenant, datasource, as_of, governs, candidates)
