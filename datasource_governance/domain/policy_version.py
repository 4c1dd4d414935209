"""Policies as they were recorded: immutable, and resolvable from their hash for ever.

Source: SPEC section 2.4, last sentence.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from datasource_governance.domain.approval_policy import ApprovalPolicy, parse_approval_policy
from datasource_governance.domain.canonical import Json, Sha256, load_object
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.contract_document import parse_contract
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.retention_policy import RetentionPolicy, parse_retention_policy
from datasource_governance.errors import GuardError

_KEPT = 256


class PolicyKind(StrEnum):
    """The three policies of a datasource, and its contracts."""

    QUALITY = "quality"
    APPROVAL = "approval"
    RETENTION = "retention"
    CONTRACT = "contract"


POLICIES = (PolicyKind.QUALITY, PolicyKind.APPROVAL, PolicyKind.RETENTION)
"""The kinds that are policies, which have JSON documents of our own."""


class PolicySource(StrEnum):
    """Whose quality policy an output or a stage was validated by."""

    INHERITED = "inherited"
    SUPPLIED = "supplied"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """One recorded policy. `document` are the canonical bytes that `hash` is over.

    `attestation_id` says who brought it; None for one that `system` supplied with an output. What
    was supplied is a version of its own beside a declared one with the same hash.
    """

    datasource: str
    kind: PolicyKind
    hash: Sha256
    version: str | None
    document: bytes
    attestation_id: str | None
    created_at: datetime
    source: PolicySource = PolicySource.INHERITED


# By the whole version, so that one that was altered is read again, and refused.
@lru_cache(maxsize=_KEPT)
def recorded_quality_policy(version: PolicyVersion) -> QualityPolicy:
    """Return the quality policy that a recorded version holds.

    Raises:
        GuardError: code `evidence_chain_broken` when the text is not the one that was hashed.
    """
    policy = parse_quality_policy(_recorded(version))
    _check_hash(version, policy.hash)
    return policy


@lru_cache(maxsize=_KEPT)
def recorded_approval_policy(version: PolicyVersion) -> ApprovalPolicy:
    """Return the approval policy that a recorded version holds.

    Recorded is the normalised form, in which null stands for what was left out.

    Raises:
        GuardError: code `evidence_chain_broken` when the text is not the one that was hashed.
    """
    given = {name: value for name, value in _recorded(version).items() if value is not None}
    policy = parse_approval_policy(given)
    _check_hash(version, policy.hash)
    return policy


@lru_cache(maxsize=_KEPT)
def recorded_retention_policy(version: PolicyVersion) -> RetentionPolicy:
    """Return the retention policy that a recorded version holds.

    Raises:
        GuardError: code `evidence_chain_broken` when the text is not the one that was hashed.
    """
    policy = parse_retention_policy(_recorded(version))
    _check_hash(version, policy.hash)
    return policy


@lru_cache(maxsize=_KEPT)
def recorded_contract(version: PolicyVersion) -> Contract:
    """Return the contract that a recorded version holds.

    Raises:
        GuardError: code `evidence_chain_broken` when the text is not the one that was hashed.
    """
    contract = parse_contract(_recorded(version))
    _check_hash(version, contract.hash)
    return contract


def _check_hash(version: PolicyVersion, found: Sha256) -> None:
    if found != version.hash:
        raise GuardError(
            f"the {version.kind} policy {version.hash[:12]} of datasource {version.datasource!r} "
            "was altered after it was recorded; run: evidence verify",
            code="evidence_chain_broken",
        )


def _recorded(version: PolicyVersion) -> dict[str, Json]:
    return load_object(version.document)
