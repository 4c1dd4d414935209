"""Retention plans, what applying them did, and holds, as tables for people.

Source: SPEC sections 12 and 16.
"""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from datasource_governance.cli.output import instant
from datasource_governance.cli.plan_files import blockers_in_a_line
from datasource_governance.cli.signatures import SHORT
from datasource_governance.domain.disposition import Applied, DisposedTarget
from datasource_governance.domain.plan_admission import PlanDifference
from datasource_governance.domain.retention_plan import PlannedTarget, RetentionPlan
from datasource_governance.services.hold_review import HoldReview
from datasource_governance.services.plan_review import PlanReview

_NONE_DUE = "Nothing is due."


def plan_view(plan: RetentionPlan) -> Group:
    """Return all of a plan: its policies, what is due, why some of it is kept, and totals."""
    return Group(
        _policy_table(plan),
        target_table(plan.targets) if plan.targets else Text(_NONE_DUE),
        *(Text(sentence) for sentence in _kept(plan.targets)),
        Text(plan_summary(plan)),
    )


def plan_summary(plan: RetentionPlan) -> str:
    """Return a plan in a few lines, the last of which is its hash."""
    totals = plan.totals
    free = totals.targets - totals.blocked
    return (
        f"{totals.targets:,} due, {totals.blocked:,} of them blocked; applying would destroy "
        f"{free:,}, with {totals.rows:,} rows and {totals.bytes:,} bytes\n"
        f"as of {instant(plan.as_of)} UTC; can be applied until {instant(plan.expires_at)} UTC\n"
        f"plan {plan.hash}"
    )


def target_table(targets: Sequence[PlannedTarget]) -> Table:
    """Return due objects, one a line."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("what", "id"):
        table.add_column(name, no_wrap=True)
    for name in ("datasource", "partition", "due since (UTC)", "action", "rows", "bytes"):
        table.add_column(name, overflow="fold", justify="right" if name in _NUMBERS else "left")
    table.add_column("kept by")
    for target in targets:
        table.add_row(
            target.kind,
            target.id,
            target.datasource,
            escape(target.partition),
            instant(target.eligible_at),
            target.action,
            f"{target.rows:,}",
            f"{target.bytes:,}",
            "[yellow]" + "\n".join(one.kind for one in target.blockers) + "[/yellow]",
        )
    return table


_NUMBERS = ("rows", "bytes")


def _policy_table(plan: RetentionPlan) -> Table | Text:
    if not plan.policies:
        return Text("No datasource here has a retention policy, so everything is kept.")
    table = Table("datasource", "retention policy", "hash", "enabled", box=SIMPLE_HEAD)
    for one in plan.policies:
        enabled = "yes" if one.enabled else "no, so nothing is due"
        table.add_row(one.datasource, escape(one.version or "{}"), one.hash[:SHORT], enabled)
    return table


def _kept(targets: Sequence[PlannedTarget]) -> list[str]:
    """Return a sentence for each reason why a target is kept."""
    return [
        f"{target.kind} {target.id} is kept: {blocker.explanation()}"
        for target in targets
        for blocker in target.blockers
    ]


def plan_table(plans: Sequence[PlanReview]) -> Table:
    """Return plans, one a line, each with whether it was applied."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("plan", "datasource", "as of (UTC)", "due", "blocked", "by", "applied"):
        table.add_column(name, no_wrap=True)
    for one in plans:
        plan, totals = one.stored.plan, one.stored.plan.totals
        table.add_row(
            plan.hash[:SHORT],
            plan.datasource or "all",
            instant(plan.as_of),
            f"{totals.targets:,}",
            f"{totals.blocked:,}",
            one.stored.planned_by,
            "yes" if one.applied else "",
        )
    return table


def difference_view(difference: PlanDifference) -> Group:
    """Return how two plans differ: what came, what went, what changed, and under which policies."""
    table = Table("difference", "what", "id", "datasource", "how", box=SIMPLE_HEAD)
    rows = [
        *(("[green]due now[/green]", one, "") for one in difference.added),
        *(("[red]due no more[/red]", one, "") for one in difference.removed),
        *(("[yellow]changed[/yellow]", now, changes(old, now)) for old, now in difference.changed),
    ]
    for what, target, how in rows:
        table.add_row(what, target.kind, target.id, target.datasource, escape(how))
    return Group(*([table] if rows else []), Text(f"differs: {difference.summary()}"))


def changes(before: PlannedTarget, after: PlannedTarget) -> str:
    """Return which keys of a target changed, with both values."""
    old, new = _in_words(before), _in_words(after)
    return "; ".join(f"{key}: {old[key]} → {new[key]}" for key in new if old[key] != new[key])


def _in_words(target: PlannedTarget) -> dict[str, str]:
    document = {key: str(value) for key, value in target.document().items()}
    document["blockers"] = blockers_in_a_line(target) or "none"
    return document


def applied_view(applied: Applied) -> Group:
    """Return what applying a plan destroyed, and what of it is still to do."""
    application = applied.application
    return Group(
        _disposed_table(applied.targets),
        *(Text(f"not finished: materialization {one}: {why}") for one, why in applied.unfinished),
        Text(
            f"plan {application.plan} was applied by {application.actor} at "
            f"{instant(application.applied_at)} UTC: {len(applied.targets):,} destroyed"
        ),
    )


def _disposed_table(targets: Sequence[DisposedTarget]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in ("what", "id", "datasource", "was", "action"):
        table.add_column(name, no_wrap=True)
    for one in targets:
        table.add_row(one.kind, one.subject, one.datasource, one.state_before, one.action)
    return table


def hold_table(found: Sequence[HoldReview]) -> Table:
    """Return holds, one a line, with the reasons that may be shown."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("hold", no_wrap=True)
    for name in ("on", "datasource", "placed by", "placed (UTC)", "released by", "reason"):
        table.add_column(name, overflow="fold")
    for review in found:
        one = review.hold
        table.add_row(
            one.id,
            f"{one.scope} {one.subject}",
            one.datasource,
            one.actor,
            instant(one.placed_at),
            one.released.actor if one.released else "",
            escape(one.reason) if review.tells_reasons else "",
        )
    return table
