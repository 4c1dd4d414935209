import json
from pathlib import Path

import pytest

from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError
from datasource_governance.evaluation.artifacts import ArtifactReader
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.quality.evaluators import ProviderArtifactReader, ProviderEvaluator
from datasource_governance.quality.platform import Platform
from datasource_governance.quality.providers.soda import SodaPlugin


@pytest.fixture
def platform(tmp_path):
    """Write a manifest with a provider; return its platform."""

    def written(provider, **config):
        path = tmp_path / f"{provider}{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(manifest(provider, **config)))
        return Platform(path)

    return written


def manifest(provider, **config):
    return {
        "apiVersion": "acme.example/v1",
        "kind": "Manifest",
        "metadata": {"name": "acme", "version": "1"},
        "plugins": {"data_quality": {"provider": provider, "config": config}},
    }


def test_without_a_manifest_evaluation_is_native_and_bound_to_nothing():
    native = Platform(None)

    assert (native.manifest, native.appraisal) == (None, None)
    assert native.evaluator_version == EVALUATOR_VERSION
    assert type(native.evaluator()) is PanderaEvaluator
    assert type(native.artifact_evaluator()) is ArtifactReader


def test_one_line_of_the_manifest_switches_the_provider(platform):
    native, soda = platform("pandera"), platform("soda", timeout_seconds=77)

    assert type(native.evaluator()) is PanderaEvaluator
    assert isinstance(soda.plugin, SodaPlugin)
    assert soda.plugin.configuration.timeout_seconds == 77
    assert isinstance(soda.evaluator(), ProviderEvaluator)
    assert isinstance(soda.artifact_evaluator(), ProviderArtifactReader)
    assert soda.evaluator().provider.name == "soda"
    assert native.evaluator().provider.name == "pandera"
    assert len({native.evaluator_version, soda.evaluator_version, EVALUATOR_VERSION}) == 3


def test_another_configuration_is_another_evaluator(platform):
    first, other = platform("pandera"), platform("pandera", thresholds={"min_score": 80})

    assert first.evaluator_version != other.evaluator_version


def test_a_provider_that_nobody_declares_is_refused(platform):
    with pytest.raises(InvalidArgumentError, match="pandera") as caught:
        _ = platform("nobody").plugin

    assert caught.value.code == "provider_unknown"


def test_a_manifest_that_is_not_there_is_refused():
    with pytest.raises(InvalidPolicyError):
        _ = Platform(Path("nowhere.json")).manifest
