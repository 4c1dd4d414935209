"""The contract monitor: claim what is due, look at live data, keep what was found.

Nothing is locked while a check looks. Whoever dies meanwhile leaves a claim that lapses, and the
check is run again; what two found of one claim is kept once.

Source: SPEC section 14.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from datasource_governance.composition import Application
from datasource_governance.domain.contract import CheckKind, Contract
from datasource_governance.domain.contract_check import ContractCheck, Finding, Trigger
from datasource_governance.domain.lineage_dataset import current_dataset
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.errors import GovernanceError, NotFoundError
from datasource_governance.monitoring.checks import run_check
from datasource_governance.monitoring.live import live_data
from datasource_governance.ports.contracts import Claim
from datasource_governance.services.contracts import contract_in_force
from datasource_governance.services.watching import (
    Observation,
    claim_due,
    keep_observation,
    pass_over,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """Runs checks of the contracts in force. `run_id` is the Dagster run that does so, if any."""

    application: Application
    run_id: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def run_due(self) -> Iterator[ContractCheck]:
        """Run everything that is due, and yield each check once it is kept.

        Others may do so at the same time; each check is run by one of them.

        Raises:
            GovernanceError: the governance database cannot be used; the claims lapse.
        """
        while claims := claim_due(self.application.work()):
            for claim in claims:
                yield from self._claimed(claim)

    def _claimed(self, claim: Claim) -> Iterator[ContractCheck]:
        with self.application.work() as work:
            contract = contract_in_force(work, claim.datasource, claim.contract_hash)
        trigger = Trigger.SCHEDULE if claim.planned_for else Trigger.MATERIALIZATION
        observed = self._observed(claim.datasource, contract, claim.kind, trigger, claim)
        if observed is None:
            pass_over(self.application.work(), claim)
        elif kept := keep_observation(self.application.work(), observed):
            yield kept

    def check(
        self, datasource: str, contract_id: str, kind: CheckKind, trigger: Trigger = Trigger.MANUAL
    ) -> ContractCheck:
        """Run one check now, beside its rhythm.

        Raises:
            NotFoundError: the datasource has no such contract in force, or it promises nothing of
                the kind; code `nothing_current` where nothing is current yet.
            GovernanceError: the governance database cannot be used.
        """
        contract = self.contract(datasource, contract_id)
        observed = self._observed(datasource, contract, kind, trigger, None)
        if observed is None:
            raise NotFoundError(
                f"datasource {datasource!r} has nothing current yet; its contracts are checked "
                "from its first materialization on",
                code="nothing_current",
            )
        return self.keep(observed)

    def keep(self, observed: Observation) -> ContractCheck:
        """Keep what was observed beside the rhythm.

        Raises:
            NotFoundError: as `check`.
        """
        kept = keep_observation(self.application.work(), observed)
        if kept is None:
            raise NotFoundError(
                f"contract {observed.contract.id!r} of datasource {observed.datasource!r} is not "
                f"watched for {observed.kind}"
            )
        return kept

    def contract(self, datasource: str, contract_id: str) -> Contract:
        """Return the contract in force.

        Raises:
            NotFoundError: there is none of that id.
        """
        with self.application.work() as work:
            hashes = dict(work.datasources.get(datasource).contracts)
            if contract_id not in hashes:
                raise NotFoundError(
                    f"datasource {datasource!r} has no contract {contract_id!r} in force; those "
                    f"are: {', '.join(hashes) or 'none'}"
                )
            return contract_in_force(work, datasource, hashes[contract_id])

    def _observed(
        self,
        datasource: str,
        contract: Contract,
        kind: CheckKind,
        trigger: Trigger,
        claim: Claim | None,
    ) -> Observation | None:
        """Return what a check finds; None where nothing is there yet that it could look at."""
        timeout = contract.rhythms[kind].timeout_seconds
        live = live_data(self.application, datasource, contract, timeout, self.environment)
        if live is None:
            return None
        seconds, materialization = 0.0, None
        dataset = current_dataset(self.application.settings.tenant, datasource)
        try:
            dataset, materialization = live.dataset, live.materialization
            finding, seconds = run_check(kind, contract, live, self.application.platform)
        except GovernanceError as error:
            finding = Finding(status=Status.ERROR, problem=error.code)
        return Observation(
            datasource=datasource,
            contract=contract,
            kind=kind,
            trigger=trigger,
            claim=claim,
            dataset=dataset,
            materialization=materialization,
            run_id=self.run_id,
            finding=finding,
            seconds=seconds,
        )
