"""An origin that says what a test lets it say, and remembers how it was asked."""

import hashlib
from dataclasses import dataclass, field

import pyarrow as pa

from datasource_governance.domain.approval import subject_of
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import promotion_subject, refresh_subject
from datasource_governance.errors import GovernanceError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.ports.origins import Reading
from datasource_governance.services.creating import store_refresh_attestation
from datasource_governance.services.promotion import PromotionRequest
from datasource_governance.services.refresh import (
    Refreshed,
    RefreshRequest,
    refresh,
    refresh_stage,
)
from datasource_governance_tests.world import TWO_ROWS, World

DEFINITION = Sha256("0" * 64)


@dataclass
class ToldOrigin:
    """Implements OriginReader; `asked` has the version of every question, None where none was."""

    table: pa.Table = field(default_factory=lambda: TWO_ROWS)
    version: str | None = None
    failure: GovernanceError | None = None
    definition: Sha256 = DEFINITION
    asked: list[str | None] = field(default_factory=list)

    def read(self) -> Reading:
        self.asked.append(None)
        return self._reading()

    def read_unless(self, version: str) -> Reading | None:
        self.asked.append(version)
        return None if version == self.version else self._reading()

    def _reading(self) -> Reading:
        if self.failure is not None:
            raise self.failure
        payload = TypedPayload(self.table)
        sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        return Reading(name="told", payload=payload, sha256=sha256, version=self.version)


def attest_refresh(world: World, origin: ToldOrigin, creator: str = "creator") -> Sha256:
    """Store an attestation that a creator has an origin read."""
    subject = refresh_subject(world.datasource, origin.definition)
    attestation = world.signer(creator).attest(Action.STAGE_REFRESH, subject)
    work = world.application.work()
    return store_refresh_attestation(work, world.datasource, origin.definition, attestation)


def refreshed_stage(world: World, origin: ToldOrigin, **request) -> Refreshed:
    """Read an origin into a stage; without an attestation or a launch it is nobody's."""
    asked = RefreshRequest(datasource=world.datasource, origin=origin, **request)
    return refresh_stage(world.application.work(), world.application.evaluator(), asked)


def refreshed(world: World, origin: ToldOrigin, **request) -> Refreshed:
    """Read an origin and have the operator bring it into force."""
    asked = RefreshRequest(datasource=world.datasource, origin=origin, **request)
    application = world.application

    def promotion(stage: Stage) -> PromotionRequest:
        subject = promotion_subject(subject_of(stage, application.settings.tenant))
        attestation = world.signer("operator").attest(Action.STAGE_PROMOTE, subject)
        return PromotionRequest(stage=stage.id, attestation=attestation)

    work, evaluator = application.work(), application.evaluator()
    return refresh(work, evaluator, application.artifacts(), asked, promotion)
