"""What may be due, with everything that keeps it, in one statement for each class.

A statement begins at what is old enough and still there, which the partial indexes `stage_left` and
`materialization_left` hold. Of holds and of open stages the datasource has few, and all are read;
of all else only what an object itself refers to, so no join can choose to read a whole history.

Source: ports.retention, `candidates`; SPEC section 12 ("Blockers").
"""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import TextClause, text

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.retention import (
    Blocker,
    BlockerKind,
    Candidate,
    RetentionClass,
    TargetKind,
)
from datasource_governance.persistence.rows import Row

_HELD = """
WITH held AS (
    SELECT h.scope, h.subject, array_agg(h.id) AS ids FROM governance.legal_hold h
    WHERE h.tenant = :tenant AND h.datasource = :datasource AND NOT EXISTS (
        SELECT FROM governance.hold_release r WHERE r.tenant = h.tenant AND r.hold = h.id)
    GROUP BY h.scope, h.subject)
"""

# A stage waits as long as it can be decided about, as `domain.stage.changed_since` says.
_STAGES = """
SELECT s.id, s.datasource, s.partition, s.created_at, s.row_count, s.byte_count, s.payload_sha256,
    s.state, governance.locator(s.artifact) AS locator,
    s.state = 'awaiting_approval'
        AND s.base IS NOT DISTINCT FROM
            CASE WHEN s.partition IS NULL THEN d.current_materialization ELSE (
                SELECT p.materialization FROM governance.current_partition p
                WHERE p.tenant = s.tenant AND p.datasource = s.datasource
                    AND p.partition = s.partition) END
        AND s.approval_policy_hash IS NOT DISTINCT FROM d.approval_policy_hash
        AND CASE s.policy_source WHEN 'supplied'
            THEN convert_from(d.settings, 'UTF8')::json ->> 'allow_supplied_policy' = 'true'
            ELSE s.quality_policy_hash = d.quality_policy_hash END
        AND s.evaluator_version = coalesce(
            convert_from(d.settings, 'UTF8')::json ->> 'evaluator_version', '{native}')
        AS pending_approval,
    own.ids || whole.ids AS legal_hold
FROM governance.stage s
JOIN governance.datasource d ON d.tenant = s.tenant AND d.id = s.datasource
LEFT JOIN held own ON own.scope = 'stage' AND own.subject = s.id
LEFT JOIN held whole ON whole.scope = 'datasource'
WHERE s.tenant = :tenant AND s.datasource = :datasource AND s.state <> 'deleted'
    AND s.created_at <= :until
"""

# A review is over when its stage is; without one, when something newer is current in its place.
_MADE = """
, base AS (
    SELECT o.base, array_agg(o.id) AS ids FROM governance.stage o
    WHERE o.tenant = :tenant AND o.datasource = :datasource
        AND o.state IN ('ready', 'awaiting_approval')
    GROUP BY o.base)
SELECT m.id, m.datasource, m.partition, m.created_at, m.row_count, m.byte_count, m.payload_sha256,
    governance.locator(m.artifact) AS locator,
    c.id = m.id AS current_materialization,
    own.ids || whole.ids AS legal_hold,
    ARRAY(SELECT w.id FROM governance.publication w
        LEFT JOIN governance.stage s ON s.tenant = w.tenant AND s.publication = w.id
        LEFT JOIN governance.materialization n ON n.tenant = w.tenant AND n.id = c.id
        WHERE w.tenant = m.tenant AND w.id = m.publication AND w.state = 'review_required'
            AND NOT coalesce(s.state NOT IN ('ready', 'awaiting_approval'),
                n.created_at > m.created_at, false)) AS referenced_by_publication,
    base.ids AS base_of_open_stage
FROM governance.materialization m
JOIN governance.datasource d ON d.tenant = m.tenant AND d.id = m.datasource
CROSS JOIN LATERAL (
    SELECT CASE WHEN m.partition IS NULL THEN d.current_materialization ELSE (
        SELECT p.materialization FROM governance.current_partition p
        WHERE p.tenant = m.tenant AND p.datasource = m.datasource
            AND p.partition = m.partition) END AS id) c
LEFT JOIN base ON base.base = m.id
LEFT JOIN held own ON own.scope = 'materialization' AND own.subject = m.id
LEFT JOIN held whole ON whole.scope = 'datasource'
WHERE m.tenant = :tenant AND m.datasource = :datasource AND m.disposition = 'retained'
    AND m.created_at <= :until AND {frozen} (
        SELECT FROM governance.frozen_evidence f
        WHERE f.tenant = m.tenant AND f.materialization = m.id)
"""

_BY_CLASS: Final = {
    RetentionClass.STAGE: _HELD + _STAGES.format(native=EVALUATOR_VERSION),
    RetentionClass.MATERIALIZATION: _HELD + _MADE.format(frozen="NOT EXISTS"),
    RetentionClass.FROZEN_EVIDENCE: _HELD + _MADE.format(frozen="EXISTS"),
}
_ONE_OF = {
    RetentionClass.STAGE: "AND s.id = :id",
    RetentionClass.MATERIALIZATION: "AND m.id = :id",
    RetentionClass.FROZEN_EVIDENCE: "AND m.id = :id",
}
DUE: Final = {of_class: text(query) for of_class, query in _BY_CLASS.items()}
"""By class: everything of it that was created until an instant, and is still there.

The parameters are `tenant`, `datasource` and `until`.
"""
ONE: Final[dict[RetentionClass, TextClause]] = {
    of_class: text(f"{query} {_ONE_OF[of_class]}") for of_class, query in _BY_CLASS.items()
}
"""As `DUE`, but only the one that is called `id`."""


def candidate(row: Row, retention_class: RetentionClass) -> Candidate:
    """Return the candidate of a row."""
    is_stage = retention_class is RetentionClass.STAGE
    return Candidate(
        kind=TargetKind.STAGE if is_stage else TargetKind.MATERIALIZATION,
        id=row["id"],
        datasource=row["datasource"],
        partition=row["partition"] or "",
        retention_class=retention_class,
        created_at=row["created_at"],
        rows=row["row_count"],
        bytes=row["byte_count"],
        payload_sha256=Sha256(row["payload_sha256"]),
        state=row["state"] if is_stage else None,
        artifact=row["locator"],
        blockers=tuple(_blockers(row)),
    )


def _blockers(row: Row) -> Iterator[Blocker]:
    """Yield what keeps the object of a row: the column of its kind is true, or has ids."""
    for kind in BlockerKind:
        found = row.get(kind)
        if found:
            yield Blocker(kind=kind, ids=() if found is True else tuple(found))
