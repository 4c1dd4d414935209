"""Evaluators that leave rules about rows to a provider, against the native evaluator."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.appraisal import Appraisal
from datasource_governance.domain.artifact import MediaType
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.quality_score import DEFAULT_WEIGHTS, Thresholds
from datasource_governance.domain.validation import Outcome, Reason, Status
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.quality.evaluators import ProviderArtifactReader, ProviderEvaluator
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.quality.providers.pandera import PanderaPlugin
from datasource_governance_tests.domain.lifecycle import sha

POLICY = parse_quality_policy(
    {
        "version": "v1",
        "rules": [
            {"id": "rows", "type": "row_count", "minimum": 2},
            {"id": "columns", "type": "required_fields", "fields": ["id", "gone"]},
            {"id": "shape", "type": "field", "field": "id", "data_type": "integer"},
            {"id": "present", "type": "not_null", "fields": ["id", "note"]},
            {"id": "absent", "type": "not_null", "field": "gone"},
            {"id": "unique", "type": "unique", "field": "id"},
        ],
    }
)
TABLE = pa.table({"id": [1, 2, 2], "note": ["a", None, "b"]})


class Failing(DataQualityPlugin):
    """Cannot run at all."""

    name = "failing"

    def run(self, target, expectations, folder):  # noqa: ARG002 - the interface's
        raise RuntimeError(str(target))


def appraisal(plugin):
    binding = ProviderBinding(name=plugin.name, version="1", configuration=sha("manifest"))
    return Appraisal(
        provider=binding,
        weights=DEFAULT_WEIGHTS,
        weight_classes={},
        thresholds=Thresholds(),
        gates=False,
    )


@pytest.fixture(scope="module")
def native():
    return PanderaEvaluator().validate(POLICY, TypedPayload(TABLE), None)


def test_a_validation_by_a_provider_is_the_native_one_but_for_who_made_it(native):
    plugin = PanderaPlugin()

    found = ProviderEvaluator(plugin, appraisal(plugin)).validate(POLICY, TypedPayload(TABLE), None)

    assert found.provider.name == "pandera"
    assert found.score.value is not None
    assert replace(found, provider=None, score=None) == native


def test_what_a_provider_cannot_evaluate_is_an_error_and_the_rest_is_native(native):
    plugin = Failing()

    found = ProviderEvaluator(plugin, appraisal(plugin)).validate(POLICY, TypedPayload(TABLE), None)

    by_id = {rule.id: rule for rule in found.rules}
    for rule_id in ("rows", "present", "absent", "unique"):
        assert by_id[rule_id].status is Status.ERROR
        assert by_id[rule_id].reason is Reason.NOT_EVALUATED
    assert [by_id["columns"], by_id["shape"]] == list(native.rules[1:3])
    assert found.fingerprint == native.fingerprint
    assert found.outcome is Outcome.BLOCKED


def written(folder: Path):
    path = folder / "rows.parquet"
    pq.write_table(TABLE, path)
    return path


def test_rows_of_an_artifact_are_handed_to_the_provider(tmp_path, native):
    plugin = PanderaPlugin()
    reader = ProviderArtifactReader(plugin, appraisal(plugin))

    with written(tmp_path).open("rb") as file:
        found = reader.validate(POLICY, file, MediaType.PARQUET, None)

    assert found.rules == native.rules
    assert found.provider.name == "pandera"


def test_of_an_artifact_that_does_not_fit_into_memory_no_rule_about_rows_is_evaluated(tmp_path):
    plugin = PanderaPlugin()
    reader = ProviderArtifactReader(plugin, appraisal(plugin), memory_bytes=1)

    with written(tmp_path).open("rb") as file:
        found = reader.validate(POLICY, file, MediaType.PARQUET, None)

    status = {rule.id: rule.status for rule in found.rules}
    assert status["unique"] is Status.ERROR
    assert status["shape"] is Status.PASSED
