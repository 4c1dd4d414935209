"""Retention policies: after how many days what may be destroyed. Silence means for ever.

Source: SPEC section 2.3 and 2.4; acceptance decision POLICY_STRICT.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from datasource_governance.domain.canonical import Sha256, digest
from datasource_governance.domain.policy_keys import (
    POLICY_REF,
    VERSION,
    Key,
    Record,
    read_document,
)
from datasource_governance.domain.policy_values import Flag, Whole

HASH_DOMAIN = "datasource_governance/retention_policy/v1"
MAXIMUM_DAYS = 1_000_000
"""Some 2,700 years: an eligibility instant stays one that can be computed and stored."""

_DAYS = Whole(minimum=1, maximum=MAXIMUM_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """A retention policy as authored. `canonical` are the bytes that are hashed and kept.

    Days are of 24 hours, in UTC, from creation. A class without days is kept for ever, and nothing
    is due unless `enabled`. `version` is None only for the empty policy `{}`.
    """

    version: str | None
    enabled: bool
    stage_days: int | None
    materialization_days: int | None
    frozen_evidence_days: int | None
    policy_ref: str | None
    canonical: bytes
    hash: Sha256


def parse_retention_policy(document: str | bytes | Mapping[str, object]) -> RetentionPolicy:
    """Read a retention policy from JSON text, bytes or an already strictly parsed object.

    The hash covers the document as authored; `{}` is legal, deletes nothing and has a hash too.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer.
    """
    return read_document(RETENTION_POLICY, document, what="retention policy")


RETENTION_POLICY = Record(
    keys=(
        VERSION,
        Key("enabled", Flag(), default=False),
        Key("stage_days", _DAYS),
        Key("materialization_days", _DAYS),
        Key("frozen_evidence_days", _DAYS),
        POLICY_REF,
    ),
    build=lambda canonical, **values: RetentionPolicy(
        canonical=canonical, hash=digest(HASH_DOMAIN, canonical), **values
    ),
    keeps_bytes=True,
    may_be_empty=True,
)
"""The keys of a retention policy."""
