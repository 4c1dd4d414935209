import json

import pytest

from datasource_governance.domain.tier import Tier
from datasource_governance.errors import InvalidPolicyError
from datasource_governance.quality.manifests import MAXIMUM_LAYERS, read_platform_manifest
from datasource_governance_tests.manifests import CONFIG, SECTION, gates, manifest_document


def written(folder, name, *args, **keys):
    """Write a manifest as JSON and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(manifest_document(*args, **{"name": path.stem, **keys})))
    return path


def problems(path):
    """Return (kind, file) of every problem."""
    with pytest.raises(InvalidPolicyError) as caught:
        read_platform_manifest(path)

    assert caught.value.__context__ is None
    return [(one.kind, one.message.partition(":")[0]) for one in caught.value.problems]


DECISION = """
apiVersion: floe.dev/v1
kind: Manifest
metadata:
  name: acme-platform
  version: "1.0.0"

plugins:
  compute: snowflake
  orchestrator: dagster
  catalog: polaris

  data_quality:
    provider: great_expectations  # Single choice per platform
    config:
      quality_gates:
        bronze:
          min_test_coverage: 50%
        silver:
          min_test_coverage: 80%
          required_tests: [not_null, unique]
        gold:
          min_test_coverage: 100%
          required_tests: [not_null, unique, relationships]
      weights:
        critical_checks: 3.0
        standard_checks: 1.0
        statistical_checks: 0.5
      thresholds:
        min_score: 70.0
        warn_score: 85.0
"""


@pytest.mark.parametrize("name", ["platform.yaml", "platform.yml", "platform.YAML"])
def test_the_manifest_of_the_decision_is_read_as_it_stands(tmp_path, name):
    (tmp_path / name).write_text(DECISION)

    manifest = read_platform_manifest(tmp_path / name)

    assert (manifest.name, manifest.provider) == ("acme-platform", "great_expectations")
    assert manifest.gates[Tier.GOLD].min_test_coverage == 1
    assert len(manifest.provenance) == 11


def test_json_and_yaml_of_one_manifest_are_one(tmp_path):
    config = gates(waivers=[], gold={"min_test_coverage": "90%"})
    path = written(tmp_path, "platform.json", config)
    (tmp_path / "platform.yaml").write_bytes(path.read_bytes())

    assert read_platform_manifest(path) == read_platform_manifest(tmp_path / "platform.yaml")


def test_layers_are_found_relative_to_the_file_that_extends_them(tmp_path):
    written(tmp_path, "enterprise.json", {"timeout_seconds": 9}, provider="soda", locked=[SECTION])
    written(tmp_path, "sales/domain.json", extends="../enterprise.json", scope="domain")
    path = written(tmp_path, "sales/orders/product.json", extends="../domain.json", scope="product")

    manifest = read_platform_manifest(path)

    assert (manifest.name, manifest.provider, manifest.timeout_seconds) == ("product", "soda", 9)
    assert manifest.provenance[f"{CONFIG}.timeout_seconds"] == "enterprise"
    assert manifest.locks == {SECTION: "enterprise"}


def test_what_a_layer_loosens_is_refused(tmp_path):
    written(tmp_path, "base.json", {"thresholds": {"min_score": 80}})
    path = written(tmp_path, "top.json", {"thresholds": {"min_score": 79}}, extends="base.json")

    assert problems(path) == [
        ("loosened", f"{CONFIG}.thresholds.min_score is set by 'base'; 'top' may only raise it")
    ]


def test_a_manifest_that_extends_itself_is_refused(tmp_path):
    path = written(tmp_path, "a.json", extends="b.json")
    written(tmp_path, "b.json", extends="x/../a.json")
    (tmp_path / "x").mkdir()

    with pytest.raises(InvalidPolicyError, match=r"extends itself: a\.json → b\.json → a\.json"):
        read_platform_manifest(path)
    assert problems(written(tmp_path, "c.json", extends="c.json")) == [("cycle", "c.json")]


def test_every_problem_of_every_file_is_said_with_its_name(tmp_path):
    path = written(tmp_path, "a.json", {"timeout_seconds": 0}, extends="b.yaml", owner="me")
    written(tmp_path, "b.yaml", {"weights": {"critical_checks": 0}}, extends="missing.json")

    assert sorted(problems(path)) == [
        ("invalid_value", "a.json"),
        ("invalid_value", "b.yaml"),
        ("unknown_key", "a.json"),
        ("unreadable", "missing.json"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.json", b"{", "invalid_json"),
        ("a.json", b"kind: Manifest", "invalid_json"),
        ("a.yaml", b"a: [", "invalid_yaml"),
        ("a.json", b" " * (1024 * 1024 + 1), "invalid_value"),
        ("a.yaml", b"text", "invalid_value"),
    ],
)
def test_a_file_that_is_no_document_is_refused(tmp_path, name, content, kind):
    (tmp_path / name).write_bytes(content)

    assert problems(tmp_path / name) == [(kind, name)]


def test_a_folder_is_not_read(tmp_path):
    assert problems(tmp_path) == [("unreadable", tmp_path.name)]


def test_there_are_at_most_ten_layers(tmp_path):
    for place in range(MAXIMUM_LAYERS + 1):
        extends = {"extends": f"{place - 1}.json"} if place else {}
        written(tmp_path, f"{place}.json", **extends)

    assert read_platform_manifest(tmp_path / f"{MAXIMUM_LAYERS - 1}.json").name == "9"
    assert problems(tmp_path / f"{MAXIMUM_LAYERS}.json") == [("too_many_layers", "0.json")]
