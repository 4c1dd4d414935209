"""A promotion's evidence as an in-toto statement that can be verified without any server.

The statement is about the payload. Its predicate holds the links of the chain from the stage's
first entry to its promotion, and what these commit to: the stage, the materialization, policies
and validation by their canonical texts, every attestation with the key that made it, and the
entries of the tenant's chain that gave those keys and actors their authority, back to the first
administrator. Texts that are hashed or signed travel as texts, so that a verifier needs SHA-256,
Ed25519 and JSON, and no canonical form.

Source: SPEC section 13 ("exports as an in-toto statement in a DSSE envelope"); in-toto Statement
v1. `statement_schema` says the form.
"""

import base64
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from datasource_governance.domain.attestation import ActorKey, Attestation
from datasource_governance.domain.canonical import Json, canonical_bytes, load_canonical
from datasource_governance.domain.evidence import Entry, microseconds
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.policy_version import PolicyVersion
from datasource_governance.domain.stage import Stage

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:datasource-governance:promotion-evidence:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
FINGERPRINT = "datasourceGovernancePayloadV1"
"""Name of the digest that is the payload's fingerprint, beside that of its bytes."""
_MOVES = ("state", "disposition")
"""What later transitions change, so that no statement about a promotion can hold it."""
_ADDED = ("publication", "partition", "artifact", "origin")
"""What only an output of a producer, or a stage of an origin, has; null counts as no column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEvidence:
    """Everything that proves one promotion. `authority` are entries of the tenant's chain."""

    tenant: str
    materialization: Materialization
    stage: Stage
    policies: tuple[PolicyVersion, ...]
    segment: tuple[Entry, ...]
    authority: tuple[Entry, ...]
    attestations: tuple[Attestation, ...]
    keys: tuple[ActorKey, ...]

    def payload(self) -> bytes:
        """Return the canonical bytes of the statement, which are signed."""
        return canonical_bytes(self.statement())

    def statement(self) -> dict[str, object]:
        """Return the in-toto statement."""
        made = self.materialization
        return {
            "_type": STATEMENT_TYPE,
            "subject": [
                {
                    "name": f"{made.datasource}/{made.id}",
                    "digest": {
                        "sha256": made.payload_sha256,
                        FINGERPRINT: made.payload_fingerprint,
                    },
                }
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": self._predicate(),
        }

    def _predicate(self) -> dict[str, object]:
        approval = provenance_of(self.materialization)["approval"]
        return {
            "tenant": self.tenant,
            "materialization": _columns(self.materialization),
            "stage": {
                **_columns(self.stage),
                "fingerprint": self.stage.fingerprint(self.tenant),
            },
            "approval": None if isinstance(approval, str) else approval,
            "grants": list(self._grants(approval)),
            "policies": [
                {"kind": str(one.kind), "hash": one.hash, "text": one.document.decode()}
                for one in self.policies
            ],
            "attestations": [
                {
                    "id": one.id,
                    "claims": one.claims.signed_bytes().decode(),
                    "signature": base64.b64encode(one.signature).decode(),
                }
                for one in self.attestations
            ],
            "keys": [
                {
                    "id": key.id,
                    "actor": key.actor,
                    "kind": str(key.kind),
                    "public_key": base64.b64encode(key.public_key).decode(),
                }
                for key in self.keys
            ],
            "authority": [_entry(entry) for entry in self.authority],
            "evidence": [_entry(entry) for entry in self.segment],
        }

    def _grants(self, approval: Json) -> Iterator[dict[str, Json]]:
        """Yield the grants that the counted approvals were made under, as the chain has them."""
        approvals = approval["approvals"] if isinstance(approval, dict) else []
        counted = {one["authority"] for one in approvals}  # type: ignore[union-attr,index,call-overload]  # as Quorum.document spells it
        for entry in self.authority:
            facts = _facts(entry)
            if facts.get("grant") in counted and entry.kind == "actor.granted":
                given = {name: facts[name] for name in ("grant", "actor", "role", "datasource")}
                yield {**given, "sequence": entry.sequence}


def _facts(entry: Entry) -> dict[str, Json]:
    body = load_canonical(entry.body)
    facts = body.get("facts") if isinstance(body, dict) else None
    return facts if isinstance(facts, dict) else {}


def _columns(row: Stage | Materialization) -> dict[str, object]:
    """Return the columns of a row that never change, of which evidence has the digest."""
    return {
        name: _text(value)
        for name, value in asdict(row).items()
        if name not in _MOVES and (value or name not in _ADDED)
    }


def _text(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def _entry(entry: Entry) -> dict[str, object]:
    return {
        "chain": entry.chain,
        "sequence": entry.sequence,
        "previous_hash": entry.previous_hash,
        "kind": entry.kind,
        "subject": entry.subject,
        "at_microseconds": microseconds(entry.at),
        "body": entry.body.decode(),
        "entry_hash": entry.entry_hash,
    }
