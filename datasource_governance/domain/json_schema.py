r"""JSON Schemas of the policies, generated from the very tables that the parser reads.

A schema accepts whatever the parser accepts. What JSON Schema has no word for, only the parser
refuses: the text of a document (`invalid_json`, `duplicate_key`, lone surrogates, fractions of more
than 17 digits, numbers beyond double range, 1 MiB, depth 32) and what compares two values
(`bounds_reversed`, `duplicate_rule_id`). Which characters are white space is a matter of the
validator's `\s`.

Source: SPEC section 2; JSON Schema 2020-12.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

from datasource_governance.domain.approval_policy import APPROVAL_POLICY
from datasource_governance.domain.policy_keys import (
    AtLeastOne,
    Constraint,
    ExactlyOne,
    Key,
    Record,
    Tag,
    Variants,
)
from datasource_governance.domain.policy_values import (
    Bound,
    Choice,
    CodeMember,
    Flag,
    ListOf,
    Text,
    Whole,
)
from datasource_governance.domain.policy_version import PolicyKind
from datasource_governance.domain.quality_policy import QUALITY_POLICY
from datasource_governance.domain.retention_policy import RETENTION_POLICY

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TABLES: Mapping[PolicyKind, Record[object]] = {
    PolicyKind.QUALITY: QUALITY_POLICY,
    PolicyKind.APPROVAL: APPROVAL_POLICY,
    PolicyKind.RETENTION: RETENTION_POLICY,
}
"""The keys of every policy kind."""

POLICY_MEANINGS: Mapping[PolicyKind, str] = {
    PolicyKind.QUALITY: "When a delivery is good enough to use.",
    PolicyKind.APPROVAL: "Who must agree before a stage is promoted, and for how long that holds.",
    PolicyKind.RETENTION: "After how many days what may be destroyed; silence means for ever.",
}
VARIANT_MEANINGS: Mapping[str, str] = {
    "row_count": "Bounds on the number of rows.",
    "required_fields": "Fields that must exist in the detected schema.",
    "field": "The declared contract of one field.",
    "not_null": "No nulls; NaN is null.",
    "unique": "No two rows share the key.",
    "range": "Numeric bounds.",
    "referential": "Membership in a bounded code set.",
}
KEY_MEANINGS: Mapping[str, str] = {
    "version": "What the author calls this version of the policy.",
    "rules": "What is asked of a delivery, in the order in which it is reported.",
    "schema_policy": "What a change of the schema means, where it is not the default.",
    "id": "Names the rule, uniquely in this policy.",
    "type": "What kind of rule this is.",
    "severity": "A failed error rule blocks promotion, a failed warning needs review.",
    "field": "A field name, compared code point by code point.",
    "fields": "Field names, compared code point by code point.",
    "minimum": "The least that is allowed, inclusive.",
    "maximum": "The most that is allowed, inclusive.",
    "data_type": "The logical type; number accepts integer.",
    "nullable": "Whether nulls are permitted; true also declares the field nullable.",
    "ignore_nulls": "Leave out rows in which any part of the key is null.",
    "allow_null": "Whether a null passes; without it a null violates.",
    "allowed_values": 'All codes that are legal. true, 1 and "1" are three; 1 and 1.0 are one. '
    "Everyone who may read the policy sees them.",
    "field_added_nullable": "A nullable field was added; by default compatible.",
    "field_added_required": "A field without nulls was added; by default a warning.",
    "field_removed": "A field was removed; by default breaking.",
    "type_widened": "Integer became number, or unknown any type; by default compatible.",
    "type_changed": "The type changed in any other way; by default breaking.",
    "nullability_relaxed": "A field became nullable; by default breaking.",
    "nullability_tightened": "A field is no longer nullable; by default compatible.",
    "field_order_changed": "Fields changed their order; by default a warning.",
    "required": "Whether approval is needed at all.",
    "required_approvals": "How many actors must approve.",
    "separation_of_duties": "Whether the creator of a stage may not approve it.",
    "expires_after_hours": "How long a decision counts; without it decisions do not age.",
    "policy_ref": "Where the policy is agreed outside of this system; shown, never followed.",
    "enabled": "Whether anything may become due.",
    "stage_days": "Days after which a stage may be deleted; without it, never.",
    "materialization_days": "Days after which a payload may be purged; without it, never.",
    "frozen_evidence_days": "Days after which frozen evidence may be purged; without it, never.",
}
"""What policies, rule types and keys mean, in a sentence each, for people in an editor."""


def policy_schema(kind: PolicyKind) -> Schema:
    """Return the JSON Schema of a policy kind."""
    table = TABLES[kind]
    return {
        "$schema": DIALECT,
        "$id": f"urn:datasource-governance:{kind}-policy:v1",
        "title": f"{kind} policy",
        "description": POLICY_MEANINGS[kind],
        **json_schema(table),
    }


@singledispatch
def json_schema(kind: object) -> Schema:
    """Return what JSON Schema can say of a kind of value.

    Raises:
        TypeError: for a kind that no policy has.
    """
    raise TypeError(f"{type(kind).__name__} has no JSON Schema")


@json_schema.register
def _flag(_kind: Flag) -> Schema:
    return {"type": "boolean"}


@json_schema.register
def _whole(kind: Whole) -> Schema:
    highest = {} if kind.maximum is None else {"maximum": kind.maximum}
    return {"type": "integer", "minimum": kind.minimum, **highest}


@json_schema.register
def _bound(_kind: Bound) -> Schema:
    return {"type": "number"}


@json_schema.register
def _text(kind: Text) -> Schema:
    # A character has a byte at least.
    most = kind.maximum_bytes if kind.maximum is None else kind.maximum
    longest = {} if most is None else {"maxLength": most}
    # Not a pattern that ends in $: some validators let it match before a line feed.
    refused = r"\u0000" if kind.allows_control_characters else r"[\u0000-\u001F\u007F-\u009F]"
    return {
        "type": "string",
        "pattern": f"^(?:{kind.pattern})$",
        **longest,
        "not": {"type": "string", "pattern": refused},
    }


@json_schema.register
def _code_member(_kind: CodeMember) -> Schema:
    no_text = {"type": ["number", "boolean"]}
    text = Text(expected="", pattern=r"[\s\S]*", allows_control_characters=True)
    return {"anyOf": [json_schema(text), no_text]}


@json_schema.register(Choice)
def _choice(kind: Choice) -> Schema:  # type: ignore[type-arg]  # of whatever enumeration
    return {"enum": [str(member) for member in kind.members]}


@json_schema.register(ListOf)
def _list_of(kind: ListOf[object]) -> Schema:
    schema: Schema = {"type": "array", "items": json_schema(kind.item)}
    if kind.minimum:
        schema["minItems"] = kind.minimum
    if kind.maximum is not None:
        schema["maxItems"] = kind.maximum
    if kind.repeated is not None and kind.distinct_by is None:
        schema["uniqueItems"] = True
    return schema


@json_schema.register(Record)
def _record(kind: Record[object]) -> Schema:
    required = [key.name for key in kind.keys if key.required]
    return {
        "type": "object",
        "properties": {key.name: _property(key) for key in kind.keys},
        **({"anyOf": [{"maxProperties": 0}, {"required": required}]} if kind.may_be_empty else {}),
        **({"required": required} if required and not kind.may_be_empty else {}),
        **_constraints(kind.constraints),
        "additionalProperties": False,
    }


def _property(key: Key) -> Schema:
    meaning = key.meaning or KEY_MEANINGS[key.name]
    schema = {"description": f"{meaning} Expected: {key.kind.expected}."}
    # A list or mapping as a default means that there is nothing; so does None.
    default = {"default": key.default} if isinstance(key.default, (bool, int, str)) else {}
    return {**schema, **json_schema(key.kind), **default}


def _constraints(constraints: tuple[Constraint, ...]) -> Schema:
    schemas = [
        {word: [{"required": [key]} for key in constraint.keys]}
        for constraint in constraints
        for kind, word in ((AtLeastOne, "anyOf"), (ExactlyOne, "oneOf"))
        if isinstance(constraint, kind)
    ]
    return {"allOf": schemas} if schemas else {}


@json_schema.register(Variants)
def _variants(kind: Variants[object]) -> Schema:
    tag = Key(kind.by, Tag(tuple(kind.records), kind.unknown), required=True)
    return {
        "type": "object",
        # Says it before any variant is tried, which is what editors complete from.
        "required": [kind.by],
        "properties": {kind.by: _property(tag)},
        "oneOf": [_variant(kind, name) for name in kind.records],
    }


def _variant(kind: Variants[object], name: str) -> Schema:
    record = kind.records[name]
    tag = Key(kind.by, Tag((name,), kind.unknown), required=True)
    tagged = json_schema(replace(record, keys=(tag, *record.keys)))
    return {"title": name, "description": VARIANT_MEANINGS[name], **tagged}


@json_schema.register
def _tag(kind: Tag) -> Schema:
    return {"const": kind.names[0]} if len(kind.names) == 1 else {"enum": list(kind.names)}
