"""`evidence produce` and `evidence schema`: a producer's document, without any server."""

import json

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.artifact import StoredArtifact
from datasource_governance.domain.producer_evidence import judge_evidence, parse_producer_evidence
from datasource_governance_tests.builders import policy_document, quality_policy, rule

RULES = (rule("unique", id="unique", field="id"), rule(id="rows"))


@pytest.fixture
def files(tmp_path):
    """An artifact with a duplicate and a policy that finds it."""
    pq.write_table(pa.table({"id": [1, 1, 2]}), tmp_path / "made.parquet")
    (tmp_path / "policy.json").write_text(json.dumps(policy_document(*RULES)))
    return tmp_path / "made.parquet", "--policy", tmp_path / "policy.json"


def test_a_failed_rule_is_evidence_too(command, files):
    answer = command("evidence", "produce", *files)

    assert (answer.code, answer.err) == (0, "")
    evidence = parse_producer_evidence(answer.out)
    made = StoredArtifact(
        backend="local", locator="x", sha256=evidence.artifact_sha256, byte_count=0
    )
    assert judge_evidence(evidence, quality_policy(*RULES), made) == "failed"


def test_evidence_is_written_to_a_new_file_and_never_over_one(command, files, tmp_path):
    out = tmp_path / "evidence.json"

    first = command("evidence", "produce", *files, "--out", out)
    second = command("evidence", "produce", *files, "--out", out, "--json")

    assert (first.code, second.code) == (0, 2)
    assert parse_producer_evidence(out.read_bytes()).artifact_sha256 in first.out


def test_a_file_that_is_no_artifact_is_refused(command, files, tmp_path):
    (tmp_path / "made.csv").write_text("id\n1\n")

    assert command("evidence", "produce", tmp_path / "made.csv", *files[1:]).code == 2
    assert command("evidence", "produce", tmp_path / "gone.parquet", *files[1:]).code == 3


def test_the_schema_of_the_document_is_printed_and_fits_it(command, files):
    schema = json.loads(command("evidence", "schema", "--kind", "producer", "--json").out)

    jsonschema.validate(json.loads(command("evidence", "produce", *files).out), schema)
    assert json.loads(command("evidence", "schema", "--json").out)["title"] == "promotion evidence"
