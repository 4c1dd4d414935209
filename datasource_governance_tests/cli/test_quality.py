"""The `quality` commands, without data, network and database but for `check`."""

import json

import pytest

from datasource_governance.cli.quality_tables import manifest_table
from datasource_governance.domain.manifest_layers import parse_platform_manifest

GOLD = {
    "id": "orders",
    "kind": "static",
    "tags": {"tier": "gold"},
    "source": {"folder": "deliveries"},
    "governance": {"quality_policy": "quality_policy.json"},
}
POLICY = {
    "version": "v1",
    "rules": [
        {"id": "columns", "type": "required_fields", "fields": ["id", "note"]},
        {"id": "unique", "type": "unique", "field": "id"},
        {"id": "note", "type": "not_null", "field": "note", "severity": "warning"},
    ],
}


def manifest(enforcement="strict", provider="pandera"):
    gates = {"enforcement": enforcement, "gold": {"required_tests": ["unique", "relationships"]}}
    return {
        "apiVersion": "acme.example/v1",
        "kind": "Manifest",
        "metadata": {"name": "acme", "version": "1"},
        "plugins": {"data_quality": {"provider": provider, "config": {"quality_gates": gates}}},
        "locked": ["plugins.data_quality.provider"],
    }


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a project with one gold datasource and a platform manifest."""
    folder = tmp_path / "datasources" / "orders"
    folder.mkdir(parents=True)
    (folder / "datasource.json").write_text(json.dumps(GOLD))
    (folder / "quality_policy.json").write_text(json.dumps(POLICY))
    (tmp_path / "rows.csv").write_text("id,note\n1,a\n1,\n2,b\n")
    monkeypatch.setenv("GOVERNANCE_DATASOURCES", str(tmp_path / "datasources"))
    monkeypatch.setenv("GOVERNANCE_PLATFORM", str(tmp_path / "platform.json"))
    monkeypatch.setenv("GOVERNANCE_STATE", str(tmp_path))

    def written(**changes):
        (tmp_path / "platform.json").write_text(json.dumps(manifest(**changes)))
        return tmp_path

    return written


def test_all_providers_are_listed_and_what_to_install_for_them(command):
    found = {one["name"]: one for one in command("quality", "providers", "--json").document}

    assert found.keys() >= {"pandera", "great_expectations", "soda", "dbt", "dbt_expectations"}
    assert found["soda"]["dialects"] == ["duckdb", "postgresql"]
    assert found["pandera"]["version"]
    assert "pandera" in command("quality", "providers").out


def test_a_strict_gate_that_is_not_met_ends_with_1_and_says_what_would_help(command, project):
    project()

    told = command("quality", "gates")
    found = command("quality", "gates", "--json")

    assert (told.code, found.code) == (1, 1)
    assert "relationships" in told.out
    assert found.document["enforcement"] == "strict"
    (problem,) = found.document["problems"]
    assert problem["kind"] == "required_test_missing"
    assert '"type":"referential"' in problem["message"]


def test_a_gate_that_warns_ends_with_0(command, project):
    project(enforcement="warn")

    assert command("quality", "gates").code == 0


def test_a_manifest_of_dbt_is_judged_in_place_of_the_declarations(command, project):
    folder = project()
    version = "https://schemas.getdbt.com/dbt/manifest/v12.json"
    document = {"metadata": {"dbt_schema_version": version}, "nodes": {}, "sources": {}}
    (folder / "manifest.json").write_text(json.dumps(document))

    found = command("quality", "gates", "--dbt-manifest", folder / "manifest.json", "--json")

    assert [one["kind"] for one in found.document["warnings"]] == ["no_datasets"]


def test_the_manifest_in_force_is_shown_with_who_set_what(command, project):
    project()

    told = command("quality", "manifest")
    found = command("quality", "manifest", "--json").document

    assert "plugins.data_quality.provider" in told.out
    assert found["plugins"]["data_quality"]["provider"] == "pandera"
    assert set(found["provenance"].values()) == {"acme"}
    assert found["locks"] == {"plugins.data_quality.provider": "acme"}


def test_without_a_manifest_there_is_none_to_show(command, monkeypatch):
    monkeypatch.delenv("GOVERNANCE_PLATFORM", raising=False)

    answer = command("quality", "manifest")

    assert answer.code == 2
    assert "GOVERNANCE_PLATFORM" in answer.err


def test_policies_are_checked_against_what_is_declared(command, project):
    folder = project()
    policy = {"version": "v1", "rules": [{"id": "n", "type": "not_null", "field": "nope"}]}
    (folder / "other.json").write_text(json.dumps(policy))

    wrong = command("quality", "config", folder / "other.json", "--json")
    right = command("quality", "config", folder / "datasources/orders/quality_policy.json")

    assert (wrong.code, right.code) == (1, 0)
    assert [one["kind"] for one in wrong.document[0]["problems"]] == ["unknown_field"]


def test_checks_of_a_file_are_run_and_scored(command, project):
    folder = project()
    policy = folder / "datasources/orders/quality_policy.json"

    told = command("quality", "check", folder / "rows.csv", "--policy", policy)
    found = command("quality", "check", folder / "rows.csv", "--policy", policy, "--json").document

    assert told.code == 1
    assert "blocked" in told.out
    affected = {one["id"]: (one["status"], one["affected"]) for one in found["checks"]}
    assert affected == {"unique": ("failed", 2), "note": ("failed", 1)}
    assert (found["score"]["value"], found["score"]["level"]) == (0, "blocked")


def test_a_value_that_has_a_path_with_points_is_shown():
    document = manifest()
    config = document["plugins"]["data_quality"]["config"]
    config["weight_classes"] = {"rule.with.points": "statistical_checks"}

    table = manifest_table(parse_platform_manifest(document))

    assert '"statistical_checks"' in [*table.columns[1].cells]
