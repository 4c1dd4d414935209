"""PLACEHOLDER until the real reader is there: overwrite this file."""

from datetime import timedelta

from datasource_governance.domain.canonical import canonical_bytes, digest
from datasource_governance.domain.contract import *  # noqa: F403
from datasource_governance.domain.contract import (
    DEFAULT_RHYTHMS, Contract, ContractEnforcement, ContractStatus, ServiceLevels, CheckKind, Rhythm, ContractTable
)
from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.domain.quality_policy import parse_quality_policy

_U = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_contract(document):
    custom = {one["property"]: one["value"] for one in document.get("customProperties", [])}
    sla = {one["property"]: one for one in document.get("slaProperties", [])}
    rhythms = dict(DEFAULT_RHYTHMS)
    for kind, given in custom.get("monitor", {}).items():
        was = rhythms[CheckKind(kind)]
        rhythms[CheckKind(kind)] = Rhythm(
            interval=timedelta(minutes=given["interval_minutes"]) if "interval_minutes" in given else was.interval,
            timeout_seconds=given.get("timeout_seconds", was.timeout_seconds))
    props = document["schema"][0].get("properties", [])
    latency = sla.get("latency")
    rules = [{"id": f"{p['name']}.required", "type": "not_null", "fields": [p["name"]]} for p in props if p.get("required")]
    body = canonical_bytes(document)
    return Contract(
        id=document["id"], version=document["version"], status=ContractStatus(document["status"]), name=None,
        description=None, owners=(),
        schema=TableSchema.of(Field(name=p["name"], type=DataType(p.get("logicalType", "unknown")), nullable=not p.get("required", False)) for p in props),
        quality_policy=parse_quality_policy({"version": document["version"], "rules": rules}) if rules else None,
        service_levels=ServiceLevels(
            freshness=timedelta(seconds=latency["value"] * _U[latency["unit"]]) if latency else None,
            freshness_field=(latency or {}).get("element"),
            availability=sla.get("availability", {}).get("value", 99.9), quality=sla.get("quality", {}).get("value", 70)),
        rhythms=rhythms, enforcement=ContractEnforcement(custom.get("enforcement", "alert_only")),
        table=ContractTable(**custom["table"]) if "table" in custom else None, end_of_support=None, end_of_life=None,
        document=body, hash=digest("datasource_governance/contract/v1", body))
