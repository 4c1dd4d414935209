"""The present governance of one datasource: what stages and promotions are held against.

Source: SPEC sections 1 ("Datasource"), 6 and 7.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from datasource_governance.domain.canonical import Json, Sha256, canonical_bytes
from datasource_governance.domain.policy_version import PolicyVersion
from datasource_governance.domain.quality_provider import (
    EVALUATOR_VERSION,
    ProviderBinding,
    beside_native,
    evaluator_version,
)
from datasource_governance.domain.schema import TableSchema
from datasource_governance.errors import GuardError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One datasource as it stands: policies in force, current materialization, revision.

    `revision` counts the materializations that became current; it is what the current pointer is
    compared and swapped by. `promotion` is `manual` or `automatic`, `artifact_evaluation` is
    `evidence` or `here`.

    `evaluator_version` says which quality provider evaluates, in which version and configuration.
    `contracts` are the hashes of the contracts in force, by id.

    `current` is what is in force in `partition`, which is empty for a datasource without; of a
    partition, `unpartitioned` is what is in force beside all partitions.
    """

    datasource: str
    kind: str
    quality_policy_hash: Sha256 | None
    approval_policy_hash: Sha256 | None
    retention_policy_hash: Sha256 | None
    promotion: str
    current: str | None
    revision: int
    created_at: datetime
    artifact_evaluation: str = "evidence"
    allow_supplied_policy: bool = False
    evaluator_version: str = EVALUATOR_VERSION
    contracts: tuple[tuple[str, Sha256], ...] = ()
    partition: str = ""
    unpartitioned: str | None = None

    def settings(self) -> bytes:
        """Return the declared settings that guards read, as canonical bytes."""
        return canonical_bytes(
            {
                "promotion": self.promotion,
                "artifact_evaluation": self.artifact_evaluation,
                "allow_supplied_policy": self.allow_supplied_policy,
                **beside_native(self.evaluator_version),
                **beside_none(self.contracts),
            }
        )

    def moved_to(self, materialization: str) -> "Target":
        """Return it with another materialization in force, which is its next revision."""
        return replace(self, current=materialization, revision=self.revision + 1)


def beside_none(contracts: Iterable[tuple[str, Sha256]]) -> dict[str, Json]:
    """Return the hashes of contracts as a document says them: only where there are any."""
    hashes: dict[str, Json] = dict(contracts)
    return {"contracts": hashes} if hashes else {}


def check_evaluator(target: Target, provider: ProviderBinding | None) -> None:
    """Refuse to evaluate for a datasource by another provider than the one in force.

    Raises:
        GuardError: code `provider_changed`.
    """
    version = evaluator_version(provider)
    if version != target.evaluator_version:
        raise GuardError(
            f"for datasource {target.datasource!r} the evaluator {target.evaluator_version} is in "
            f"force, and this process would use {version}; read the same platform manifest "
            "(GOVERNANCE_PLATFORM) with the same provider installed, or run: datasource apply",
            code="provider_changed",
            in_force=target.evaluator_version,
            configured=version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Governance:
    """What an output is judged by: a datasource as it stands, and what that refers to.

    The policies are those in force. `schema` is of what is current in the target's partition, None
    where nothing is.
    """

    target: Target
    quality_policy: PolicyVersion | None
    approval_policy: PolicyVersion | None
    schema: TableSchema | None
