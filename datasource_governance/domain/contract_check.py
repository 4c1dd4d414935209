"""One run of one check of a contract, and the violations that follow. No cell value has a place.

Source: SPEC section 14; facts on the contract monitor, 6.1 and 10.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.contract import CheckKind, ContractEnforcement
from datasource_governance.domain.rule_outcome import RuleOutcome, Status


class ViolationSeverity(StrEnum):
    """How bad a violation is, from the least to the worst."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for `info` to 3 for `critical`."""
        return [*ViolationSeverity].index(self)

    @property
    def is_breach(self) -> bool:
        """Whether the contract is broken, and not only close to it."""
        return self in (ViolationSeverity.ERROR, ViolationSeverity.CRITICAL)


class Trigger(StrEnum):
    """Why a check ran."""

    SCHEDULE = "schedule"
    MATERIALIZATION = "materialization"
    MANUAL = "manual"
    INGESTED = "ingested"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """How one field of live data differs from the contract: `removed`, `added`, `type`, `nulls`."""

    field: str
    change: str

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {"field": self.field, "change": self.change}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found in live data. What does not belong to its kind is None or empty.

    `status` is `error` where it could not be evaluated, with its `problem`, an error code.
    `used` is the whole percent of the service level that is used: 100 and more is a breach.
    `score` is the quality score. `rules` and `changes` are those that were looked at.
    """

    status: Status
    used: int | None = None
    score: float | None = None
    row_count: int | None = None
    rules: Sequence[RuleOutcome] = ()
    changes: Sequence[FieldChange] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractCheck:
    """One check as it is kept: immutable, and committed to by evidence.

    `planned_for` is the instant on the rhythm, None for a check beside it. `severity` is None where
    the contract holds. `violation` is the id of the violation that is open afterwards. `dataset` is
    what was read, as OpenLineage names it: (namespace, name).
    """

    id: str
    datasource: str
    contract: str
    contract_version: str
    contract_hash: Sha256
    kind: CheckKind
    trigger: Trigger
    planned_for: datetime | None
    started_at: datetime
    finished_at: datetime
    dataset: tuple[str, str]
    materialization: str | None
    run_id: str | None
    finding: Finding
    severity: ViolationSeverity | None
    message: str
    violation: str | None

    @property
    def status(self) -> Status:
        """Passed, failed, or error where it could not be evaluated."""
        return self.finding.status

    @property
    def is_broken(self) -> bool:
        """Whether it found the contract broken, and not only close to it."""
        return self.severity is not None and self.severity.is_breach

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.finished_at - self.started_at).total_seconds()

    def document(self) -> dict[str, Json]:
        """Return the JSON form: what is kept, and the facts of the event `contract.checked`."""
        found = self.finding
        rules: list[Json] = [_rule(rule) for rule in found.rules]
        return {
            "check": self.id,
            "contract": self.contract,
            "contract_version": self.contract_version,
            "contract_hash": self.contract_hash,
            "kind": str(self.kind),
            "trigger": str(self.trigger),
            "planned_for": self.planned_for.isoformat() if self.planned_for else None,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
            "dataset": {"namespace": self.dataset[0], "name": self.dataset[1]},
            "materialization": self.materialization,
            "run_id": self.run_id,
            "status": str(found.status),
            "severity": None if self.severity is None else str(self.severity),
            "message": self.message,
            "violation": self.violation,
            "problem": found.problem,
            "used_percent": found.used,
            "score": found.score,
            "row_count": found.row_count,
            "rules": rules,
            "changes": [change.document() for change in found.changes],
        }


def _rule(rule: RuleOutcome) -> dict[str, Json]:
    """Return a rule without row numbers, which are of one reading and for reviewers only."""
    return {
        "id": rule.id,
        "type": rule.type,
        "severity": str(rule.severity),
        "status": str(rule.status),
        "fields": list(rule.fields),
        "affected": rule.affected,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation: opened by a check, and resolved by another. At most one is open per kind.

    `enforcement` is what the contract said it does. `resolved_by` is None, too, where the contract
    is not watched any more.
    """

    id: str
    datasource: str
    contract: str
    kind: CheckKind
    severity: ViolationSeverity
    enforcement: ContractEnforcement
    message: str
    opened_by: str
    opened_at: datetime
    resolved_by: str | None = None
    resolved_at: datetime | None = None

    @property
    def is_blocking(self) -> bool:
        """Whether readers of what is current are refused because of it."""
        is_opt_in = self.enforcement is ContractEnforcement.BLOCK
        return is_opt_in and self.severity.is_breach and self.is_open

    @property
    def is_open(self) -> bool:
        """Whether nothing resolved it yet."""
        return self.resolved_at is None
