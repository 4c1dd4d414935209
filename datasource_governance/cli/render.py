"""Validations, stages and verifications as tables for people.

Source: SPEC section 16; "Users look rather than read".
"""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from datasource_governance.cli.output import instant
from datasource_governance.domain.approval import Decision, Quorum
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.publication import Publication
from datasource_governance.domain.stage import Stage

_DETAILS = ("affected", "rows", "reason")
_ROWS_SHOWN = 3
_COLOURS = {
    "passed": "green",
    "ready": "green",
    "promoted": "green",
    "published": "green",
    "published_with_warnings": "yellow",
    "review_required": "yellow",
    "awaiting_approval": "yellow",
    "review": "yellow",
    "warning": "yellow",
    "superseded": "yellow",
    "failed": "red",
    "error": "red",
    "blocked": "red",
    "rejected": "red",
    "breaking": "red",
}


def coloured(word: str) -> str:
    """Return a state or status in its colour."""
    colour = _COLOURS.get(word)
    return f"[{colour}]{word}[/{colour}]" if colour else word


def rule_table(rules: Sequence[dict[str, Json]], *, detailed: bool = True) -> Table:
    """Return the rules of a validation. Counts and rows only for those who may read the data."""
    table = Table(box=SIMPLE_HEAD)
    names = ("rule", "type", "severity", "status", *(_DETAILS if detailed else ()))
    for name in names:
        table.add_column(name, no_wrap=name != "rows")
    for rule in rules:
        cells = [_text(rule["id"]), _text(rule["type"]), _text(rule["severity"])]
        cells.append(coloured(_text(rule["status"])))
        if detailed:
            cells += [_text(rule["affected"]), _rows(rule), _text(rule["reason"])]
        table.add_row(*cells)
    return table


def _rows(rule: dict[str, Json]) -> str:
    rows = rule["rows"]
    if not isinstance(rows, list) or not rows:
        return ""
    more = "" if len(rows) <= _ROWS_SHOWN and not rule["truncated"] else " …"
    return " ".join(str(row) for row in rows[:_ROWS_SHOWN]) + more


def _text(value: Json) -> str:
    # Square brackets are Rich markup; rule ids and field names may hold any.
    return "" if value is None else str(value).replace("[", r"\[")


def change_table(changes: Sequence[dict[str, Json]]) -> Table:
    """Return the schema changes of a validation."""
    table = Table("field", "change", "class", box=SIMPLE_HEAD)
    for change in changes:
        table.add_row(
            _text(change["field"]),
            _text(change["change"]),
            coloured(_text(change["classification"])),
        )
    return table


def stage_table(stages: Sequence[Stage]) -> Table:
    """Return stages, one a line."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("stage", "datasource", "state", "outcome", "rows", "creator", "created (UTC)"):
        table.add_column(name, no_wrap=True)
    for stage in stages:
        table.add_row(
            stage.id,
            stage.datasource,
            coloured(stage.state),
            coloured(stage.outcome),
            str(stage.row_count),
            stage.creator,
            instant(stage.created_at),
        )
    return table


def publication_table(publications: Sequence[Publication]) -> Table:
    """Return publications, one a line."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("publication", "datasource", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("partition", "producer", "key", "by", "created (UTC)"):
        table.add_column(name, overflow="fold")
    for one in publications:
        table.add_row(
            one.id,
            one.datasource,
            coloured(one.state),
            _text(one.partition),
            _text(one.producer),
            _text(one.idempotency_key),
            one.actor,
            instant(one.created_at),
        )
    return table


def decision_table(decisions: Sequence[Decision], quorum: Quorum | None) -> Table:
    """Return the decisions about a stage and whether each counts now."""
    title = "no approval required"
    if quorum is not None:
        title = f"{len(quorum.approvals)} of {quorum.required} approvals hold"
    table = Table("actor", "verdict", "counts", "decided (UTC)", title=title, title_justify="left")
    why = dict(quorum.not_counted) if quorum else {}
    for decision in decisions:
        table.add_row(
            decision.actor,
            decision.verdict,
            why.get(decision.id, "yes"),
            instant(decision.decided_at),
        )
    return table
