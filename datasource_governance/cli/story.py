"""The demo's story: seven chapters on the public airport register, each step held to its promise.

Source: issues "The main job, end to end, on a real register", "Governed outputs", "Retention" and
"Contracts watched at run time".
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from datasource_governance.cli.approval import decide
from datasource_governance.cli.contracted import (
    gone_stale,
    lineage_table,
    promise,
    recovered,
    told_as_lineage,
)
from datasource_governance.cli.demo_accounts import PEOPLE
from datasource_governance.cli.founding import ADMINISTRATOR, admit, signer_of
from datasource_governance.cli.published_once import (
    RETRIES,
    counted,
    publication_of,
    publish_by_run,
    retry_run,
)
from datasource_governance.cli.render import coloured, rule_table, stage_table
from datasource_governance.cli.retained import hold_it, holds_on, let_go, look_ahead
from datasource_governance.cli.stage import stage_file
from datasource_governance.composition import Application
from datasource_governance.demo.deliveries import Deliveries, write_deliveries
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.contract_check import ContractCheck
from datasource_governance.domain.stage import Stage, StageState
from datasource_governance.domain.target import Target
from datasource_governance.errors import GovernanceError, GuardError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.orchestration.launching import launch, wait_for_run
from datasource_governance.orchestration.runs import newest_run_about
from datasource_governance.services.reading import read_current
from datasource_governance.services.reviewing import validation_document
from datasource_governance.signing import Signer

DATASOURCE = "airports"
EXAMPLE_JOB = "count_airport_countries"
_STEPS = 24
FORMAT = "datasource_governance/demo/v1"
_SENSOR_SECONDS = 120.0
_SHOWN_EVENTS = 8
_SHOWN_RULES = {"columns", "names-present", "icao-unique", "latitude", "country-iso"}


class Story:
    """Tells the story over a running system. Every step that gives something else ends it."""

    def __init__(self, application: Application, out: Console) -> None:
        self._application = application
        self._out = out
        self._administrator = signer_of(application, ADMINISTRATOR)
        self._dagster = DagsterClient(application.settings.dagster_url, self._administrator)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=out, transient=True)
        self._task = self._progress.add_task("demo", total=_STEPS)
        self._promotions: list[str] = []
        self._refusals: list[str] = []

    def tell(self) -> dict[str, object]:
        """Tell all of it; return what came of it, as JSON for scripts.

        Raises:
            GovernanceError: code `demo_failed`, saying which promise was not kept.
        """
        with self._progress:
            with self._step("three deliveries of the register, six actors with keys"):
                deliveries = write_deliveries(self._application.settings.state / "register")
                self._cast()
            self._first_delivery(deliveries)
            self._faulty_delivery(deliveries)
            self._corrected_delivery(deliveries)
            published = self._producer()
            retention = self._retention()
            contract = self._contract()
            evidence = self._evidence()
        return {
            "format": FORMAT,
            "promoted": self._promotions,
            "refused": self._refusals,
            "publication": published,
            "retention": retention,
            "contract": contract,
            "evidence": evidence,
        }

    def _cast(self) -> None:
        self._casey, self._alice, self._bob, self._pat = (
            admit(self._application, name, *PEOPLE[name])
            for name in ("casey", "alice", "bob", "pat")
        )
        self._olga = admit(self._application, "olga", Role.OPERATOR)

    def _first_delivery(self, deliveries: Deliveries) -> None:
        self._chapter("1. The first delivery needs two approvals, and gets them")
        with self._step("a Dagster run stages and checks it"):
            stage = self._stage(deliveries.first.name, StageState.AWAITING_APPROVAL)
        with self._step("alice and bob approve, each with a key of their own"):
            self._approve(self._alice, stage)
            self._approve(self._bob, stage)
        with self._step("the quorum sensor's run promotes it"):
            self._await_promotion(stage)
        with self._step("a downstream asset reads what is in force"):
            self._run_example()

    def _faulty_delivery(self, deliveries: Deliveries) -> None:
        self._chapter("2. A delivery with faults is blocked, and readers notice nothing")
        before = self._target()
        with self._step("a dropped column, repeated codes, a latitude of 95, a country ZZ"):
            stage = self._stage(deliveries.faulty.name, StageState.FAILED)
        rules = validation_document(stage)["rules"]
        failed = [
            rule
            for rule in (rules if isinstance(rules, list) else [])
            if isinstance(rule, dict) and rule["status"] != "passed" and rule["severity"] == "error"
        ]
        self._out.print(rule_table(failed))
        self._expect(
            {str(rule["id"]) for rule in failed} == _SHOWN_RULES, "the faults are the ones found"
        )
        with self._step("the current materialization stays readable"):
            reading = read_current(self._application.work(), DATASOURCE, SYSTEM)
            self._expect(
                reading.materialization.id == before.current, "current is what it was before"
            )
        with self._step("nobody can approve it"):
            self._refused("not_awaiting_approval", lambda: self._approve(self._alice, stage))

    def _corrected_delivery(self, deliveries: Deliveries) -> None:
        self._chapter("3. The corrected delivery goes through, but not on its creator's word")
        with self._step("a Dagster run stages and checks it"):
            stage = self._stage(deliveries.corrected.name, StageState.AWAITING_APPROVAL)
        with self._step("casey, who created it, may approve others' stages but not this one"):
            self._refused("creator_cannot_approve", lambda: self._approve(self._casey, stage))
        with self._step("alice and bob approve"):
            self._approve(self._alice, stage)
            self._approve(self._bob, stage)
        with self._step("the quorum sensor's run promotes it"):
            self._await_promotion(stage)

    def _producer(self) -> dict[str, object]:
        self._chapter("4. A producer publishes what it makes of it: once, however often it tries")
        pat = DagsterClient(self._application.settings.dagster_url, self._pat)
        with self._step("a governed asset counts airports per country and time zone"):
            run_id, succeeded = publish_by_run(pat)
            self._expect(succeeded, "the output passes the gate")
            publication = publication_of(self._application, run_id)
        with self._step(f"pat, who launched that run, executes it again {RETRIES} times at once"):
            found = counted(self._application, publication, retry_run(pat, run_id))
        self._out.print(
            f"   publication {publication.id}: {found.materialization.row_count} rows, "
            f"{coloured(publication.state)}, by {publication.actor}",
            soft_wrap=True,
        )
        self._out.print(
            f"   published {found.publications} time, replayed {sum(found.replays)} times: "
            f"{found.materializations} materialization, {found.events} event",
            markup=False,
        )
        self._expect(found.is_kept, "retries publish nothing twice")
        with self._step("it is what readers get now"):
            reading = read_current(self._application.work(), publication.datasource, SYSTEM)
            self._expect(
                reading.materialization.id == publication.materialization, "the output is current"
            )
        return found.document()

    def _retention(self) -> dict[str, object]:
        self._chapter("5. Nothing is destroyed unless policy, a plan and a person say so")
        first, application = self._promotions[0], self._application
        with self._step("olga, an operator, plans what policy makes due"):
            ahead = look_ahead(application, self._olga, first)
            self._out.print(f"   plan {ahead.plan.hash}: {len(ahead.plan.targets)} due")
        with self._step("last month's register is not in force any more; why is it kept?"):
            for sentence in ahead.explanation.sentences():
                self._out.print(f"   {sentence}", markup=False, soft_wrap=True)
            self._expect(ahead.is_kept_for_a_year, "nothing is due for a year")
        with self._step("olga holds it, whatever policy says later"):
            hold = hold_it(application, self._olga, DATASOURCE, first)
            held = holds_on(application, self._olga, DATASOURCE)
            for one in held:
                on = f"{one.hold.scope} {one.hold.subject}"
                self._out.print(f"   held: {on}, by {one.hold.actor}", soft_wrap=True)
            self._expect(hold.id in {one.hold.id for one in held}, "the hold is in force")
        with self._step("she cannot release it herself; an administrator does"):
            self._refused("second_actor_required", lambda: let_go(application, self._olga, hold))
            released = let_go(application, self._administrator, hold)
        return {"plan": ahead.plan.hash, "due": len(ahead.plan.targets), "hold": released.id}

    def _contract(self) -> dict[str, object]:
        self._chapter("6. Consumers are promised something, and learn at once when it breaks")
        application = self._application
        with self._step("a contract: what pat publishes is 20 seconds old at most"):
            promise(application, self._administrator)
        with self._step("it goes stale, which the monitor finds"):
            stale = gone_stale(application)
            self._told(stale)
            self._expect(stale.violation is not None, "the contract is violated")
        with self._step("pat publishes it anew, and the contract holds again"):
            fresh = recovered(application, self._pat)
            self._told(fresh)
            self._expect(fresh.severity is None, "the violation is resolved")
        with self._step("a catalogue is told of it, as OpenLineage events"):
            lineage = told_as_lineage(application)
            self._out.print(lineage_table(lineage[-_SHOWN_EVENTS:]))
            ends = [one.state for one in lineage if one.state != "START"]
            self._expect(ends[-1] == "COMPLETE" and "FAIL" in ends, "it was told, and in order")
        return {
            "severity": str(stale.severity),
            "violation": stale.violation,
            "resolved": fresh.violation is None,
            "lineage": [one.state for one in lineage],
        }

    def _told(self, check: ContractCheck) -> None:
        severity = f", {check.severity}" if check.severity else ""
        self._out.print(
            f"   {check.kind} {coloured(str(check.status))}{severity}: {check.message}",
            soft_wrap=True,
        )

    def _evidence(self) -> dict[str, object]:
        self._chapter("7. Everything that happened is evidence, and the evidence holds")
        with self._step("verify every chain and every row"):
            verification = self._application.verify_evidence()
            self._expect(verification.holds, "the evidence holds")
        with self._application.work() as work:
            stages = work.stages.list(DATASOURCE, ())
            target = work.datasources.get(DATASOURCE)
        self._out.print(stage_table(stages))
        table = Table("what", "where it stands")
        table.add_row("current materialization", f"revision {target.revision}, {target.current}")
        table.add_row("evidence", coloured("passed") if verification.holds else coloured("failed"))
        table.add_row("entries in chains", f"{verification.entries} in {verification.chains}")
        table.add_row("governed rows", str(verification.rows))
        self._out.print(table)
        return {
            "holds": verification.holds,
            "entries": verification.entries,
            "chains": verification.chains,
            "rows": verification.rows,
        }

    def _stage(self, name: str, expected: StageState) -> Stage:
        file = self._application.settings.state / "register" / name
        stage = stage_file(self._application, self._casey, DATASOURCE, file, in_process=False)
        self._out.print(
            f"   stage {stage.id}: {stage.row_count} rows, {coloured(stage.state)}", soft_wrap=True
        )
        self._expect(stage.state is expected, f"the stage is {expected}, not {stage.state}")
        return stage

    def _approve(self, actor: Signer, stage: Stage) -> None:
        decide(
            self._application,
            actor,
            Verdict.APPROVE,
            stage.id,
            "The checks and the row count are as expected.",
        )

    def _refused(self, code: str, attempt: Callable[[], object]) -> None:
        try:
            attempt()
        except GuardError as refusal:
            self._expect(refusal.code == code, f"refused as {code}, not as {refusal.code}")
            self._out.print(f"   refused: {refusal}", markup=False)
            self._refusals.append(refusal.code)
            return
        self._fail(f"it is refused as {code}")

    def _await_promotion(self, stage: Stage) -> None:
        deadline = time.monotonic() + _SENSOR_SECONDS
        while (materialization := self._promoted(stage)) is None:
            if time.monotonic() > deadline:
                self._fail("the sensor promotes within two minutes")
            time.sleep(0.5)
        run = newest_run_about(self._dagster, stage.id)
        if run is None or run.sensor is None:
            self._fail("the promotion was launched by a sensor")
        self._expect(
            wait_for_run(self._dagster, run.id) == "SUCCESS", "the promotion's run succeeds"
        )
        self._promotions.append(materialization)
        self._out.print(
            f"   materialization {materialization} is current, launched by {run.sensor}"
        )

    def _promoted(self, stage: Stage) -> str | None:
        with self._application.work() as work:
            found = work.materializations.of_stage(stage.id)
        return found.id if found else None

    def _run_example(self) -> None:
        run_id = launch(self._dagster, EXAMPLE_JOB, {})
        self._expect(
            wait_for_run(self._dagster, run_id) == "SUCCESS", "the downstream asset is materialized"
        )

    def _target(self) -> Target:
        with self._application.work() as work:
            return work.datasources.get(DATASOURCE)

    def _chapter(self, title: str) -> None:
        self._out.print(f"\n[bold]{title}[/bold]")

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        self._progress.update(self._task, description=what)
        self._out.print(f" • {what}", markup=False)
        yield
        self._progress.advance(self._task)

    def _expect(self, kept: bool, promise: str) -> None:  # noqa: FBT001 - the condition itself
        if not kept:
            self._fail(promise)

    def _fail(self, promise: str) -> NoReturn:
        raise GovernanceError(f"the demo's promise was not kept: {promise}", code="demo_failed")
