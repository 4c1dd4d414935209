"""The page about contracts: how far each promise was kept, the broken ones first.

Whoever may read a datasource sees its contracts. The same page, without its links, is what the
command line writes to a file.

Source: SPEC sections 14 and 16.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from datasource_governance.composition import Application
from datasource_governance.domain.actor import ActorId, may_read
from datasource_governance.domain.compliance import Compliance
from datasource_governance.errors import GovernanceError
from datasource_governance.services.reporting import Promise, Report, report_contracts
from datasource_governance.web.decision_facts import Mark
from datasource_governance.web.pages import page, refusal_page

CONTRACTS = "/governance/contracts"
_WIDTH, _HEIGHT = 120, 24
_WIDEST = 12
"""Of the picture of a promise's days, and of a day, in pixels."""
_UNAVAILABLE = 503


def contract_pages(application: Application) -> list[Route]:
    """Return the route of the page, for `governed_app(pages=…)`."""

    def contracts(request: Request) -> Response:
        actor: ActorId = request.state.actor
        try:
            datasources = _readable(application, actor)
            report = report_contracts(application.work(), datasources=datasources)
        except GovernanceError as error:
            return refusal_page(str(error), _UNAVAILABLE)
        return report_page(report, actor)

    return [Route(CONTRACTS, contracts, methods=["GET"])]


def _readable(application: Application, actor: ActorId) -> frozenset[str]:
    """Return the datasources that an actor has a role over that reads."""
    with application.work() as work:
        grants = work.authority.grants(actor)
        known = [target.datasource for target in work.datasources.list()]
    return frozenset(name for name in known if may_read(grants, actor, name))


def report_page(report: Report, actor: ActorId | None = None) -> Response:
    """Return the report as a page; without an actor it has no links, for a file."""
    facts = {
        "actor": actor,
        "at": report.at,
        "days": report.days,
        "promises": [_row(promise) for promise in report.promises],
    }
    return page("contracts.html" if actor is not None else "contract_report.html", facts)


def _row(promise: Promise) -> dict[str, object]:
    watch, kept, broken = promise.watch, promise.compliance, promise.violation
    percent = kept.percent
    return {
        "datasource": watch.datasource,
        "contract": watch.contract,
        "kind": str(watch.kind).replace("_", " "),
        "mark": _mark(promise),
        "message": broken.message if broken else "",
        "since": broken.opened_at if broken else None,
        "compliance": "" if percent is None else f"{percent:.2f} %",
        "checks": kept.checks,
        "trend": str(kept.trend),
        "bars": bars(kept),
        "last": watch.last_at,
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def _mark(promise: Promise) -> Mark:
    if promise.violation is not None:
        severity = promise.violation.severity
        return Mark(str(severity), "bad" if severity.is_breach else "warn")
    if promise.watch.last_status is None:
        return Mark("never checked")
    return Mark("holds", "good")


def bars(kept: Compliance) -> Sequence[dict[str, float | str]]:
    """Return a bar for each day that had checks, as places and sizes in the picture."""
    if not kept.days:
        return []
    width = min(_WIDTH / len(kept.days), _WIDEST)
    return [
        _bar(place * width, width, float(day.compliance))
        | {"told": f"{day.day}: {float(day.compliance):.1f} % of {day.checks}"}
        for place, day in enumerate(kept.days)
    ]


def _bar(x: float, width: float, percent: float) -> dict[str, float | str]:
    # A day without a check that passed is a line on the ground, unlike a day without checks.
    height = max(_HEIGHT * percent / 100, 1)
    return {
        "x": round(x, 2),
        "width": round(max(width - 1, 1), 2),
        "y": round(_HEIGHT - height, 2),
        "height": round(height, 2),
    }
