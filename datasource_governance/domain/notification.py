"""What people are told of an event: one line, a few more, and where to look.

Ids, hashes, states, counts of approvals and instants only. A reason, a row and how many rows a rule
found are seen where the link leads, by those who may.

Source: SPEC sections 7 and 13; threat T-33.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.event import RESOLVED, VIOLATED, Event

Facts = Mapping[str, Json]
_PREFIX_CHARACTERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message for people; `link` is where to look on the governed webserver."""

    subject: str
    text: str
    link: str

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {"subject": self.subject, "text": self.text, "link": self.link}


def notification(event: Event, public_url: str) -> Notification | None:
    """Return what people are told of an event; None when it concerns nobody.

    `public_url` is where browsers reach the governed webserver.
    """
    facts = _object(_object(load_canonical(event.body))["facts"])
    if event.type in _OF_CONTRACTS:
        return _contract_notification(event, facts, public_url)
    told = _TOLD.get((event.type, facts.get("state") or facts.get("verdict")))
    if told is None:
        return None
    gist, lines = told
    stage = str(facts["stage"])
    return Notification(
        subject=f"{event.datasource}: {gist} (stage {stage[:_PREFIX_CHARACTERS]})",
        text="\n".join(
            (
                f"datasource: {event.datasource}",
                f"stage: {stage}",
                f"at: {event.created_at.isoformat(' ', 'seconds')}",
                *lines(facts),
                f"stage fingerprint: {facts['stage_fingerprint']}",
            )
        ),
        link=stage_page(public_url, stage),
    )


def _contract_notification(event: Event, facts: Facts, public_url: str) -> Notification:
    gist = _OF_CONTRACTS[event.type]
    contract = f"{facts['contract']} {facts['contract_version']}"
    return Notification(
        subject=f"{event.datasource}: contract {facts['contract']} {gist} ({facts['kind']}, "
        f"{facts['severity']})",
        text="\n".join(
            (
                f"datasource: {event.datasource}",
                f"contract: {contract}",
                f"at: {event.created_at.isoformat(' ', 'seconds')}",
                f"{facts['kind']}: {facts['message']}",
                f"violation: {facts['violation']}, since {facts['opened_at']}",
            )
        ),
        link=contracts_page(public_url),
    )


def contracts_page(public_url: str) -> str:
    """Return the address of the page about contracts, on the governed webserver."""
    return f"{public_url.rstrip('/')}/governance/contracts"


def stage_page(public_url: str, stage: str) -> str:
    """Return the address of the page about a stage, on which people decide about it.

    `public_url` is where browsers reach the governed webserver.
    """
    return f"{public_url.rstrip('/')}/governance/stages/{quote(stage, safe='')}"


def document(event: Event, public_url: str) -> dict[str, Json]:
    """Return an event as programs get it: its body, and beside it `notification` or null."""
    told = notification(event, public_url)
    return {
        **_object(load_canonical(event.body)),
        "notification": told.document() if told else None,
    }


def _bound(facts: Facts) -> list[str]:
    return [
        f"validation: {facts['outcome']}, {facts['validation_hash']}",
        f"quality policy: {facts['quality_policy_hash']}",
        f"approval policy: {facts['approval_policy_hash'] or 'none'}",
    ]


def _expiring(facts: Facts) -> list[str]:
    return [
        f"approved by: {facts['actor']}, until {facts['expires_at']}",
        f"approvals that count now: {facts['approvals']} of {facts['required']}",
    ]


def _promoted(facts: Facts) -> list[str]:
    approval, superseded = facts["approval"], facts["superseded"]
    counted = "approval was not required"
    if isinstance(approval, dict):
        counted = f"approvals: {_length(approval['approvals'])} of {approval['required']}"
    return [
        f"materialization: {facts['materialization']}, revision {facts['revision']}",
        counted,
        f"other open stages superseded by it: {_length(superseded)}",
    ]


def _rejected(facts: Facts) -> list[str]:
    return [f"rejected by: {facts['actor']}"]


def _superseded(facts: Facts) -> list[str]:
    return [f"current materialization: {facts['current'] or 'none'}"]


_TOLD: Mapping[tuple[str, Json], tuple[str, Callable[[Facts], list[str]]]] = {
    ("datasource.stage.created", "awaiting_approval"): ("approval needed", _bound),
    ("datasource.stage.created", "failed"): ("blocked", _bound),
    ("datasource.stage.decided", "reject"): ("rejected", _rejected),
    ("datasource.stage.expiring", None): ("an approval expires soon", _expiring),
    ("datasource.stage.promoted", None): ("promoted", _promoted),
    ("datasource.stage.superseded", None): ("superseded", _superseded),
}
"""By type, and by the state or verdict that it tells of: the gist, and what only it says."""


_OF_CONTRACTS: Mapping[str, str] = {
    f"datasource.{VIOLATED}": "violated",
    f"datasource.{RESOLVED}": "holds again",
}
"""What people are told of contracts, by type."""


def _length(value: Json) -> int:
    return len(value) if isinstance(value, list) else 0


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("expected a JSON object")
    return value
