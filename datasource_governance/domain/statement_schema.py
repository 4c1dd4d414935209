"""The published JSON Schema of promotion evidence: the statement and all of its predicate.

Source: SPEC section 13; in-toto Statement v1; JSON Schema 2020-12.
"""

from datasource_governance.domain.json_schema import DIALECT, Schema
from datasource_governance.domain.policy_version import PolicyKind
from datasource_governance.domain.statement import FINGERPRINT, PREDICATE_TYPE, STATEMENT_TYPE

_TEXT: Schema = {"type": "string"}
_OPTIONAL: Schema = {"type": ["string", "null"]}
_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_OPTIONAL_DIGEST: Schema = {"anyOf": [_DIGEST, {"type": "null"}]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_PLACE: Schema = {"type": "integer", "minimum": 1}
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_OPTIONAL_INSTANT: Schema = {"anyOf": [_INSTANT, {"type": "null"}]}
_BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
_JSON: Schema = {
    "type": "string",
    "contentMediaType": "application/json",
    "description": "Canonical JSON (RFC 8785) as a text: exactly the bytes that were hashed.",
}


_PUBLISHED: dict[str, Schema] = {"publication": _TEXT, "partition": _TEXT, "artifact": _JSON}
"""What only an output of a producer has: where it is left out, there is none."""


_REFRESHED: dict[str, Schema] = {"origin": _DIGEST}
"""What only a stage of an origin has: the hash of the origin's definition."""
_ADDED = _PUBLISHED | _REFRESHED


def _object(description: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": sorted(properties.keys() - _ADDED.keys()),
        "additionalProperties": False,
    }


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_MATERIALIZATION = _object(
    "The revision that the stage became; the promotion's entry commits to all of it.",
    id=_TEXT,
    datasource=_TEXT,
    stage=_TEXT,
    revision=_PLACE,
    schema=_JSON,
    payload_fingerprint=_DIGEST,
    payload_sha256=_DIGEST,
    row_count=_COUNT,
    byte_count=_COUNT,
    provenance=_JSON,
    created_by=_TEXT,
    created_at=_INSTANT,
    **_PUBLISHED,
)
_STAGE = _object(
    "The candidate that was decided about; the entry of its creation commits to all of it.",
    id=_TEXT,
    fingerprint=_DIGEST,
    datasource=_TEXT,
    creator=_TEXT,
    attestation_id=_OPTIONAL_DIGEST,
    delivery=_TEXT,
    delivery_sha256=_DIGEST,
    schema=_JSON,
    payload_fingerprint=_DIGEST,
    payload_sha256=_DIGEST,
    row_count=_COUNT,
    byte_count=_COUNT,
    base=_OPTIONAL,
    quality_policy_hash=_DIGEST,
    approval_policy_hash=_OPTIONAL_DIGEST,
    approval_required={"type": "boolean"},
    policy_source=_TEXT,
    evaluator_version=_TEXT,
    outcome=_TEXT,
    validation=_JSON,
    validation_hash=_DIGEST,
    created_at=_INSTANT,
    **_ADDED,
)
_APPROVAL = _object(
    "The quorum that held at the promotion, with every decision that did not count and why.",
    required=_PLACE,
    approvals=_list_of(
        _object(
            "A decision that counted.",
            decision=_TEXT,
            actor=_TEXT,
            authority=_TEXT,
            reason_hash=_DIGEST,
            attestation=_DIGEST,
            decided_at=_INSTANT,
            expires_at=_OPTIONAL_INSTANT,
        )
    ),
    not_counted=_list_of(_object("A decision that did not.", decision=_TEXT, why=_TEXT)),
)
_GRANT = _object(
    "A grant that a counted decision was made under; `sequence` is its entry in `authority`.",
    grant=_TEXT,
    actor=_TEXT,
    role=_TEXT,
    datasource=_OPTIONAL,
    sequence=_PLACE,
)
_POLICY = _object(
    "A policy that the stage is bound to.",
    kind={"enum": [str(PolicyKind.QUALITY), str(PolicyKind.APPROVAL)]},
    hash=_DIGEST,
    text=_JSON,
)
_ATTESTATION = _object(
    "Who signed what: an Ed25519 signature over the bytes of `claims`.",
    id=_DIGEST,
    claims=_JSON,
    signature=_BASE64,
)
_KEY = _object(
    "A key that made one of the attestations: 32 bytes of Ed25519.",
    id=_DIGEST,
    actor=_TEXT,
    kind={"enum": ["actor", "gateway"]},
    public_key=_BASE64,
)
_ENTRY = _object(
    "One link of a chain.",
    chain=_TEXT,
    sequence=_PLACE,
    previous_hash=_DIGEST,
    kind=_TEXT,
    subject=_TEXT,
    at_microseconds={"type": "integer"},
    body=_JSON,
    entry_hash=_DIGEST,
)
_PREDICATE = _object(
    "What proves the promotion.",
    tenant=_TEXT,
    materialization=_MATERIALIZATION,
    stage=_STAGE,
    approval={"anyOf": [_APPROVAL, {"type": "null"}]},
    grants=_list_of(_GRANT),
    policies=_list_of(_POLICY),
    attestations=_list_of(_ATTESTATION),
    keys=_list_of(_KEY),
    authority=_list_of(_ENTRY),
    evidence={**_list_of(_ENTRY), "minItems": 2},
)


def statement_schema() -> Schema:
    """Return the JSON Schema of the in-toto statement about a promotion."""
    digests: Schema = {
        "type": "object",
        "properties": {"sha256": _DIGEST, FINGERPRINT: _DIGEST},
        "required": ["sha256", FINGERPRINT],
        "additionalProperties": False,
    }
    payload = _object(
        "The payload: the SHA-256 of its stored bytes, and the fingerprint of its content.",
        name=_TEXT,
        digest=digests,
    )
    return {
        "$schema": DIALECT,
        "$id": PREDICATE_TYPE,
        "title": "promotion evidence",
        **_object(
            "An in-toto statement about the payload of a materialization.",
            _type={"const": STATEMENT_TYPE},
            subject={**_list_of(payload), "minItems": 1, "maxItems": 1},
            predicateType={"const": PREDICATE_TYPE},
            predicate=_PREDICATE,
        ),
    }
