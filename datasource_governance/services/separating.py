"""Separation of duties in retention: who shortens a policy does not destroy by it the same day.

Source: SPEC section 12; facts T-26.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.canonical import Json, load_object
from datasource_governance.domain.evidence import Entry, datasource_chain
from datasource_governance.domain.policy_version import PolicyKind, recorded_approval_policy
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork

PERIOD = timedelta(hours=24)
"""For so long the author of a retention policy cannot apply a plan; at the end of it they can."""


def check_separated(work: UnitOfWork, actor: ActorId, datasource: str, now: datetime) -> None:
    """Refuse an actor who changed the retention policy of a datasource less than 24 hours ago.

    Only where the datasource's approval policy separates duties.

    Raises:
        GuardError: code `changed_policy_recently`.
    """
    if not _separates(work, datasource):
        return
    applied = work.evidence.segment(datasource_chain(datasource), datasource)
    for author, at in _retention_changes(applied):
        if author == actor and now - at < PERIOD:
            raise GuardError(
                f"actor {actor!r} changed the retention policy of datasource {datasource!r} at "
                f"{at.isoformat()} and cannot apply a plan before {(at + PERIOD).isoformat()}; "
                "another administrator can",
                code="changed_policy_recently",
                datasource=datasource,
                actor=actor,
            )


def _separates(work: UnitOfWork, datasource: str) -> bool:
    policy_hash = work.datasources.get(datasource).approval_policy_hash
    if policy_hash is None:
        return False
    kept = work.datasources.policy(datasource, PolicyKind.APPROVAL, policy_hash)
    return recorded_approval_policy(kept).separation_of_duties


def _retention_changes(entries: Iterable[Entry]) -> Iterator[tuple[Json, datetime]]:
    """Yield who changed the retention policy, and when."""
    before: Json = None
    for entry in entries:
        if entry.kind != "governance.applied":
            continue
        facts = load_object(entry.body)["facts"]
        if isinstance(facts, dict) and facts["retention_policy_hash"] != before:
            before = facts["retention_policy_hash"]
            yield facts["author"], entry.at
