"""What services need of contracts that are watched, as Protocols.

Source: SPEC section 14.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.contract import CheckKind
from datasource_governance.domain.contract_check import (
    ContractCheck,
    Violation,
    ViolationSeverity,
)
from datasource_governance.domain.rule_outcome import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One check that is due and that nobody else runs until the claim lapses.

    `planned_for` is its instant on the rhythm; None where it is due because something became
    current, which is `materialization` then.
    """

    id: str
    datasource: str
    contract: str
    contract_hash: Sha256
    kind: CheckKind
    planned_for: datetime | None
    materialization: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How one kind of check of one contract stands: no evidence, but what metrics are made of.

    `checks`, `failures`, `errors` and `seconds` are sums over all time, `durations` counts of checks
    by the buckets of `DURATION_BUCKETS` and one more for longer ones. `last` are of the newest
    check; all None before the first.
    """

    datasource: str
    contract: str
    contract_hash: Sha256
    kind: CheckKind
    interval: timedelta
    next_due: datetime | None
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


DURATION_BUCKETS = (0.1, 0.5, 1.0, 5.0, 30.0, 300.0)
"""Upper bounds in seconds of how long checks take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCount:
    """The checks of one contract and kind on one day (UTC), by how they ended."""

    datasource: str
    contract: str
    kind: CheckKind
    day: date
    passed: int
    failed: int
    errors: int


class Contracts(Protocol):
    """Contracts that are watched, their checks and violations."""

    def watch(self, watches: Collection[Watch], datasource: str, now: datetime) -> None:
        """Watch a datasource as these say and no other way; what is watched already goes on.

        A new one, or one with another interval, is due at once. The datasource is locked.
        """
        ...

    def is_due(self, now: datetime) -> bool:
        """Tell whether any check is due that nobody has claimed."""
        ...

    def claim(self, now: datetime, until: datetime, limit: int) -> Sequence[Claim]:
        """Claim up to `limit` checks that are due, the longest due first, until an instant.

        What others claimed at the same time is passed over without waiting.
        """
        ...

    def lock(self, claim: Claim, now: datetime) -> bool:
        """Lock what was claimed; tell whether it is still this claim's. The datasource is locked."""
        ...

    def finish(self, claim: Claim, check: ContractCheck, next_due: datetime | None) -> None:
        """Give a claim back; the next check of the rhythm is due then, if it was one of it."""
        ...

    def count(self, check: ContractCheck) -> None:
        """Count a check in its watch, whatever it ran for."""
        ...

    def watches(self, datasource: str | None = None) -> Sequence[Watch]:
        """Return everything that is watched, ordered by datasource, contract and kind."""
        ...

    def watch_of(self, contract: str, kind: CheckKind, datasource: str) -> Watch | None:
        """Return one of them."""
        ...

    def add(self, check: ContractCheck) -> None:
        """Store a check."""
        ...

    def open_violation(self, datasource: str, contract: str, kind: CheckKind) -> Violation | None:
        """Return the open violation of a contract and kind, of which there is one at most."""
        ...

    def violations(
        self, datasource: str | None = None, *, open_only: bool = False, limit: int = 1000
    ) -> Sequence[Violation]:
        """Return violations, newest first."""
        ...

    def violation_counts(self) -> Sequence[tuple[str, str, CheckKind, ViolationSeverity, int]]:
        """Return how many violations there ever were, by datasource, contract, kind, severity."""
        ...

    def add_violation(self, violation: Violation) -> None:
        """Store a new violation."""
        ...

    def resolve(self, violation: Violation, check: ContractCheck) -> None:
        """Record that a check resolved a violation."""
        ...

    def breaches_since(
        self, datasource: str, contract: str, kind: CheckKind, since: datetime
    ) -> int:
        """Return how many checks since an instant found the contract broken."""
        ...

    def outcomes_since(
        self, datasource: str, contract: str, kind: CheckKind, since: datetime
    ) -> tuple[int, int]:
        """Return how many checks since an instant passed, and how many there were."""
        ...

    def daily(self, since: date, datasource: str | None = None) -> Sequence[DailyCount]:
        """Return the checks of each day since one, ordered by datasource, contract, kind, day."""
        ...

    def newest(self, datasource: str, contract: str, limit: int) -> Sequence[ContractCheck]:
        """Return the newest checks of a contract, newest first."""
        ...
