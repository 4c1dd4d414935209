"""Contracts from files: YAML, held to the standard's own schema and models."""

from pathlib import Path

import pytest

import datasource_governance
from datasource_governance.contract_files import read_contract
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.domain.contracts import odcs

DEMO = Path(datasource_governance.__file__).parent / "demo" / "datasources"
YAML = b"""
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true}
slaProperties:
  - {property: endOfLife, value: 2027-06-30}
"""


def test_yaml_and_json_are_read_and_days_are_texts():
    found = read_contract(YAML)
    assert found.end_of_life.isoformat() == "2027-06-30"
    assert read_contract(canonical_bytes(odcs())).id == "orders"


def test_the_contract_of_the_demo_is_in_order():
    contract = read_contract((DEMO / "airports" / "airports.odcs.yaml").read_bytes())
    assert len(contract.kinds) == 4


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"owner": "ann"}, ""),
        ({"slaProperties": {"latency": 1}}, "/slaProperties"),
        ({"description": "text"}, "/description"),
        ({"schema": [{"name": "t", "quality": [{"metric": "rowCount"}]}]}, "/schema/0/quality/0"),
        (
            {"schema": [{"name": "t", "quality": [{"type": "text", "dimension": "beauty"}]}]},
            "/schema/0/quality/0/dimension",
        ),
    ],
)
def test_what_the_standard_refuses_is_refused_with_where_it_stands(given, pointer):
    with pytest.raises(InvalidPolicyError) as caught:
        read_contract(canonical_bytes(odcs(**given)))
    found = {(one.pointer, one.kind) for one in caught.value.problems}
    assert (pointer, "odcs_invalid") in found
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("content", [b"", b"- a", b"a: &x [1]\nb: *x", b"a: 1\na: 2", b"\xff"])
def test_what_is_no_document_is_refused(content):
    with pytest.raises(InvalidPolicyError):
        read_contract(content)
