"""Contracts for tests, as short as they can be."""

from datetime import timedelta

from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.contract import (
    DEFAULT_RHYTHMS,
    Contract,
    ContractEnforcement,
    ContractStatus,
    ServiceLevels,
)
from datasource_governance.domain.schema import DataType, Field, TableSchema

PROMISED = TableSchema.of([Field(name="id", type=DataType.INTEGER, nullable=False)])


def contract(**given):
    """A contract about orders with these attributes instead of the usual ones."""
    usual = {
        "id": "orders",
        "version": "1.0.0",
        "status": ContractStatus.ACTIVE,
        "name": None,
        "description": None,
        "owners": (),
        "schema": PROMISED,
        "quality_policy": None,
        "service_levels": ServiceLevels(freshness=timedelta(hours=24), quality=80),
        "rhythms": DEFAULT_RHYTHMS,
        "enforcement": ContractEnforcement.ALERT_ONLY,
        "table": None,
        "end_of_support": None,
        "end_of_life": None,
        "canonical": canonical_bytes({}),
        "hash": Sha256("0" * 64),
    }
    return Contract(**usual | given)


def odcs(**given):
    """An ODCS document about orders with these keys instead of the usual ones."""
    usual = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": "orders",
        "version": "1.0.0",
        "status": "active",
        "schema": [
            {
                "name": "orders",
                "properties": [{"name": "id", "logicalType": "integer", "required": True}],
            }
        ],
        "slaProperties": [
            {"property": "latency", "value": 24, "unit": "h"},
            {"property": "quality", "value": 80},
        ],
    }
    return usual | given


def monitored(enforcement="alert_only", **rhythms):
    """The custom properties of a contract with an enforcement, and minutes by kind of check."""
    told = {kind: {"interval_minutes": minutes} for kind, minutes in rhythms.items()}
    return [
        {"property": "enforcement", "value": enforcement},
        {"property": "monitor", "value": told},
    ]
