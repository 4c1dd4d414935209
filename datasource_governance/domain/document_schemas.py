"""JSON Schemas of the documents that producers send, made from the tables that read them.

Source: SPEC section 10; JSON Schema 2020-12.
"""

from datasource_governance.domain import artifact, producer_evidence
from datasource_governance.domain.json_schema import DIALECT, Schema, json_schema
from datasource_governance.domain.policy_keys import Record


def artifact_reference_schema() -> Schema:
    """Return the JSON Schema of an artifact reference."""
    meaning = "The immutable pointer to a payload that is too large to keep inline."
    return _described(artifact.ARTIFACT_REFERENCE, "artifact reference", meaning)


def producer_evidence_schema() -> Schema:
    """Return the JSON Schema of producer evidence."""
    meaning = "What the rules of a policy found in one artifact, at the producer's."
    return _described(producer_evidence.PRODUCER_EVIDENCE, "producer evidence", meaning)


def _described(table: Record[object], title: str, meaning: str) -> Schema:
    return {
        "$schema": DIALECT,
        "$id": f"urn:datasource-governance:{title.replace(' ', '-')}:v1",
        "title": title,
        "description": meaning,
        **json_schema(table),
    }
