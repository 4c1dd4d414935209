"""Tell of a transition: one event for other systems and one link of evidence, with the same facts.

Source: SPEC section 13.
"""

from collections.abc import Mapping
from datetime import datetime

from datasource_governance.domain.event import event
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.stage import Stage
from datasource_governance.ports import UnitOfWork


def record_created(work: UnitOfWork, stage: Stage) -> None:
    """Tell of a new stage; comes last, as `record`."""
    facts = {
        "stage": stage.id,
        "state": str(stage.state),
        "outcome": str(stage.outcome),
        "stage_fingerprint": stage.fingerprint(work.tenant),
        "creator": stage.creator,
        "base": stage.base,
        "quality_policy_hash": stage.quality_policy_hash,
        "approval_policy_hash": stage.approval_policy_hash,
        "validation_hash": stage.validation_hash,
        "row_count": stage.row_count,
    }
    record(
        work,
        stage.datasource,
        "stage.created",
        subject=stage.id,
        facts=facts,
        at=stage.created_at,
    )


def record(
    work: UnitOfWork,
    datasource: str,
    kind: str,
    *,
    subject: str,
    facts: Mapping[str, object],
    at: datetime,
) -> None:
    """Write the event `datasource.<kind>` and append the evidence. Comes last in a transaction.

    Facts are ids, hashes, counts, states and instants only; the append holds the chain's lock until
    the transaction ends.
    """
    work.outbox.add(event(work.new_id(), kind, datasource=datasource, facts=facts, now=at))
    work.evidence.append(
        datasource_chain(datasource), kind=kind, subject=subject, facts=facts, at=at
    )
