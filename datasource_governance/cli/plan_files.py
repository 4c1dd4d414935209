"""Retention plans as files that people hand on: CSV for a spreadsheet, a page to read and print.

Source: SPEC section 12 ("all blockers", each of which "explains itself").
"""

import csv
import io
from typing import TYPE_CHECKING

from datasource_governance.domain.disposition import WHAT_PURGING_IS_NOT
from datasource_governance.domain.retention import Blocker
from datasource_governance.domain.retention_plan import PlannedTarget, StoredPlan

if TYPE_CHECKING:
    from jinja2 import Template

# What a spreadsheet would take for a formula; a partition may begin with any character.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plan_csv(plan: StoredPlan) -> bytes:
    """Return the targets of a plan, one a record, with the keys that its body has.

    Blockers are joined with `; `, each with its ids in parentheses. A text that a spreadsheet would
    compute begins with an apostrophe.
    """
    text = io.StringIO()
    records = csv.writer(text, lineterminator="\r\n")
    records.writerow(_COLUMNS)
    records.writerows([_cell(target, name) for name in _COLUMNS] for target in plan.plan.targets)
    return text.getvalue().encode()


_COLUMNS = (
    *("kind", "class", "id", "datasource", "partition", "created_at", "eligible_at"),
    *("action", "rows", "bytes", "payload_sha256", "blockers"),
)


def _cell(target: PlannedTarget, column: str) -> str:
    if column == "blockers":
        return blockers_in_a_line(target)
    text = str(target.document()[column])
    return f"'{text}" if text.startswith(_FORMULA) else text


def blockers_in_a_line(target: PlannedTarget) -> str:
    """Return what keeps a target, in one line; nothing where nothing does."""
    return "; ".join(map(_named, target.blockers))


def _named(blocker: Blocker) -> str:
    return f"{blocker.kind} ({', '.join(blocker.ids)})" if blocker.ids else str(blocker.kind)


def plan_html(plan: StoredPlan) -> bytes:
    """Return a page that says all of a plan: it needs no other file, no script and no network."""
    page = _template().render(
        plan=plan.plan,
        planned_by=plan.planned_by,
        limits=WHAT_PURGING_IS_NOT,
    )
    return page.encode()


def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("datasource_governance.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["instant"] = lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S")
    templates.filters["counted"] = lambda number: f"{number:,}"
    return templates.get_template("retention_plan.html")
