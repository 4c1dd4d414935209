"""`kill -9` after every trip to the server of every transition, in a process of its own."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from datasource_governance.domain.approval import Verdict, subject_of
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.event import EXPIRING
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import launch_subject, promotion_subject
from datasource_governance.errors import GuardError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.services.approval import AttestedDecision, decide_stage
from datasource_governance.services.expiring import tell_of_expiring
from datasource_governance.services.launching import attest_launch
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.recording import record
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.services.waiting import supersede_stage
from datasource_governance_tests.services.dying import assert_whole_or_not_at_all

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ONE_APPROVAL = {"version": "v1", "required": True}
MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROWS = pa.table({"id": [1, 2]})
SHA256 = Sha256(hashlib.sha256(TypedPayload(ROWS).encoded()).hexdigest())


@dataclass(frozen=True)
class Creation:
    """A delivery becomes a stage."""

    request: StageRequest

    @classmethod
    def prepare(cls, world):
        return cls(
            StageRequest(
                datasource=world.datasource,
                delivery="delivery.csv",
                file_sha256=SHA256,
                attestation_id=world.attest_delivery("creator", SHA256),
            )
        )

    def run(self, application):
        payload = TypedPayload(ROWS)
        staged = create_stage(application.work(), application.evaluator(), payload, self.request)
        return staged.stage.id

    def found(self, work):
        stage = work.stages.attested_by(self.request.attestation_id, self.request.datasource)
        return [stage.id] if stage else []


@dataclass(frozen=True)
class Deciding:
    """An approver decides about a stage."""

    request: AttestedDecision

    @classmethod
    def prepare(cls, world, verdict=Verdict.APPROVE):
        stage = world.stage()
        return cls(
            AttestedDecision(
                verdict=verdict,
                reason="checked",
                subject=subject_of(stage, "default"),
                attestation=world.decision_attestation("approver-1", stage, "checked", verdict),
            )
        )

    def run(self, application):
        try:
            return decide_stage(application.work(), self.request).id
        except GuardError as refusal:
            # What a retry after a lost answer is told: it was counted.
            if refusal.code != "attestation_used":
                raise
            with application.work() as work:
                (decided,) = self.found(work)
            return decided

    def found(self, work):
        return [decision.id for decision in work.decisions.about(self.request.subject.stage)]


@dataclass(frozen=True)
class Rejecting(Deciding):
    """An approver rejects a stage, which closes it."""

    @classmethod
    def prepare(cls, world, verdict=Verdict.REJECT):
        return super().prepare(world, verdict)


@dataclass(frozen=True)
class Promoting:
    """An approved stage becomes current and supersedes another one that waits."""

    request: PromotionRequest

    @classmethod
    def prepare(cls, world):
        stage, _ = approved(world), world.stage()
        attestation = world.signer("operator").attest(
            Action.STAGE_PROMOTE, promotion_subject(subject_of(stage, "default"))
        )
        return cls(PromotionRequest(stage=stage.id, attestation=attestation))

    def run(self, application):
        return promote_stage(
            application.work(), application.artifacts(), self.request
        ).materialization.id

    def found(self, work):
        materialization = work.materializations.of_stage(self.request.stage)
        return [materialization.id] if materialization else []


@dataclass(frozen=True)
class Superseding:
    """A stage whose base is no longer current is closed."""

    stage: str

    @classmethod
    def prepare(cls, world):
        first = world.promote(approved(world)).materialization
        world.promote(approved(world))
        stage = world.stage()
        with world.application.work() as work:
            present = work.datasources.get_for_update(world.datasource)
            work.datasources.change(replace(present, current=first.id), revision=present.revision)
            record(work, "orders", "datasource.restored", subject="orders", facts={}, at=work.now())
            work.commit()
        return cls(stage.id)

    def run(self, application):
        supersede_stage(application.work(), self.stage)
        return self.stage

    def found(self, work):
        stage = work.stages.get(self.stage)
        return [stage.id] if stage.state is StageState.SUPERSEDED else []


@dataclass(frozen=True)
class Telling:
    """People are told that an approval expires soon."""

    stage: str

    @classmethod
    def prepare(cls, world):
        world.declare(approval={**ONE_APPROVAL, "required_approvals": 2, "expires_after_hours": 4})
        world.set_clock(MIDDAY)
        stage = approved(world)
        world.set_clock(MIDDAY + timedelta(hours=3))
        return cls(stage.id)

    def run(self, application):
        tell_of_expiring(application.work(), self.stage)
        return self.stage

    def found(self, work):
        entries = work.evidence.segment("datasource/orders", self.stage)
        return [entry.subject for entry in entries if entry.kind == EXPIRING]


@dataclass(frozen=True)
class Launching:
    """The governed webserver attests who launches a run."""

    launch: RunLaunch
    attestation: Attestation

    @classmethod
    def prepare(cls, world):
        launch = RunLaunch(run_id="r-1", job="stage_orders", assets=(), config_hash=SHA256)
        gateway = world.gateway(world.application.settings.state / "webserver")
        return cls(launch, gateway.attest("operator", Action.RUN_LAUNCH, launch_subject(launch)))

    def run(self, application):
        return attest_launch(application.work(), self.launch, self.attestation)

    def found(self, work):
        attestation = work.authority.launch_attestation(self.launch.run_id)
        return [attestation.claims.actor] if attestation else []


def approved(world):
    stage = world.stage()
    world.decide("approver-1", stage)
    return stage


KINDS = [Creation, Deciding, Rejecting, Telling, Promoting, Superseding, Launching]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_transition_happened_whole_or_not_at_all_and_a_retry_completes_it(world, kind):
    world.declare(approval=ONE_APPROVAL)

    assert_whole_or_not_at_all(world, kind.prepare(world))
