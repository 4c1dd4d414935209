"""The JSON Schemas of what producers send agree with what reads it."""

import jsonschema
import pytest

from datasource_governance.domain.artifact import parse_artifact_reference
from datasource_governance.domain.document_schemas import (
    artifact_reference_schema,
    producer_evidence_schema,
)
from datasource_governance.domain.producer_evidence import parse_producer_evidence
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.domain.artifacts import evidence, reference

POLICY = quality_policy(rule("unique", id="u", field="id"))
DOCUMENTS = {
    "artifact reference": (
        artifact_reference_schema,
        parse_artifact_reference,
        reference(resume_checkpoint="page 7").document(),
    ),
    "producer evidence": (
        producer_evidence_schema,
        parse_producer_evidence,
        evidence(POLICY).document(),
    ),
}
WRONG = [..., None, True, -1, 1.5, "", "x", "../x", [], {}, [{}], ["x"]]


def is_read(parse, document):
    try:
        parse(document)
    except InvalidPolicyError:
        return False
    return True


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_and_reader_agree_on_every_key_with_every_wrong_value(name):
    schema, parse, valid = DOCUMENTS[name]
    validator = jsonschema.Draft202012Validator(schema())
    jsonschema.Draft202012Validator.check_schema(schema())
    assert validator.is_valid(valid)
    for key in (*valid, "unknown"):
        for value in WRONG:
            document = {**valid, key: value}
            if value is ...:
                del document[key]

            assert validator.is_valid(document) == is_read(parse, document), (key, value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_key_says_what_it_means(name):
    schema, _, _ = DOCUMENTS[name]

    assert all(one["description"] for one in schema()["properties"].values())
    assert schema()["title"] == name
