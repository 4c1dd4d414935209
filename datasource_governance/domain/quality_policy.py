"""Quality policies: read strictly, hashed as authored.

Source: SPEC section 2, 2.1 and 2.4; acceptance decision POLICY_STRICT.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from datasource_governance.domain.canonical import Sha256, digest
from datasource_governance.domain.policy_keys import (
    FIELD_NAME,
    MAXIMUM_ID_CHARACTERS,
    VERSION,
    AtLeastOne,
    Constraint,
    ExactlyOne,
    Key,
    Ordered,
    Record,
    Variants,
    read_document,
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
from datasource_governance.domain.rules import (
    Code,
    FieldRule,
    NotNullRule,
    Number,
    RangeRule,
    ReferentialRule,
    RequiredFieldsRule,
    RowCountRule,
    Rule,
    Severity,
    UniqueRule,
)
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import Change, Classification

__all__ = [
    "HASH_DOMAIN",
    "NO_OVERRIDES",
    "QUALITY_POLICY",
    "RULE_ID",
    "Code",
    "FieldRule",
    "NotNullRule",
    "Number",
    "QualityPolicy",
    "RangeRule",
    "ReferentialRule",
    "RequiredFieldsRule",
    "RowCountRule",
    "Rule",
    "Severity",
    "UniqueRule",
    "parse_quality_policy",
]

HASH_DOMAIN = "datasource_governance/quality_policy/v1"
MAXIMUM_RULES = 500
MAXIMUM_FIELDS = 2_000
MAXIMUM_ALLOWED_VALUES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityPolicy:
    """A quality policy as authored. `canonical` are the bytes that are hashed and kept."""

    version: str
    rules: tuple[Rule, ...]
    schema_policy: Mapping[Change, Classification]
    canonical: bytes
    hash: Sha256

    def permits_null(self, field: str) -> bool:
        """Tell whether a `field` rule declares the field nullable (SPEC section 4)."""
        return any(
            isinstance(rule, FieldRule) and rule.field == field and rule.nullable is True
            for rule in self.rules
        )


NO_OVERRIDES: Mapping[Change, Classification] = MappingProxyType({})


def parse_quality_policy(document: str | bytes | Mapping[str, object]) -> QualityPolicy:
    """Read a quality policy from JSON text, bytes or an already strictly parsed object.

    The hash covers the complete document: key order, white space, escapes and the spelling of
    numbers do not count, the order of lists and explicit defaults do.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer.
    """
    return read_document(QUALITY_POLICY, document, what="quality policy")


def _rule(
    build: Callable[..., Rule], *keys: Key, constraints: tuple[Constraint, ...] = ()
) -> Record[Rule]:
    return Record(
        keys=(RULE_ID, _SEVERITY, *keys),
        build=build,
        constraints=constraints,
        named_by=RULE_ID.name,
    )


def _keyed(build: Callable[..., Rule]) -> Callable[..., Rule]:
    """Return a builder for which `field` is a `fields` of one."""
    return lambda field, fields, **others: build(fields=fields or (field,), **others)


def _overrides(**given: Classification | None) -> Mapping[Change, Classification]:
    return MappingProxyType({Change(name): one for name, one in given.items() if one is not None})


RULE_ID = Key(
    "id",
    Text(
        expected=f"a printable text of 1 to {MAXIMUM_ID_CHARACTERS} characters",
        pattern=r"[\s\S]+",
        maximum=MAXIMUM_ID_CHARACTERS,
    ),
    required=True,
)
"""By which a rule is named wherever something is said of it."""
_SEVERITY = Key("severity", Choice(Severity), default=Severity.ERROR)
_FIELD_NAMES = ListOf(
    item=FIELD_NAME,
    expected=f"a list of 1 to {MAXIMUM_FIELDS} field names",
    minimum=1,
    maximum=MAXIMUM_FIELDS,
    repeated="invalid_value",
)
_CODES = ListOf(
    item=CodeMember(),
    expected=f"a list of 1 to {MAXIMUM_ALLOWED_VALUES} codes",
    minimum=1,
    maximum=MAXIMUM_ALLOWED_VALUES,
)
_FIELD = Key("field", FIELD_NAME, required=True)
_FIELD_OR_FIELDS = (Key("field", FIELD_NAME), Key("fields", _FIELD_NAMES))
_ONE_SPELLING = ExactlyOne(("field", "fields"))
_BOUNDS = (AtLeastOne(("minimum", "maximum")), Ordered("minimum", "maximum"))
_ALLOW_NULL = Key("allow_null", Flag(), default=False)

RULES: Mapping[str, Record[Rule]] = {
    RowCountRule.type: _rule(
        RowCountRule,
        Key("minimum", Whole(minimum=0)),
        Key("maximum", Whole(minimum=0)),
        constraints=_BOUNDS,
    ),
    RequiredFieldsRule.type: _rule(RequiredFieldsRule, Key("fields", _FIELD_NAMES, required=True)),
    FieldRule.type: _rule(
        FieldRule,
        _FIELD,
        Key("data_type", Choice(DataType)),
        Key("nullable", Flag()),
        constraints=(AtLeastOne(("data_type", "nullable")),),
    ),
    NotNullRule.type: _rule(_keyed(NotNullRule), *_FIELD_OR_FIELDS, constraints=(_ONE_SPELLING,)),
    UniqueRule.type: _rule(
        _keyed(UniqueRule),
        *_FIELD_OR_FIELDS,
        Key("ignore_nulls", Flag(), default=False),
        constraints=(_ONE_SPELLING,),
    ),
    RangeRule.type: _rule(
        RangeRule,
        _FIELD,
        Key("minimum", Bound()),
        Key("maximum", Bound()),
        _ALLOW_NULL,
        constraints=_BOUNDS,
    ),
    ReferentialRule.type: _rule(
        ReferentialRule, _FIELD, Key("allowed_values", _CODES, required=True), _ALLOW_NULL
    ),
}
"""The keys of each rule type (SPEC section 2.1)."""

QUALITY_POLICY = Record(
    keys=(
        VERSION,
        Key(
            "rules",
            ListOf(
                item=Variants(
                    by="type",
                    records=RULES,
                    otherwise=replace(_rule(RowCountRule), is_open=True),
                    unknown="unknown_rule_type",
                ),
                expected=f"a list of at most {MAXIMUM_RULES} rules",
                maximum=MAXIMUM_RULES,
                repeated="duplicate_rule_id",
                distinct_by=RULE_ID.name,
            ),
            required=True,
        ),
        Key(
            "schema_policy",
            Record(
                keys=tuple(Key(change, Choice(Classification)) for change in Change),
                build=_overrides,
            ),
            default=NO_OVERRIDES,
        ),
    ),
    build=lambda canonical, **values: QualityPolicy(
        canonical=canonical, hash=digest(HASH_DOMAIN, canonical), **values
    ),
    keeps_bytes=True,
)
"""The keys of a quality policy."""
