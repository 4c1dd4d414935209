"""Policies as they were recorded: immutable, and resolvable from their hash for ever.

Source: SPEC section 2.4, last sentence.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.canonical import Sha256


class PolicyKind(StrEnum):
    """The three policies of a datasource."""

    QUALITY = "quality"
    APPROVAL = "approval"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion:
    """One recorded policy. `document` are the canonical bytes that `hash` is over."""

    datasource: str
    kind: PolicyKind
    hash: Sha256
    version: str | None
    document: bytes
    attestation_id: str
    created_at: datetime
