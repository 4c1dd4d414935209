"""A data contract: what consumers of a datasource are promised, and how it is watched.

Contracts are Open Data Contract Standard documents; this is what the product makes of one. It says
what to check and never how: that is the quality provider's.

Source: SPEC section 14; Open Data Contract Standard 3.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema


class CheckKind(StrEnum):
    """What is looked at between deliveries."""

    FRESHNESS = "freshness"
    SCHEMA_DRIFT = "schema_drift"
    QUALITY = "quality"
    AVAILABILITY = "availability"


class ContractStatus(StrEnum):
    """Where a contract is in its life; only an active or deprecated one is watched."""

    PROPOSED = "proposed"
    DRAFT = "draft"
    ACTIVE = "active"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


class ContractEnforcement(StrEnum):
    """What a violation does.

    `off`: nothing is checked. `warn`: it is shown as a warning, and nobody is told. `alert_only`:
    it is shown and told. `block`: readers of what is current are refused, too, while a violation
    of severity `error` or `critical` is open.
    """

    OFF = "off"
    WARN = "warn"
    ALERT_ONLY = "alert_only"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often one kind of check runs, and how long it may take."""

    interval: timedelta
    timeout_seconds: int


DEFAULT_RHYTHMS: Final[Mapping[CheckKind, Rhythm]] = MappingProxyType(
    {
        CheckKind.FRESHNESS: Rhythm(interval=timedelta(minutes=15), timeout_seconds=30),
        CheckKind.SCHEMA_DRIFT: Rhythm(interval=timedelta(minutes=60), timeout_seconds=30),
        CheckKind.QUALITY: Rhythm(interval=timedelta(minutes=360), timeout_seconds=300),
        CheckKind.AVAILABILITY: Rhythm(interval=timedelta(minutes=5), timeout_seconds=30),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevels:
    """What is promised; None is not promised, and not checked.

    `freshness`: the oldest that data may be. `freshness_field`: the field whose latest instant says
    how old a table is; what is current is as old as its materialization, whatever this says.
    `availability`: percent of the checks of a day that must find the data. `quality`: the lowest
    score, 0 to 100.
    """

    freshness: timedelta | None = None
    freshness_field: str | None = None
    availability: float = 99.9
    quality: float = 70.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractTable:
    """A table outside the product. `url_variable` is the environment variable with its URL."""

    url_variable: str
    table: str
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One version of a contract about a datasource.

    `schema` is what is promised of fields: their types and whether nulls may be in them; a field of
    type `unknown` promises no type. `quality_policy` has the promised rules about rows, None where
    there are none. `table` is read instead of what is current, where one is named. `canonical` are
    the bytes of the whole ODCS document, and `hash` is over them.
    """

    id: str
    version: str
    status: ContractStatus
    name: str | None
    description: str | None
    owners: tuple[str, ...]
    schema: TableSchema
    quality_policy: QualityPolicy | None
    service_levels: ServiceLevels
    rhythms: Mapping[CheckKind, Rhythm]
    enforcement: ContractEnforcement
    table: ContractTable | None
    end_of_support: date | None
    end_of_life: date | None
    canonical: bytes
    hash: Sha256

    @property
    def kinds(self) -> tuple[CheckKind, ...]:
        """The checks that are run: those that something is promised about."""
        if self.enforcement is ContractEnforcement.OFF or not self.is_watched:
            return ()
        promised = {
            CheckKind.FRESHNESS: self.service_levels.freshness is not None,
            CheckKind.SCHEMA_DRIFT: bool(self.schema.fields),
            CheckKind.QUALITY: self.quality_policy is not None,
            CheckKind.AVAILABILITY: True,
        }
        return tuple(kind for kind, is_promised in promised.items() if is_promised)

    @property
    def is_watched(self) -> bool:
        """Whether the contract is in force for consumers."""
        return self.status in (ContractStatus.ACTIVE, ContractStatus.DEPRECATED)
