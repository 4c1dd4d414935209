"""Tell once of each approval of a waiting stage that expires soon.

It decides nothing: at its expiry an approval stops to count whether anybody was told or not.

Source: SPEC sections 7, 13 and 15.
"""

from datetime import datetime

from datasource_governance.domain.approval import Decision, Quorum
from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.event import EXPIRING
from datasource_governance.domain.evidence import Entry, datasource_chain
from datasource_governance.domain.stage import OPEN_STATES, Stage, changed_since
from datasource_governance.domain.standing import expires_soon
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.approval import quorum_at
from datasource_governance.services.recording import record


def tell_of_expiring(work: UnitOfWork, stage_id: str) -> int:
    """Write an event for each approval that counts, expires soon and was not told of yet.

    Return how many. What was told of is found in the evidence, so asking again, or two asking at
    once, writes nothing new. A stage that is closed or outdated has none.

    Raises:
        NotFoundError: for an unknown stage.
    """
    with work:
        found = work.stages.get(stage_id)
        target = work.datasources.get_for_update(found.datasource, found.partition)
        stage = work.stages.get_for_update(stage_id)
        now = work.now()
        quorum = quorum_at(work, stage, now)
        if quorum is None or stage.state not in OPEN_STATES or changed_since(stage, target):
            return 0
        news = _news(work, stage, quorum, now)
        for approval in news:
            _record(work, stage, quorum, approval, now)
        if news:
            work.commit()
    return len(news)


def _news(work: UnitOfWork, stage: Stage, quorum: Quorum, now: datetime) -> list[Decision]:
    soon = [approval for approval in quorum.approvals if expires_soon(approval, now)]
    if not soon:
        return []
    entries = work.evidence.segment(datasource_chain(stage.datasource), stage.id)
    told = {_decision(entry) for entry in entries if entry.kind == EXPIRING}
    return [approval for approval in soon if approval.id not in told]


def _decision(entry: Entry) -> Json:
    body = load_canonical(entry.body)
    facts = body.get("facts") if isinstance(body, dict) else None
    return facts.get("decision") if isinstance(facts, dict) else None


def _record(
    work: UnitOfWork, stage: Stage, quorum: Quorum, approval: Decision, now: datetime
) -> None:
    facts = {
        "stage": stage.id,
        "stage_fingerprint": stage.fingerprint(work.tenant),
        "decision": approval.id,
        "actor": approval.actor,
        "expires_at": approval.expires_at.isoformat() if approval.expires_at else None,
        "approvals": len(quorum.approvals),
        "required": quorum.required,
    }
    record(work, stage.datasource, EXPIRING, subject=stage.id, facts=facts, at=now)
