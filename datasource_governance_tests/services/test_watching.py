"""`kill -9` at every trip to the server while a check is kept: it is kept whole, once, or not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import Finding, Trigger
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.ports.contracts import Claim
from datasource_governance.services.contracts import contract_in_force
from datasource_governance.services.watching import Observation, claim_due, keep_observation
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.services.dying import assert_whole_or_not_at_all

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Keeping:
    """A check that was claimed found a contract broken."""

    claim: Claim

    @classmethod
    def prepare(cls, world):
        world.set_clock(NOW)
        world.declare(kind="published", contracts=[odcs(schema=[{"name": "orders"}])])
        claims = claim_due(world.application.work(), 10)
        return cls(next(one for one in claims if one.kind is CheckKind.FRESHNESS))

    def keep(self, application):
        with application.work() as work:
            contract = contract_in_force(work, "orders", self.claim.contract_hash)
        observed = Observation(
            datasource="orders",
            contract=contract,
            kind=self.claim.kind,
            trigger=Trigger.SCHEDULE,
            claim=self.claim,
            dataset=("ours", "orders"),
            materialization=None,
            run_id=None,
            finding=Finding(status=Status.PASSED, used=120),
            seconds=0.0,
        )
        return keep_observation(application.work(), observed)

    def run(self, application):
        self.keep(application)
        with application.work() as work:
            (kept,) = self.found(work)
        return kept

    def found(self, work):
        return [one.id for one in work.contracts.newest("orders", "orders", 10)]


def test_a_check_is_kept_whole_or_not_at_all(world):
    assert_whole_or_not_at_all(world, Keeping.prepare(world))


def test_of_many_who_keep_one_claim_only_one_does(world):
    keeping = Keeping.prepare(world)

    def keep(_):
        return keeping.keep(world.application)

    with ThreadPoolExecutor(8) as pool:
        kept = [*pool.map(keep, range(8))]

    assert len([one for one in kept if one is not None]) == 1
    assert world.query("SELECT count(*) FROM governance.contract_violation") == [(1,)]
    assert world.verification().holds
