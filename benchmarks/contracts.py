"""`python -m benchmarks.contracts`: what watching costs as contracts grow and what is due does not.

On a server of its own for each number of contracts. Of these, so many checks are due; the others
are not. A tick asks whether anything is due and claims it. Beside it, what keeping one check costs:
its row, its event, its link of evidence, and a violation every other time.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Final

import typer

from benchmarks.servers import Served, found_publishing, served
from datasource_governance.composition import Application
from datasource_governance.contract_files import read_contract
from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.contract import CheckKind, Contract
from datasource_governance.domain.contract_check import Finding, Trigger
from datasource_governance.domain.datasource import Datasource, parse_datasource
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.services.watching import (
    Observation,
    claim_due,
    is_due,
    keep_observation,
)

_DATASOURCE: Final = "orders"
_CONTRACT: Final[dict[str, Json]] = {
    "apiVersion": "v3.1.0",
    "kind": "DataContract",
    "id": "orders",
    "version": "1.0.0",
    "status": "active",
    "schema": [
        {
            "name": "orders",
            "properties": [{"name": "id", "logicalType": "integer", "required": True}],
        }
    ],
    "slaProperties": [{"property": "latency", "value": 24, "unit": "h"}],
}
# Copies behind the application's back: a tick reads nothing else of a contract.
_COPIES: Final = """
UPDATE governance.contract_watch SET next_due = governance.now() + interval '1 day';
INSERT INTO governance.contract_watch
    SELECT (jsonb_populate_record(w, jsonb_build_object('contract', 'copy-' || n))).*
    FROM governance.contract_watch w, generate_series(1, {copies}) n;
"""
_DUE: Final = """
UPDATE governance.contract_watch SET claim = NULL, claimed_until = NULL,
    next_due = governance.now() + interval '1 day' WHERE next_due <= governance.now();
UPDATE governance.contract_watch SET next_due = governance.now()
    WHERE (contract, kind) IN (
        SELECT contract, kind FROM governance.contract_watch ORDER BY contract, kind LIMIT {due});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds, medians: of asking, of claiming all that is due, of keeping one check."""

    contracts: int
    due: int
    asked: float
    claimed: float
    kept: float


def main(
    contracts: Annotated[str, typer.Option(help="Numbers of contracts.")] = "10,10000",
    due: Annotated[int, typer.Option(min=1, help="Checks that are due.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds behind each median.")] = 20,
) -> None:
    """Print a table of what watching costs."""
    typer.echo("| contracts | checks | due | asking (ms) | claiming them (ms) | keeping one (ms) |")
    typer.echo("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for number in map(int, contracts.split(",")):
        found = measured(number, due, rounds)
        typer.echo(
            f"| {found.contracts:,} | {found.contracts * len(CheckKind):,} | {found.due} "
            f"| {found.asked:.2f} | {found.claimed:.2f} | {found.kept:.2f} |"
        )


def measured(contracts: int, due: int, rounds: int) -> Cost:
    """Measure on a server of its own."""
    with served() as server:
        contract = _watched(server, contracts)
        with closing(Application(server.settings)) as application:
            asked, claimed = [], []
            for _ in range(rounds):
                _run(server, _DUE.format(due=due))
                asked.append(_milliseconds(lambda: is_due(application.work())))
                claimed.append(_milliseconds(lambda: claim_due(application.work(), due)))
            kept = [
                _milliseconds(partial(keep_observation, application.work(), observed))
                for observed in _observations(contract, rounds)
            ]
    return Cost(
        contracts=contracts,
        due=due,
        asked=statistics.median(asked),
        claimed=statistics.median(claimed),
        kept=statistics.median(kept),
    )


def _watched(server: Served, contracts: int) -> Contract:
    declared = _declared()
    found_publishing(server, [declared])
    _run(server, _COPIES.format(copies=contracts - 1))
    return declared.contracts[0]


def _declared() -> Datasource:
    document = {
        "id": _DATASOURCE,
        "kind": "published",
        "governance": {"contracts": ["orders.odcs.yaml"]},
    }
    content = canonical_bytes(_CONTRACT)
    return parse_datasource(document, lambda _: content, read_contract)


def _observations(contract: Contract, rounds: int) -> list[Observation]:
    return [
        Observation(
            datasource=_DATASOURCE,
            contract=contract,
            kind=CheckKind.FRESHNESS,
            trigger=Trigger.MANUAL,
            claim=None,
            dataset=("datasource_governance://default", "orders.current"),
            materialization=None,
            run_id=None,
            finding=Finding(status=Status.PASSED, used=100 * (number % 2)),
            seconds=timedelta(milliseconds=1).total_seconds(),
        )
        for number in range(2 * rounds)
    ]


def _run(server: Served, statements: str) -> None:
    address = administrative_url(server.url).set(database="governance")
    with connect(address) as connection:
        for statement in statements.strip().rstrip(";").split(";"):
            connection.execute(statement.encode())
        connection.execute(b"ANALYZE governance.contract_watch")


def _milliseconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - begun)


if __name__ == "__main__":
    typer.run(main)
