"""`python -m benchmarks.sensor_ticks`: what a tick costs with few and with many waiting stages.

On a server of its own. Each sensor ticks first without a memory, as after a restart, then again and
again while nothing happens, then each time after one more approval. Half of the waiting stages have
one of two approvals; none of them needs anything, nor is so old that Dagster should show it yet.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import dagster as dg
import typer
from sqlalchemy import make_url

from benchmarks.servers import served
from datasource_governance.cli.founding import admit, signer_of
from datasource_governance.composition import Application
from datasource_governance.domain.actor import Role
from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import (
    apply_subject,
    decision_subject,
    delivery_subject,
)
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.orchestration.assets import GOVERNANCE
from datasource_governance.orchestration.outbox import OUTBOX
from datasource_governance.orchestration.reconciliation import RECONCILIATION
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.orchestration.waiting import EXPIRY, STUCK, SUPERSESSION
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.services.authority import found_tenant
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.signing import Signer

SENSORS: Final = ("approval_quorum", EXPIRY, SUPERSESSION, STUCK, RECONCILIATION, OUTBOX)
_DECLARATION: Final = {
    "id": "orders",
    "kind": "static",
    "source": {"folder": "deliveries"},
    "governance": {
        "quality_policy": {
            "version": "v1",
            "rules": [{"id": "some", "type": "row_count", "minimum": 1}],
        },
        "approval_policy": {
            "version": "v1",
            "required": True,
            "required_approvals": 2,
            "expires_after_hours": 72,
        },
    },
}
_RECEIVERS: Final = '[[receiver]]\nname = "archive"\nkind = "file"\npath = "events.jsonl"\n'
# Copies behind the application's back: what is measured reads rows and heads, not commitments.
_COPIES: Final = """
CREATE TEMP TABLE copy AS SELECT n, gen_random_uuid()::text AS id FROM generate_series(1, {n}) n;
INSERT INTO governance.attestation
    SELECT (jsonb_populate_record(a, jsonb_build_object('id', c.id, 'nonce', c.id))).*
    FROM governance.attestation a, copy c
    WHERE a.id = (SELECT attestation_id FROM governance.decision) AND c.n % 2 = 0;
INSERT INTO governance.stage
    SELECT (jsonb_populate_record(s, jsonb_build_object('id', c.id, 'attestation_id', NULL,
        'created_at', s.created_at - c.n * interval '1 millisecond'))).*
    FROM governance.stage s, copy c WHERE s.state = 'awaiting_approval';
INSERT INTO governance.decision
    SELECT (jsonb_populate_record(d, jsonb_build_object(
        'id', c.id, 'stage', c.id, 'attestation_id', c.id))).*
    FROM governance.decision d, copy c WHERE c.n % 2 = 0;
DROP TABLE copy;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """Milliseconds of the ticks of one sensor; medians but for the first one."""

    sensor: str
    waiting: int
    first: float
    idle: float
    after_a_decision: float


def main(
    waiting: Annotated[str, typer.Option(help="Numbers of waiting stages.")] = "10,10000",
    rounds: Annotated[int, typer.Option(min=1, help="Ticks behind each median.")] = 20,
) -> None:
    """Print a table of what ticks cost."""
    typer.echo("| sensor | waiting | first tick (ms) | idle (ms) | after a decision (ms) |")
    typer.echo("| --- | ---: | ---: | ---: | ---: |")
    for number in map(int, waiting.split(",")):
        with _office() as office:
            office.let_wait(number)
            for sensor in SENSORS:
                found = office.ticks(sensor, rounds)
                typer.echo(
                    f"| `{found.sensor}` | {found.waiting:,} | {found.first:.0f} "
                    f"| {found.idle:.1f} | {found.after_a_decision:.1f} |"
                )


class Office:
    """A governed datasource on a server of its own, with people and a Dagster instance."""

    def __init__(
        self, application: Application, admin_url: str, instance: dg.DagsterInstance
    ) -> None:
        self._application = application
        self._admin_url = admin_url
        self._instance = instance
        self._waiting = 0
        self._declared = _declared()
        self._found()

    def _found(self) -> None:
        administrator = signer_of(self._application, "admin")
        found_tenant(self._application.work(), "admin", administrator.public_key)
        self._creator = admit(self._application, "creator", Role.STEWARD)
        self._approver = admit(self._application, "approver", Role.APPROVER)
        attestation = administrator.attest(Action.DATASOURCE_APPLY, apply_subject(self._declared))
        apply_datasource(self._application.work(), self._declared, attestation)

    def let_wait(self, number: int) -> None:
        """Make this many stages that wait, every second of them with one approval of two."""
        approve(self._application, self._approver, self._stage())
        address = administrative_url(self._admin_url).set(database="governance")
        with connect(address) as connection:
            for statement in _COPIES.format(n=number - 1).split(";"):
                connection.execute(statement.encode())
            connection.execute(b"ANALYZE")
        self._waiting = number

    def _stage(self) -> Stage:
        import pyarrow as pa

        payload = TypedPayload(pa.table({"id": [1, 2]}))
        sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        attestation = self._creator.attest(
            Action.STAGE_CREATE, delivery_subject(self._declared.id, sha256)
        )
        request = StageRequest(
            datasource=self._declared.id,
            delivery="delivery.csv",
            file_sha256=sha256,
            attestation_id=store_delivery_attestation(
                self._application.work(), self._declared.id, sha256, attestation
            ),
        )
        work, evaluator = self._application.work(), self._application.evaluator()
        return create_stage(work, evaluator, payload, request).stage

    def ticks(self, sensor: str, rounds: int) -> Ticks:
        """Measure the ticks of one sensor of a code location that was just loaded."""
        defs = governed_definitions([self._declared], self._application)
        definition = defs.resolve_sensor_def(sensor)
        resources = {GOVERNANCE: self._application}

        def tick() -> None:
            with dg.build_sensor_context(
                instance=self._instance, definitions=defs, resources=resources
            ) as context:
                definition.evaluate_tick(context)

        first = _milliseconds(tick)
        idle = [_milliseconds(tick) for _ in range(rounds)]
        after = []
        for _ in range(rounds):
            approve(self._application, self._approver, self._stage())
            after.append(_milliseconds(tick))
        return Ticks(
            sensor=sensor,
            waiting=self._waiting,
            first=first,
            idle=statistics.median(idle),
            after_a_decision=statistics.median(after),
        )


def approve(application: Application, approver: Signer, stage: Stage) -> None:
    """Record one signed approval."""
    subject = subject_of(stage, application.settings.tenant)
    attestation = approver.attest(Action.STAGE_APPROVE, decision_subject(subject, "as expected"))
    request = AttestedDecision(
        verdict=Verdict.APPROVE, reason="as expected", subject=subject, attestation=attestation
    )
    decide_stage(application.work(), request)


def _declared() -> Datasource:
    return parse_datasource(canonical_bytes(_DECLARATION), lambda name: Path(name).read_bytes())


@contextmanager
def _office() -> Iterator[Office]:
    with served() as server:
        receivers = server.settings.state / "receivers.toml"
        receivers.write_text(_RECEIVERS)
        application = Application(replace(server.settings, receivers=receivers))
        home, dagster_url = server.settings.state / "dagster", server.connections.dagster_url
        with closing(application), _instance(home, dagster_url) as instance:
            yield Office(application, server.url, instance)


@contextmanager
def _instance(folder: Path, url: str) -> Iterator[dg.DagsterInstance]:
    folder.mkdir()
    text = make_url(url).render_as_string(hide_password=False)
    storage = {"storage": {"postgres": {"postgres_url": text}}, "telemetry": {"enabled": False}}
    (folder / "dagster.yaml").write_bytes(canonical_bytes(storage))
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


def _milliseconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    typer.run(main)
