"""`python -m benchmarks.retention`: what plans cost as history grows and what is due does not.

On a server of its own for each number of stages and materializations, and in a process of its own,
whose memory is measured. Half of the objects that are not due are too young, the other half were
destroyed long ago. All are copied behind the application's back, so evidence says nothing of them,
nor do dispositions of those that are gone; plans read neither.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from sqlalchemy import text

from benchmarks.memory import peak_mib, reset_peak, resident_mib
from benchmarks.servers import Served, served
from datasource_governance.cli.founding import admit, signer_of
from datasource_governance.composition import Application
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.disposition import Applied
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.domain.policy_version import recorded_retention_policy
from datasource_governance.domain.retention import (
    Candidate,
    GoverningPolicy,
    RetentionClass,
    cutoff,
)
from datasource_governance.domain.retention_plan import RetentionPlan, make_plan
from datasource_governance.domain.subjects import (
    apply_retention_subject,
    apply_subject,
    delivery_subject,
    promotion_subject,
)
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.persistence.candidates import DUE
from datasource_governance.persistence.connection import governance_engine
from datasource_governance.services.authority import found_tenant
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.retention import (
    ApplyRequest,
    PlanRequest,
    apply_retention,
    explain,
    plan_retention,
)
from datasource_governance.services.staging import StageRequest, create_stage

T = TypeVar("T")

_DAYS: Final = 30
_DATASOURCES: Final = tuple(f"orders_{number:02}" for number in range(20))
_GOVERNANCE: Final = {
    "quality_policy": {
        "version": "v1",
        "rules": [{"id": "some", "type": "row_count", "minimum": 1}],
    },
    "retention_policy": {
        "version": "r1",
        "enabled": True,
        "stage_days": _DAYS,
        "materialization_days": _DAYS,
    },
}
_CLASSES: Final = (RetentionClass.STAGE, RetentionClass.MATERIALIZATION)
_EXPLAINED: Final = 50
_EXPLAIN: Final = "EXPLAIN (ANALYZE, BUFFERS)"
_AS_TENANT: Final = text("SELECT set_config('governance.tenant', :tenant, false)")
_COPIES: Final = """
SET session_replication_role = replica;
CREATE TEMP TABLE template AS
    SELECT row_number() OVER (ORDER BY m.datasource) - 1 AS number, m.stage, m.id AS made
    FROM governance.materialization m;
CREATE TEMP TABLE copy AS
    SELECT t.stage, t.made, n, n > {due} AND n % 2 = 1 AS gone,
        gen_random_uuid()::text AS stage_id, gen_random_uuid()::text AS made_id,
        now() - n * interval '1 millisecond' - interval '1 day'
            * CASE WHEN n <= {due} OR n % 2 = 1 THEN 60 ELSE 1 + n % 20 END AS created_at
    FROM generate_series(1, {pairs}) n JOIN template t ON t.number = n / 2 % {datasources};
INSERT INTO governance.stage
    SELECT r.* FROM copy c JOIN governance.stage s ON s.id = c.stage,
        jsonb_populate_record(s, jsonb_build_object('id', c.stage_id, 'attestation_id', NULL,
            'created_at', c.created_at,
            'state', CASE WHEN c.gone THEN 'deleted' ELSE s.state END)) r;
INSERT INTO governance.materialization
    SELECT r.* FROM copy c JOIN governance.materialization m ON m.id = c.made,
        jsonb_populate_record(m, jsonb_build_object('id', c.made_id, 'stage', c.stage_id,
            'revision', 1 + c.n, 'created_at', c.created_at,
            'disposition', CASE WHEN c.gone THEN 'purged' ELSE 'retained' END)) r;
INSERT INTO governance.stage_payload
    SELECT p.tenant, c.stage_id, p.payload
    FROM copy c JOIN governance.stage_payload p ON p.stage = c.stage WHERE NOT c.gone;
INSERT INTO governance.materialization_payload
    SELECT p.tenant, c.made_id, p.payload
    FROM copy c JOIN governance.materialization_payload p ON p.materialization = c.made
    WHERE NOT c.gone;
VACUUM (ANALYZE);
CHECKPOINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step cost this process: seconds, and MiB at most and more than before it."""

    what: str
    seconds: float
    peak: float
    above: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What everything cost with a number of objects, and how Postgres found what is due."""

    objects: int
    planned: int
    destroyed: int
    steps: list[Step]
    query_plans: dict[RetentionClass, str]


def main(
    objects: Annotated[
        str, typer.Option(help="Numbers of stages and materializations together.")
    ] = "10000,1000000",
    due: Annotated[int, typer.Option(min=40, help="How many of them are due.")] = 10_000,
) -> None:
    """Print a table of what steps cost, and the query plans with the most objects."""
    sizes = sorted(map(int, objects.split(",")))
    # A process of its own for each, so that memory is what one number needs.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        found = [processes.submit(_measure, size, due).result() for size in sizes]
    typer.echo("| objects | planned | destroyed | step | seconds | peak MiB | above before MiB |")
    typer.echo("| ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    for one in found:
        for step in one.steps:
            typer.echo(
                f"| {one.objects:,} | {one.planned:,} | {one.destroyed:,} | {step.what} "
                f"| {step.seconds:.3f} | {step.peak:,.0f} | {step.above:,.0f} |"
            )
    for retention_class, lines in found[-1].query_plans.items():
        typer.echo(f"\n{retention_class}, one of {len(_DATASOURCES)} datasources:\n\n{lines}")


def _measure(objects: int, due: int) -> Measured:
    with _archive() as archive:
        archive.fill(objects, due)
        query_plans = {of_class: archive.query_plan(of_class) for of_class in _CLASSES}
        planning, plan = _step("plan, whole", archive.plan)
        parts = archive.parts_of_planning()
        explaining = archive.explaining(plan)
        applying, applied = _step("apply to all", lambda: archive.apply(plan))
    return Measured(
        objects=objects,
        planned=len(plan.targets),
        destroyed=len(applied.targets),
        steps=[planning, *parts, explaining, applying],
        query_plans=query_plans,
    )


def _step(what: str, work: Callable[[], T]) -> tuple[Step, T]:
    before = resident_mib()
    reset_peak()
    start = time.perf_counter()
    done = work()
    seconds = time.perf_counter() - start
    peak = peak_mib()
    return Step(what=what, seconds=seconds, peak=peak, above=peak - before), done


class Archive:
    """Governed datasources on a server of their own, with a person who may do everything."""

    def __init__(self, application: Application, server: Served) -> None:
        self._application = application
        self._server = server
        administrator = signer_of(application, "admin")
        found_tenant(application.work(), "admin", administrator.public_key)
        roles = (Role.ADMINISTRATOR, Role.OPERATOR, Role.STEWARD)
        self._keeper = admit(application, "keeper", *roles)
        for name in _DATASOURCES:
            declared = _declared(name)
            attestation = administrator.attest(Action.DATASOURCE_APPLY, apply_subject(declared))
            apply_datasource(application.work(), declared, attestation)
            self._make_current(name)

    def _make_current(self, datasource: str) -> None:
        import pyarrow as pa

        application = self._application
        payload = TypedPayload(pa.table({"id": [1, 2]}))
        sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        delivered = self._keeper.attest(Action.STAGE_CREATE, delivery_subject(datasource, sha256))
        request = StageRequest(
            datasource=datasource,
            delivery="delivery.csv",
            file_sha256=sha256,
            attestation_id=store_delivery_attestation(
                application.work(), datasource, sha256, delivered
            ),
        )
        stage = create_stage(application.work(), application.evaluator(), payload, request).stage
        subject = promotion_subject(subject_of(stage, application.settings.tenant))
        promotion = PromotionRequest(
            stage=stage.id, attestation=self._keeper.attest(Action.STAGE_PROMOTE, subject)
        )
        promote_stage(application.work(), application.artifacts(), promotion)

    def fill(self, objects: int, due: int) -> None:
        """Copy what is current, half of the objects as stages, half as what was made of them."""
        copies = _COPIES.format(pairs=objects // 2, due=due // 2, datasources=len(_DATASOURCES))
        address = administrative_url(self._server.url).set(database="governance")
        with connect(address) as connection:
            for statement in copies.split(";"):
                connection.execute(statement.encode())

    def plan(self) -> RetentionPlan:
        """Plan for all datasources, as the schedule does."""
        return plan_retention(self._application.work(), PlanRequest(actor=SYSTEM))

    def parts_of_planning(self) -> list[Step]:
        """Measure what planning consists of, each part for itself."""
        reading, (now, policies, candidates) = _step("of it, read what is due", self._due)
        tenant = self._application.settings.tenant
        making, plan = _step(
            "of it, make the plan", lambda: make_plan(tenant, None, now, policies, candidates)
        )
        keeping, _ = _step("of it, keep the plan", lambda: self._keep(plan))
        return [reading, making, keeping]

    def _due(self) -> tuple[datetime, list[GoverningPolicy], list[Candidate]]:
        with self._application.work().snapshot() as work:
            now = work.now()
            policies = [
                GoverningPolicy(
                    datasource=target.datasource, policy=recorded_retention_policy(version)
                )
                for target, version in work.retention.governing(None)
            ]
            candidates = [
                candidate
                for one in policies
                for of_class in RetentionClass
                if (until := cutoff(one.policy, of_class, now)) is not None
                for candidate in work.retention.candidates(one.datasource, of_class, until)
            ]
        return now, policies, candidates

    def _keep(self, plan: RetentionPlan) -> None:
        with self._application.work() as work:
            work.retention.lock()
            now = work.now()
            work.retention.add_plan(plan, SYSTEM, now)
            work.evidence.append(
                TENANT_CHAIN, kind="retention.planned", subject=plan.hash, facts={}, at=now
            )
            work.commit()

    def explaining(self, plan: RetentionPlan) -> Step:
        """Measure explanations of targets all over a plan, and return the median of one."""
        targets = plan.targets[:: max(1, len(plan.targets) // _EXPLAINED)]
        keeper = self._keeper.actor
        steps = [
            _step("explain one", lambda: explain(self._application.work(), target.id, keeper))[0]  # noqa: B023 - it is called at once
            for target in targets
        ]
        return replace(
            max(steps, key=lambda step: step.peak),
            seconds=statistics.median(step.seconds for step in steps),
        )

    def apply(self, plan: RetentionPlan) -> Applied:
        """Destroy all that a plan names."""
        subject = apply_retention_subject(plan.hash, None)
        attestation = self._keeper.attest(Action.RETENTION_APPLY, subject)
        application = self._application
        request = ApplyRequest(plan=plan.hash, attestation=attestation)
        return apply_retention(application.work(), application.artifacts(), request)

    def query_plan(self, retention_class: RetentionClass) -> str:
        """Return how Postgres finds what is due in one datasource, as the application sees it."""
        with self._application.work() as work:
            until = work.now() - timedelta(days=_DAYS)
        asked = {"tenant": work.tenant, "datasource": _DATASOURCES[0], "until": until}
        engine = governance_engine(self._server.connections.governance_url)
        with closing(engine.connect()) as connection:
            connection.execute(_AS_TENANT, asked)
            lines = connection.execute(text(f"{_EXPLAIN} {DUE[retention_class].text}"), asked)
            found = "\n".join(line for (line,) in lines)
        engine.dispose()
        return found


def _declared(name: str) -> Datasource:
    document = {
        "id": name,
        "kind": "static",
        "source": {"folder": "deliveries"},
        "governance": _GOVERNANCE,
    }
    return parse_datasource(canonical_bytes(document), lambda name: Path(name).read_bytes())


@contextmanager
def _archive() -> Iterator[Archive]:
    with served() as server, closing(Application(server.settings)) as application:
        yield Archive(application, server)


if __name__ == "__main__":
    typer.run(main)
