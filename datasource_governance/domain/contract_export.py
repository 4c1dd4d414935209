"""A quality policy as a document of the Open Data Contract Standard, and a contract as a policy.

Source: SPEC section 14; Open Data Contract Standard 3.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from datasource_governance.domain.canonical import Json, load_object
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.contract_fields import LOGICAL_TYPES
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.rules import (
    FieldRule,
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RowCountRule,
    Rule,
    UniqueRule,
)
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import InvalidPolicyError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractName:
    """What the contract is called that a policy becomes, and the table that it is about."""

    id: str
    version: str
    table: str


def contract_of_policy(policy: QualityPolicy, name: ContractName) -> dict[str, Json]:
    """Return a draft of a contract that promises what a policy asks for.

    Service levels are left for its author.

    Raises:
        InvalidPolicyError: with every rule that the standard has no words for: a range of severity
            `warning` or that refuses nulls only where its field may have them, and codes that
            nulls violate.
    """
    problems = [*_unsayable(policy.rules)]
    if problems:
        raise InvalidPolicyError("the policy as a contract", problems)
    fields = dict.fromkeys(field for rule in policy.rules for field in rule.fields)
    table: dict[str, Json] = {
        "name": name.table,
        "properties": [_property(field, policy.rules) for field in fields],
    }
    if quality := [one for rule in policy.rules if (one := _of_table(rule))]:
        table["quality"] = [*quality]
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": name.id,
        "version": name.version,
        "status": "draft",
        "schema": [table],
    }


def policy_of_contract(contract: Contract) -> dict[str, Json]:
    """Return a quality policy that lets nothing become current that a contract does not promise.

    Fields must exist and have their types; then come the rules about rows, under their own ids.
    """
    fields = contract.schema.fields
    names: list[Json] = [field.name for field in fields]
    rules: list[Json] = [{"id": "fields", "type": "required_fields", "fields": names}]
    for field in fields:
        if field.type is not DataType.UNKNOWN:
            kind = {"type": "field", "field": field.name, "data_type": str(field.type)}
            rules.append({"id": f"{field.name}.type", **kind})
    if contract.quality_policy is not None:
        authored = load_object(contract.quality_policy.canonical)["rules"]
        rules += authored if isinstance(authored, list) else []
    return {"version": contract.version, "rules": rules}


def _unsayable(rules: Iterable[Rule]) -> Iterable[Problem]:
    kept = [*rules]
    refusing = {field for rule in kept if isinstance(rule, NotNullRule) for field in rule.fields}
    for rule in kept:
        if not isinstance(rule, RangeRule | ReferentialRule):
            continue
        if isinstance(rule, RangeRule) and str(rule.severity) != "error":
            yield _problem(rule, "bounds of a type are promised, never only wished for")
        if not rule.allow_null and rule.field not in refusing:
            yield _problem(rule, "a null breaks no bound; add a rule `not_null` for the field")


def _problem(rule: Rule, why: str) -> Problem:
    message = f"rule {rule.id!r} has no words in the standard: {why}"
    return Problem(kind="unsupported", names=(rule.id,), message=message)


def _property(field: str, rules: Iterable[Rule]) -> dict[str, Json]:
    own = [rule for rule in rules if field in rule.fields]
    found: dict[str, Json] = {"name": field}
    quality: list[Json] = []
    for rule in own:
        if isinstance(rule, FieldRule):
            found |= _declared(rule)
        elif isinstance(rule, RangeRule):
            bounds = {"minimum": rule.minimum, "maximum": rule.maximum}
            found["logicalTypeOptions"] = {k: v for k, v in bounds.items() if v is not None}
            found.setdefault("logicalType", "number")
        elif isinstance(rule, ReferentialRule):
            codes: list[Json] = [*rule.allowed_values]
            quality.append(_metric(rule, "invalidValues", {"validValues": codes}))
        elif isinstance(rule, NotNullRule) and len(rule.fields) == 1:
            quality.append(_metric(rule, "nullValues"))
    return found | ({"quality": quality} if quality else {})


def _declared(rule: FieldRule) -> dict[str, Json]:
    named = LOGICAL_TYPES.get(rule.data_type) if rule.data_type else None
    return {
        **({"logicalType": named} if named else {}),
        **({"required": True} if rule.nullable is False else {}),
    }


def _of_table(rule: Rule) -> dict[str, Json] | None:
    """Return what is promised of rows or of several fields together."""
    if isinstance(rule, RowCountRule):
        return _rows(rule)
    if isinstance(rule, UniqueRule):
        return _metric(rule, "duplicateValues", {"properties": [*rule.fields]})
    if isinstance(rule, NotNullRule) and len(rule.fields) > 1:
        return _metric(rule, "nullValues", {"properties": [*rule.fields]})
    return None


def _rows(rule: RowCountRule) -> dict[str, Json]:
    told: dict[str, Json] = {"id": rule.id, "metric": "rowCount", "severity": str(rule.severity)}
    if rule.minimum is not None and rule.maximum is not None and rule.minimum != rule.maximum:
        return {**told, "mustBeBetween": [rule.minimum, rule.maximum]}
    if rule.minimum == rule.maximum:
        return {**told, "mustBe": rule.minimum}
    if rule.minimum is not None:
        return {**told, "mustBeGreaterOrEqualTo": rule.minimum}
    return {**told, "mustBeLessOrEqualTo": rule.maximum}


def _metric(rule: Rule, metric: str, arguments: dict[str, Json] | None = None) -> dict[str, Json]:
    return {
        "id": rule.id,
        "metric": metric,
        "mustBe": 0,
        "severity": str(rule.severity),
        **({"arguments": arguments} if arguments else {}),
    }
