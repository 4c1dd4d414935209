"""Bring contracts into force: held against those before them, and watched from then on.

Source: SPEC section 14.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.contract_diff import check_version
from datasource_governance.domain.policy_version import PolicyKind, recorded_contract
from datasource_governance.domain.target import Target
from datasource_governance.ports import UnitOfWork
from datasource_governance.ports.contracts import Watch


def contract_in_force(work: UnitOfWork, datasource: str, contract_hash: Sha256) -> Contract:
    """Return a contract as it was recorded.

    Raises:
        NotFoundError: the datasource never had it.
        GuardError: code `evidence_chain_broken`.
    """
    return recorded_contract(
        work.datasources.policy(datasource, PolicyKind.CONTRACT, contract_hash)
    )


def check_contract_versions(
    work: UnitOfWork, before: Target | None, contracts: Sequence[Contract]
) -> None:
    """Refuse a contract whose version does not say how much it changes.

    Raises:
        GuardError: code `contract_version_too_low`.
    """
    known = dict(before.contracts) if before else {}
    for contract in contracts:
        in_force = known.get(contract.id)
        if before is not None and in_force is not None and in_force != contract.hash:
            check_version(contract_in_force(work, before.datasource, in_force), contract)


def watch_contracts(
    work: UnitOfWork, datasource: str, contracts: Sequence[Contract], now: datetime
) -> None:
    """Watch a datasource by these contracts alone; violations of others end.

    The datasource is locked; evidence is told by whoever ends the transaction.
    """
    watches = [watch for contract in contracts for watch in _watches(datasource, contract)]
    for violation in work.contracts.watch(datasource, watches, now):
        work.contracts.resolve(violation, None, now)


def _watches(datasource: str, contract: Contract) -> Iterator[Watch]:
    for kind in contract.kinds:
        rhythm = contract.rhythms[kind]
        yield Watch(
            datasource=datasource,
            contract=contract.id,
            contract_hash=contract.hash,
            kind=kind,
            interval=rhythm.interval,
            timeout_seconds=rhythm.timeout_seconds,
        )
