"""What the pages about decisions show: a view in, plain facts for a template out.

A template gets texts and numbers only, never a decision, so that no reason can get onto a page.

Source: SPEC sections 5, 6, 7 and 15.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.approval import (
    MAXIMUM_REASON_CHARACTERS,
    Decision,
    Verdict,
    subject_of,
)
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.validation import Reason
from datasource_governance.services.reviewing import Review, Waiting, WaitingStage, score_of

REFRESH_SECONDS = 3
_TONES = {
    "passed": "good",
    "ready": "good",
    "promoted": "good",
    "approve": "good",
    "compatible": "good",
    "awaiting_approval": "warn",
    "review": "warn",
    "warning": "warn",
    "superseded": "warn",
    "failed": "bad",
    "error": "bad",
    "blocked": "bad",
    "rejected": "bad",
    "reject": "bad",
    "breaking": "bad",
}
_CLOSED = {
    StageState.FAILED: "It is blocked and never becomes current; correct the delivery and stage "
    "it again.",
    StageState.READY: "No approval is needed; an operator can promote it.",
    StageState.REJECTED: "It was rejected, for good; stage a corrected delivery.",
    StageState.PROMOTED: "It became the current materialization.",
    StageState.SUPERSEDED: "Another materialization became current; stage the delivery again.",
    StageState.DELETED: "Retention deleted it.",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A word that stands out in a colour; the word alone says it, too."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Who looks at a stage, and what is to be said and kept from what was just posted."""

    actor: ActorId
    token: str
    problem: str | None = None
    reason: str = ""
    decision: str | None = None


def waiting_facts(waiting: Waiting, actor: ActorId, *, is_older: bool) -> dict[str, object]:
    """Return the facts of `waiting.html`."""
    return {
        "actor": actor,
        "stages": [_waiting_row(one) for one in waiting.stages],
        "older": waiting.older,
        "is_older": is_older,
    }


def _waiting_row(one: WaitingStage) -> dict[str, object]:
    stage, quorum = one.stage, one.quorum
    return {
        "id": stage.id,
        "datasource": stage.datasource,
        "delivery": stage.delivery,
        "creator": stage.creator,
        "since": stage.created_at,
        "until": one.standing.next_expiry,
        "approvals": f"{len(quorum.approvals)} of {quorum.required}" if quorum else "",
        "mark": _mark_for_reader(one),
    }


def _mark_for_reader(one: WaitingStage) -> Mark:
    if one.standing.changed:
        return Mark("outdated", "bad")
    if one.is_decidable:
        return Mark("you can decide", "warn")
    if one.standing.complete_since is not None:
        return Mark("promotion follows", "good")
    return Mark("others decide")


def stage_facts(review: Review, tenant: str, visit: Visit) -> dict[str, object]:
    """Return the facts of `stage.html`."""
    stage, validation = review.stage, review.validation()
    rules, diff = _objects(validation["rules"]), validation["schema_diff"]
    changes = _objects(diff["changes"]) if isinstance(diff, dict) else []
    is_open_to_actor = review.refusal is None
    return {
        "actor": visit.actor,
        "token": visit.token,
        "problem": visit.problem,
        "reason": visit.reason,
        "recorded": _recorded(review, visit),
        "stage_id": stage.id,
        "datasource": stage.datasource,
        "state": _state(review),
        "where_it_stands": where_it_stands(review),
        "published_said": _published_said(review, rules),
        "is_promoted": review.materialization is not None,
        "refresh_seconds": None if is_open_to_actor else _refresh_seconds(review),
        "summary": _summary(review),
        "rules_said": _rules_said(rules),
        "rules": [_rule_row(rule, is_detailed=review.is_detailed) for rule in _failed_first(rules)],
        "rule_columns": _rule_columns(is_detailed=review.is_detailed),
        "schema_said": _schema_said(diff),
        "changes": [_change_row(change) for change in changes],
        "decisions": _decision_rows(review),
        "subject": subject_of(stage, tenant).document() if is_open_to_actor else None,
        "refusal": review.refusal,
        "maximum_reason": MAXIMUM_REASON_CHARACTERS,
        "hashes": _hashes(review, tenant),
    }


def where_it_stands(review: Review) -> str:
    """Return in one sentence what a stage waits for, or what became of it."""
    state, standing, quorum = review.stage.state, review.standing, review.quorum
    if standing is None or quorum is None:
        return _CLOSED.get(state, "")
    if standing.changed:
        changed = " and ".join(standing.changed)
        return f"It is outdated: {changed} changed since it was validated; stage it again."
    if quorum.met:
        return "The quorum is complete; the promotion follows by itself."
    approvals = "approval is" if quorum.missing == 1 else "approvals are"
    return f"{quorum.missing} more {approvals} needed."


def _published_said(review: Review, rules: Iterable[Mapping[str, Json]]) -> str:
    """Return why a producer's output waits; nothing of what is a delivery, or closed."""
    if review.publication is None or review.standing is None:
        return ""
    said = f"Producer {review.publication.producer} published it, and the datasource needs approval"
    if any(rule["reason"] == Reason.NOT_EVALUATED for rule in rules):
        said += "; of some rules the producer's evidence gives no result"
    return f"{said}. It is kept, and readers get it once a quorum approves."


def _state(review: Review) -> Mark:
    is_outdated = review.standing is not None and bool(review.standing.changed)
    return Mark("outdated", "bad") if is_outdated else _marked(review.stage.state)


def _refresh_seconds(review: Review) -> int | None:
    """Return how soon to look again: while a promotion is awaited, and nobody writes a reason."""
    awaited = review.standing is not None and review.standing.complete_since is not None
    return REFRESH_SECONDS if awaited and review.quorum is not None else None


def _recorded(review: Review, visit: Visit) -> str | None:
    """Return what became of the decision that was just posted, if it was one of this actor."""
    made = [one for one in review.decisions if (one.id, one.actor) == (visit.decision, visit.actor)]
    if not made:
        return None
    verdict = "approval" if made[0].verdict is Verdict.APPROVE else "rejection"
    return f"Your {verdict} is recorded. {where_it_stands(review)}"


def _summary(review: Review) -> list[tuple[str, object]]:
    stage, policy = review.stage, review.approval_policy
    rows: list[tuple[str, object]] = [
        *_origin(review),
        ("Created by", stage.creator),
        ("Created at (UTC)", _instant(stage.created_at)),
        ("Outcome", stage.outcome),
        *_score(stage),
        ("Quality policy", review.quality_version or "without a version"),
        ("Approval policy", policy.version if policy else "none"),
    ]
    if policy is not None and policy.required:
        holds = policy.expires_after_hours
        rows += [
            ("Approvals needed", policy.required_approvals),
            ("An approval holds", f"{holds} hours" if holds else "without an end"),
            ("Creator may decide", "no" if policy.separation_of_duties else "yes"),
        ]
    if review.is_detailed:
        rows.append(("Rows", f"{stage.row_count:,}"))
    return rows


def _score(stage: Stage) -> list[tuple[str, object]]:
    """Return the score and who evaluated, where a platform manifest says so."""
    found = score_of(stage)
    return (
        [] if found is None else [("Quality score", found.told), ("Evaluated by", found.provider)]
    )


def _origin(review: Review) -> list[tuple[str, object]]:
    """Return where the payload is from: a delivered file, or a producer's output."""
    publication = review.publication
    if publication is None:
        return [("Delivery", review.stage.delivery)]
    rows: list[tuple[str, object]] = [
        ("Producer", publication.producer),
        ("Idempotency key", publication.idempotency_key),
        ("Published by", publication.actor),
    ]
    return [*rows, ("Partition", publication.partition)] if publication.partition else rows


def _hashes(review: Review, tenant: str) -> list[tuple[str, object]]:
    stage, publication = review.stage, review.publication
    origin = ("Publication", publication.id) if publication else None
    return [
        ("Stage", stage.id),
        ("Stage fingerprint", stage.fingerprint(tenant)),
        origin or ("Delivered file", stage.delivery_sha256),
        ("Content", stage.payload_fingerprint),
        ("Stored content", stage.payload_sha256),
        ("Validation", stage.validation_hash),
        ("Quality policy", stage.quality_policy_hash),
        ("Approval policy", stage.approval_policy_hash or "none"),
        ("Base", stage.base or "none, this would be the first materialization"),
    ]


def _rules_said(rules: Sequence[Mapping[str, Json]]) -> str:
    failed = sum(rule["status"] != "passed" for rule in rules)
    if not rules:
        return "The policy has no rules."
    return f"{failed} of {len(rules)} did not pass." if failed else f"All {len(rules)} passed."


def _failed_first(rules: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
    return sorted(rules, key=lambda rule: rule["status"] == "passed")


def _rule_columns(*, is_detailed: bool) -> list[str]:
    details = ["Affected", "Rows"] if is_detailed else []
    return ["Rule", "Verdict", "Reason", "Severity", "Type", *details]


def _rule_row(rule: Mapping[str, Json], *, is_detailed: bool) -> list[object]:
    status, severity = rule["status"], rule["severity"]
    is_grave = status == "error" or severity == "error"
    verdict = _marked(status) if is_grave or status == "passed" else Mark(str(status), "warn")
    words = [_text(word) for word in (rule["reason"], severity, rule["type"])]
    row: list[object] = [_text(rule["id"]), verdict, *words]
    if is_detailed:
        rows = rule["rows"]
        numbers = [str(number) for number in rows] if isinstance(rows, list) else []
        more = ["…"] if rule["truncated"] else []
        row += [_text(rule["affected"]), ", ".join(numbers + more)]
    return row


def _schema_said(diff: Json) -> str:
    if not isinstance(diff, dict):
        return "Nothing to compare with: this would be the first materialization."
    return f"As a whole: {diff['classification']}." if diff["changes"] else "None."


def _change_row(change: Mapping[str, Json]) -> list[object]:
    return [
        _text(change["field"]),
        str(change["change"]).replace("_", " "),
        _shape(change["before"]),
        _shape(change["after"]),
        _marked(change["classification"]),
    ]


def _shape(value: Json) -> str:
    """Return what a schema said of a field: type and nullability, one of them, or an order."""
    match value:
        case {"type": kind, "nullable": bool(nullable)}:
            return f"{kind}, {_shape(nullable)}"
        case bool():
            return "nullable" if value else "not null"
        case list():
            return ", ".join(str(name) for name in value)
        case _:
            return _text(value)


def _decision_rows(review: Review) -> list[list[object]]:
    why_not = dict(review.quorum.not_counted) if review.quorum else {}
    return [
        [
            one.actor,
            _marked(one.verdict),
            _instant(one.decided_at),
            why_not.get(one.id, "yes"),
            _held_until(one),
        ]
        for one in review.decisions
    ]


def _held_until(decision: Decision) -> str:
    return _instant(decision.expires_at) if decision.expires_at else "without an end"


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _marked(word: object) -> Mark:
    return Mark(str(word).replace("_", " "), _TONES.get(str(word), ""))


def _text(value: Json) -> str:
    return "" if value is None else str(value)


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
