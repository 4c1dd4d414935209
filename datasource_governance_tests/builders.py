"""Values for tests: valid by default, so that a test says only what it is about."""

from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.schema import DataType, Field, TableSchema


def rule(rule_type="row_count", **keys):
    """Return a rule document; a `row_count` asks for at least one row unless told otherwise."""
    if rule_type == "row_count" and not keys.keys() & {"minimum", "maximum"}:
        keys["minimum"] = 1
    return {"id": "r", "type": rule_type, **keys}


def policy_document(*rules, **keys):
    """Return a quality policy document with these rules."""
    return {"version": "v1", "rules": list(rules), **keys}


def quality_policy(*rules, **keys):
    """Return the parsed quality policy with these rules."""
    return parse_quality_policy(policy_document(*rules, **keys))


def schema(**fields):
    """Return a schema of `name="type"`, or `name="type?"` for a nullable field, in order."""
    return TableSchema.of(
        Field(name=name, type=DataType(word.removesuffix("?")), nullable=word.endswith("?"))
        for name, word in fields.items()
    )
