"""Tell of a transition: one event for other systems and one link of evidence, with the same facts.

Source: SPEC section 13.
"""

from collections.abc import Mapping
from datetime import datetime

from datasource_governance.domain.event import event
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.ports import UnitOfWork


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
