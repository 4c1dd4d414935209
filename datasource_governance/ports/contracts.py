"""What services need of contracts that are watched, as Protocols.

Source: SPEC section 14.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.compliance import Day
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import (
    ContractCheck,
    Violation,
    ViolationSeverity,
)
from datasource_governance.domain.rule_outcome import Status

DURATION_BUCKETS = (0.1, 0.5, 1.0, 5.0, 30.0, 300.0)
"""Upper bounds in seconds of how long checks take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One check that is due and that nobody else runs until the claim lapses.

    `planned_for` is its instant on the rhythm; None where it is due because `materialization`
    became current. Both may be so at once.
    """

    id: str
    datasource: str
    contract: str
    contract_hash: Sha256
    kind: CheckKind
    interval: timedelta
    planned_for: datetime | None
    materialization: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How one kind of check of one contract stands: no evidence, but what metrics are made of.

    `next_due` is None where it is not watched any more. `checks`, `failures`, `errors` and
    `seconds` are sums over all time, `durations` counts of checks by `DURATION_BUCKETS` and of
    longer ones at last. `last_…` are of the newest check, None before the first. `violation` is the
    id of the open one. `claim` is the id of the newest claim that was not given back.
    """

    datasource: str
    contract: str
    contract_hash: Sha256
    kind: CheckKind
    interval: timedelta
    timeout_seconds: int
    next_due: datetime | None = None
    checks: int = 0
    failures: int = 0
    errors: int = 0
    seconds: float = 0.0
    durations: tuple[int, ...] = ()
    consecutive_failures: int = 0
    last_status: Status | None = None
    last_severity: ViolationSeverity | None = None
    last_at: datetime | None = None
    last_used: int | None = None
    last_score: float | None = None
    violation: str | None = None
    claim: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How many checks there were, passed, and found a contract broken."""

    checks: int
    passed: int
    breaches: int


class Contracts(Protocol):
    """Contracts that are watched, their checks and violations."""

    def watch(self, datasource: str, watches: Collection[Watch], now: datetime) -> Sequence[str]:
        """Watch a datasource as these say and no other way; what is watched already goes on.

        A new one, one of another version and one with another interval are due at once. Return the
        open violations of what is not watched any more. The datasource is locked.
        """
        ...

    def is_due(self, now: datetime) -> bool:
        """Tell whether any check is due that nobody has claimed."""
        ...

    def claim(self, claim: str, now: datetime, limit: int) -> Sequence[Claim]:
        """Claim up to `limit` checks that are due, the longest due first.

        Each is claimed for as long as it may take, and a minute. What others claim at the same
        time is passed over without waiting.
        """
        ...

    def give_back(self, claim: Claim, next_due: datetime | None) -> None:
        """End a claim; the next check is due then, None leaves the rhythm as it is."""
        ...

    def lock(self, datasource: str, contract: str, kind: CheckKind) -> Watch | None:
        """Return a watch, locked; the datasource is locked before."""
        ...

    def watches(self, datasource: str | None = None) -> Sequence[Watch]:
        """Return everything that is watched, ordered by datasource, contract and kind."""
        ...

    def add(self, check: ContractCheck) -> None:
        """Store a check, and count it in its watch."""
        ...

    def add_violation(self, violation: Violation) -> None:
        """Store a new violation, which is the open one of its watch."""
        ...

    def resolve(self, violation: str, check: str | None, now: datetime) -> None:
        """Record that a violation ended, and by which check; its watch has none open."""
        ...

    def violation(self, violation: str) -> Violation:
        """Return a violation."""
        ...

    def open_violations(self, datasource: str | None = None) -> Sequence[Violation]:
        """Return the violations that are open, newest first."""
        ...

    def violations(self, datasource: str | None = None, limit: int = 1000) -> Sequence[Violation]:
        """Return violations, newest first, the open ones among them."""
        ...

    def violation_counts(self) -> Sequence[tuple[str, str, CheckKind, ViolationSeverity, int]]:
        """Return how many violations there ever were, by datasource, contract, kind, severity."""
        ...

    def outcomes_since(
        self, datasource: str, contract: str, kind: CheckKind, since: datetime
    ) -> Outcomes:
        """Return how the checks that ended after an instant did so."""
        ...

    def daily(self, since: date) -> Mapping[tuple[str, str, CheckKind], Sequence[Day]]:
        """Return the days since one with checks, in order, by datasource, contract and kind."""
        ...

    def newest(self, datasource: str, contract: str, limit: int) -> Sequence[ContractCheck]:
        """Return the newest checks of a contract, newest first."""
        ...
