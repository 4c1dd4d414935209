"""What is done with contracts without any database."""

import json

import pytest

from datasource_governance_tests.domain.contracts import odcs

POLICY = {"version": "v1", "rules": [{"id": "rows", "type": "row_count", "minimum": 1}]}


@pytest.fixture
def written(tmp_path):
    def write(name="contract.yaml", **given):
        path = tmp_path / name
        path.write_text(json.dumps(odcs(**given)))
        return path

    return write


def test_lint_says_what_is_watched_and_refuses_with_every_problem(command, written):
    fine = command("contract", "lint", written())
    assert (fine.code, "watches freshness" in fine.out) == (0, True)
    (told,) = command("contract", "lint", written(), "--json").document
    assert (told["version"], told["unchecked"]) == ("1.0.0", [])

    wrong = command("contract", "lint", written(version="1", status="live"))
    assert wrong.code == 2
    assert "/version" in wrong.err
    assert "/status" in wrong.err


def test_lint_names_what_is_not_checked(command, written):
    prose = {"type": "custom", "engine": "soda", "implementation": "x"}
    path = written(
        schema=[{"name": "t", "quality": [prose]}],
        customProperties=[{"property": "unchecked", "value": "accept"}],
    )
    assert "not checked: /schema/0/quality/0" in command("contract", "lint", path).out


def test_diff_ends_with_1_where_the_version_does_not_fit(command, written):
    before = written()
    tighter = [{"property": "latency", "value": 12, "unit": "h"}]
    patch = written("patch.yaml", version="1.0.1", slaProperties=tighter)
    major = written("major.yaml", version="2.0.0", slaProperties=tighter)

    assert command("contract", "diff", before, patch).code == 1
    answer = command("contract", "diff", before, major, "--json")
    assert (answer.code, answer.document["fits"], answer.document["needs"]) == (0, True, "major")
    assert "freshness was" in command("contract", "diff", before, major).out


def test_a_contract_becomes_a_policy_and_a_policy_a_contract(command, written, tmp_path):
    imported = command("contract", "import", written()).document
    assert {rule["type"] for rule in imported["rules"]} == {"required_fields", "field", "not_null"}

    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    exported = command("contract", "export", policy, "--id", "orders")
    path = tmp_path / "exported.yaml"
    path.write_text(exported.out)
    assert command("contract", "lint", path).code == 0
    assert (
        command("contract", "export", policy, "--id", "orders", "--json").document["id"] == "orders"
    )
