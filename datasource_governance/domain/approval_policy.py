"""Approval policies: who must agree before a stage is promoted, and for how long that holds.

Source: SPEC section 2.2 and 2.4; acceptance decision POLICY_STRICT.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from datasource_governance.domain.canonical import Sha256, canonical_bytes, digest
from datasource_governance.domain.policy_keys import (
    POLICY_REF,
    VERSION,
    Key,
    Record,
    read_document,
)
from datasource_governance.domain.policy_values import Flag, Whole

HASH_DOMAIN = "datasource_governance/approval_policy/v1"
MAXIMUM_HOURS = 24_000_000
"""Some 2,700 years: an expiry stays an instant that can be computed and stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """An approval policy, defaults filled in.

    `expires_after_hours` counts from the decision; without it decisions do not age. `canonical` are
    the bytes of the normalised form, all six keys, which are hashed and kept.
    """

    version: str
    required: bool
    required_approvals: int
    separation_of_duties: bool
    expires_after_hours: int | None
    policy_ref: str | None
    canonical: bytes
    hash: Sha256


def parse_approval_policy(document: str | bytes | Mapping[str, object]) -> ApprovalPolicy:
    """Read an approval policy from JSON text, bytes or an already strictly parsed object.

    The hash covers the normalised form: a default is the same whether it is written or left out.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer.
    """
    return read_document(APPROVAL_POLICY, document, what="approval policy")


def _normalised(
    *,
    version: str,
    required: bool,
    required_approvals: int,
    separation_of_duties: bool,
    expires_after_hours: int | None,
    policy_ref: str | None,
) -> ApprovalPolicy:
    canonical = canonical_bytes(
        {
            "version": version,
            "required": required,
            "required_approvals": required_approvals,
            "separation_of_duties": separation_of_duties,
            "expires_after_hours": expires_after_hours,
            "policy_ref": policy_ref,
        }
    )
    return ApprovalPolicy(
        version=version,
        required=required,
        required_approvals=required_approvals,
        separation_of_duties=separation_of_duties,
        expires_after_hours=expires_after_hours,
        policy_ref=policy_ref,
        canonical=canonical,
        hash=digest(HASH_DOMAIN, canonical),
    )


APPROVAL_POLICY = Record(
    keys=(
        VERSION,
        Key("required", Flag(), required=True),
        Key("required_approvals", Whole(minimum=1), default=1),
        Key("separation_of_duties", Flag(), default=True),
        Key("expires_after_hours", Whole(minimum=1, maximum=MAXIMUM_HOURS)),
        POLICY_REF,
    ),
    build=_normalised,
)
"""The keys of an approval policy."""
