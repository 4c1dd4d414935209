import json
import logging

import pytest

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance_tests.builders import policy_document, rule

HALF_TESTED = policy_document(
    rule("required_fields", id="columns", fields=["id", "note"]),
    rule("not_null", id="present", field="id"),
)


def declared(tier="gold"):
    document = {
        "id": "orders",
        "kind": "static",
        "tags": {"tier": tier},
        "source": {"folder": "deliveries"},
        "governance": {"quality_policy": HALF_TESTED},
    }
    return parse_datasource(document, lambda _: b"")


@pytest.fixture
def loaded(tmp_path):
    """Load the definitions of a datasource under a manifest."""

    def load(declaration, provider="pandera", **gates):
        path = tmp_path / "platform.json"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "acme.example/v1",
                    "kind": "Manifest",
                    "metadata": {"name": "acme", "version": "1"},
                    "plugins": {
                        "data_quality": {"provider": provider, "config": {"quality_gates": gates}}
                    },
                }
            )
        )
        environment = {"GOVERNANCE_PLATFORM": str(path), "GOVERNANCE_STATE": str(tmp_path)}
        return governed_definitions([declaration], Application(read_settings(environment)))

    return load


def test_a_strict_gate_that_is_not_met_lets_no_definition_load(loaded):
    with pytest.raises(InvalidPolicyError, match="note") as caught:
        loaded(declared(), enforcement="strict")

    found = {problem.kind for problem in caught.value.problems}
    assert found == {"coverage_too_low", "required_test_missing"}
    missing = {one.names[-1] for one in caught.value.problems if one.kind != "coverage_too_low"}
    assert missing == {"unique", "relationships"}


def test_a_gate_that_warns_says_so_and_loads(loaded, caplog):
    with caplog.at_level(logging.WARNING):
        definitions = loaded(declared(), enforcement="warn")

    assert definitions.resolve_all_asset_specs()
    assert len([one for one in caplog.records if "quality gate" in one.getMessage()]) == 3


def test_a_gate_that_is_off_says_nothing(loaded, caplog):
    assert loaded(declared(), enforcement="off").resolve_all_asset_specs()
    assert not caplog.records


def test_a_gate_that_is_met_loads(loaded):
    assert loaded(declared("bronze"), enforcement="strict").resolve_all_asset_specs()


def test_a_provider_that_nobody_declares_lets_no_definition_load(loaded):
    with pytest.raises(InvalidArgumentError, match="nobody"):
        loaded(declared(), provider="nobody", enforcement="off")
