"""What of Dagster's picture every reader sees, and what only a steward of the datasource. Pure.

With counts a policy becomes a way to search for values, so others see pass or fail. Both lists say
what is visible: a key or a column that nobody has thought of is for stewards.

Source: SPEC sections 5 ("Row numbers and per-rule counts") and 17; threat T-11.
"""

import re
from functools import lru_cache

from datasource_governance.domain.launch import RETENTION_APPLY_JOB, RETENTION_PLAN_JOB
from datasource_governance.orchestration import metadata, plan_metadata
from datasource_governance.orchestration.refusals import CODE
from datasource_governance.orchestration.retention import APPLY_OP, RETENTION_PLAN
from datasource_governance.web.policy import (
    ASSET_JOB,
    READ_COUNTS,
    READ_PLANS,
    Launch,
    Need,
    needs_of_launch,
)

OURS = f"{metadata.NAMESPACE}/"
RESTRICTED = f"{OURS}restricted"
"""The one entry that stands for everything that is left out of an entry list."""
PUBLIC_KEYS = frozenset(
    {
        metadata.APPROVED_BY,
        metadata.BASE,
        metadata.BOUND_TO,
        metadata.CLASSIFICATION,
        metadata.COMPLIANCE,
        metadata.CONTRACT,
        metadata.CREATOR,
        metadata.DATASOURCE,
        metadata.DECISION_PAGE,
        metadata.DECISION_PAGES,
        metadata.DELIVERY,
        metadata.FAILED_RULES,
        metadata.FIELDS,
        metadata.INPUTS,
        metadata.KEY,
        metadata.MATERIALIZATION_ID,
        metadata.NEXT_STEP,
        metadata.NOT_MODIFIED,
        metadata.OUTCOME,
        metadata.PARTITION,
        metadata.POLICIES,
        metadata.POLICY_DRIFT,
        metadata.PRODUCER,
        metadata.PROMOTED_BY,
        metadata.PROVENANCE,
        metadata.PROVIDER,
        metadata.PUBLICATION,
        metadata.PUBLISHED_BY,
        metadata.REASON,
        metadata.REPLAYED,
        metadata.REVISION,
        metadata.RULE_ID,
        metadata.RULES,
        metadata.RUN,
        metadata.SCHEMA_DIFF,
        metadata.SCORE,
        metadata.SCORE_LEVEL,
        metadata.SECONDS,
        metadata.SEVERITY,
        metadata.STAGE_ID,
        metadata.STATE,
        metadata.STATUS,
        metadata.STUCK_RUN,
        metadata.TOPIC,
        metadata.USED,
        metadata.VIOLATION,
        metadata.WAITING,
        plan_metadata.AS_OF,
        plan_metadata.EXPIRES,
        plan_metadata.PLAN,
        CODE,
        f"{OURS}quality_policy_hash",
        RESTRICTED,
        "dagster/code_references",
        "dagster/column_schema",
        "pid",
        "step_keys",
    }
)
"""Metadata keys that every reader sees on what is governed."""
PUBLIC_COLUMNS = frozenset(
    {
        *("rule", "status", "reason", "severity", "type", "fields"),
        *("field", "change", "class"),
        *("policy", "version", "hash", "of", "hash or id"),
        *("stage", "state", "changed", "event", "run", "newest run", "complete since"),
        *("approvals missing", "expired", "expiring soon", "next expiry"),
        *("asset", "partition", "materialization", "revision"),
    }
)
"""Columns that every reader sees of a table under one of those keys."""

_GOVERNED_STEP = re.compile(r"([a-z][a-z0-9_]{0,62})__(?:stage|current)(?:_\w+)?(?:\[.*)?")
_PLAN_JOBS = frozenset({RETENTION_PLAN_JOB, RETENTION_APPLY_JOB})
_PLAN_STEPS = frozenset({RETENTION_PLAN.to_python_identifier(), APPLY_OP})
_REMEMBERED = 1024
# Ids and hashes, and the one sentence of ours whose numbers are of rules, stay as they are.
_NUMBER = re.compile(
    r"(?P<kept>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{64}\b"
    r"|\b\d+ of \d+ rules passed\b)"
    r"|\d+(?:[.,_]\d+)*(?P<rows> rows?\b)?"
)


@lru_cache(_REMEMBERED)
def need_of_asset(path: tuple[str, ...]) -> Need | None:
    """Return what seeing the counts of an asset needs; None for one that is not governed."""
    return need_of_launch(Launch(job=ASSET_JOB, assets=frozenset({path})))


@lru_cache(_REMEMBERED)
def need_of_step(step_key: str) -> Need | None:
    """Return what seeing the counts of a step needs; None for one that is not known by its name.

    Dagster names the step of an asset or of a check on one after the asset's key.
    """
    if step_key in _PLAN_STEPS:
        return READ_PLANS
    named = _GOVERNED_STEP.fullmatch(step_key)
    return need_of_asset((named[1], "stage")) if named else None


def need_of_launch(launch: Launch | None) -> Need | None:
    """Return what seeing the counts of a whole run needs; None for one with nothing governed in it.

    Of a run that is not known, that runs every asset or several datasources, it cannot be told.
    """
    if launch is None or (launch.job.startswith(ASSET_JOB) and not launch.assets):
        return READ_COUNTS
    datasources = {need.datasource for need in needs_of_launch(launch)} - {None}
    needs = {need_of_steward(one) for one in datasources if one}
    if launch.job in _PLAN_JOBS or tuple(RETENTION_PLAN.path) in launch.assets:
        needs.add(READ_PLANS)
    return READ_COUNTS if len(needs) > 1 else next(iter(needs), None)


def need_of_steward(datasource: str) -> Need:
    """Return what seeing the counts of a datasource needs."""
    return Need(roles=READ_COUNTS.roles, datasource=datasource)


def is_public(key: str, need: Need | None) -> bool:
    """Tell whether a reader who does not meet `need` sees a metadata key.

    On what is not governed only keys of this package are restricted.
    """
    return key in PUBLIC_KEYS or (need is None and not key.startswith(OURS))


def without_numbers(text: str) -> str:
    """Return a text with `…` for every number; `1 row` and `2 rows` read the same then."""
    return _NUMBER.sub(_masked, text)


def _masked(number: re.Match[str]) -> str:
    return number["kept"] or ("… rows" if number["rows"] else "…")
