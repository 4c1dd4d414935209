"""What Prometheus reads: contracts, approvals that are waited for, and the outbox.

Every scrape asks the database anew, for rows of which there are as many as contracts, stages that
wait and receivers. Only the violations there ever were are counted each time. Names, counts and
seconds are all that is told.

Source: SPEC sections 5 and 14; Prometheus, "Exposition formats".
"""

import hmac
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from datasource_governance.composition import Application
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import Violation, ViolationSeverity
from datasource_governance.domain.outbox import Backlog, DeadLetter
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.domain.stage import StageState
from datasource_governance.errors import GovernanceError
from datasource_governance.ports.contracts import DURATION_BUCKETS, Watch
from datasource_governance.services.delivering import backlogs, dead_letters
from datasource_governance.web.headers import single_header

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

METRICS = "/governance/metrics"
_PREFIX = "datasource_governance"
_OF_A_CHECK = ("datasource", "contract", "kind")
_OF_A_CONTRACT = ("datasource", "contract")
_UNAVAILABLE = 503
_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Scraped:
    """An ASGI application before the gate: who has the token reads metrics, and nothing else.

    All else is the gate's, as everything is where there is no token.
    """

    gate: ASGIApp
    metrics: ASGIApp
    token: str | None = field(repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scrape, or let the gate see to a request."""
        app = self.metrics if self._is_scrape(scope) else self.gate
        await app(scope, receive, send)

    def _is_scrape(self, scope: Scope) -> bool:
        if self.token is None or scope["type"] != "http" or scope["path"] != METRICS:
            return False
        given = single_header(scope["headers"], "authorization") or ""
        is_right = hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode())
        return is_right and scope["method"] in _READING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """Everything that is told, as the database has it at one time."""

    watches: Sequence[Watch]
    violated: Sequence[tuple[str, str, CheckKind, ViolationSeverity, int]]
    open_violations: Sequence[Violation]
    waiting: Counter[str]
    backlogs: Sequence[Backlog]
    dead: Sequence[DeadLetter]

    def collect(self) -> "Iterator[Metric]":
        """Yield every metric; the library asks for this."""
        yield from self._of_checks()
        yield from self._of_contracts()
        yield from self._of_the_outbox()

    def _of_checks(self) -> "Iterator[Metric]":
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        checks = CounterMetricFamily(
            f"{_PREFIX}_contract_checks", "Checks that ran.", labels=(*_OF_A_CHECK, "status")
        )
        seconds = HistogramMetricFamily(
            f"{_PREFIX}_contract_check_duration_seconds",
            "How long checks took.",
            labels=_OF_A_CHECK,
        )
        violated = CounterMetricFamily(
            f"{_PREFIX}_contract_violations",
            "Violations there ever were.",
            labels=(*_OF_A_CHECK, "severity"),
        )
        broken = GaugeMetricFamily(
            f"{_PREFIX}_contract_open_violations",
            "Violations that are open.",
            labels=(*_OF_A_CHECK, "severity"),
        )
        for watch in self.watches:
            of_a_check = [watch.datasource, watch.contract, str(watch.kind)]
            passed = watch.checks - watch.failures - watch.errors
            for status, count in zip(Status, (passed, watch.failures, watch.errors), strict=True):
                checks.add_metric([*of_a_check, str(status)], count)
            seconds.add_metric(of_a_check, _buckets(watch), watch.seconds)
        for datasource, contract, kind, severity, count in self.violated:
            violated.add_metric([datasource, contract, str(kind), str(severity)], count)
        for one in self.open_violations:
            broken.add_metric([one.datasource, one.contract, str(one.kind), str(one.severity)], 1)
        yield from (checks, seconds, violated, broken)

    def _of_contracts(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        told = {
            CheckKind.QUALITY: ("quality_score", "The last score, 0 to 100."),
            CheckKind.FRESHNESS: ("freshness_used_ratio", "Of the promise; 1 and more breaks it."),
            CheckKind.AVAILABILITY: ("up", "Whether the last check found the data."),
        }
        for kind, (name, meaning) in told.items():
            family = GaugeMetricFamily(f"{_PREFIX}_contract_{name}", meaning, labels=_OF_A_CONTRACT)
            for watch in self.watches:
                value = _last(watch) if watch.kind is kind else None
                if value is not None:
                    family.add_metric([watch.datasource, watch.contract], value)
            yield family

    def _of_the_outbox(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        waiting = GaugeMetricFamily(
            f"{_PREFIX}_waiting_approvals", "Stages that await approval.", labels=("datasource",)
        )
        backlog = GaugeMetricFamily(
            f"{_PREFIX}_outbox_backlog",
            "Events that a receiver has not got yet.",
            labels=("receiver", "datasource"),
        )
        dead = GaugeMetricFamily(
            f"{_PREFIX}_outbox_dead_letters", "Events set aside.", labels=("receiver",)
        )
        for datasource, count in self.waiting.items():
            waiting.add_metric([datasource], count)
        for one in self.backlogs:
            backlog.add_metric([one.position.receiver, one.position.datasource], one.waiting)
        for receiver, count in Counter(one.receiver for one in self.dead).items():
            dead.add_metric([receiver], count)
        yield from (waiting, backlog, dead)


def _buckets(watch: Watch) -> list[tuple[str, float]]:
    bounds = [*map(str, DURATION_BUCKETS), "+Inf"]
    return [*zip(bounds, map(float, accumulate(watch.durations)), strict=True)]


def _last(watch: Watch) -> float | None:
    if watch.kind is CheckKind.QUALITY:
        return watch.last_score
    if watch.kind is CheckKind.FRESHNESS:
        return None if watch.last_used is None else watch.last_used / 100
    return None if watch.last_status is None else float(watch.last_status is Status.PASSED)


def numbers(application: Application) -> Numbers:
    """Return what is told now.

    Raises:
        GovernanceError: the database cannot be used, or the receivers' settings are refused.
    """
    with application.work() as work:
        watches = work.contracts.watches()
        violated = work.contracts.violation_counts()
        open_now = work.contracts.open_violations()
        waiting = work.stages.list(None, (StageState.AWAITING_APPROVAL,))
    return Numbers(
        watches=watches,
        violated=violated,
        open_violations=open_now,
        waiting=Counter(stage.datasource for stage in waiting),
        backlogs=backlogs(application.work(), application.receivers()),
        dead=dead_letters(application.work()),
    )


def metrics_route(application: Application) -> Route:
    """Return the route that Prometheus scrapes, for `governed_app(pages=…)`."""

    def metrics(_request: Request) -> Response:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        try:
            found = numbers(application)
        except GovernanceError as error:
            return PlainTextResponse(str(error), _UNAVAILABLE)
        registry = CollectorRegistry()
        registry.register(found)
        content = generate_latest(registry)
        return Response(content, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return Route(METRICS, metrics, methods=["GET"])
