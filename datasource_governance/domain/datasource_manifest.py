"""Our compiled manifest: what declared datasources say about their fields and tests.

Source: SPEC section 14; facts on the quality plugin, 10.2.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from datasource_governance.domain.canonical import Json
from datasource_governance.domain.coverage import Dataset, DatasetTest
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.policy_keys import FIELD_NAME, Key, Record
from datasource_governance.domain.policy_values import ListOf, MapOf, Place, Text
from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.rules import FieldRule, NotNullRule, ReferentialRule, Rule
from datasource_governance.errors import InvalidPolicyError

FORMAT: Final = "datasource_governance/manifest/v1"
TIER_TAG: Final = "tier"
"""The tag of a declaration that says its tier."""


def datasource_manifest(declarations: Iterable[Datasource]) -> dict[str, Json]:
    """Return the manifest of declared datasources.

    The fields of a datasource are all that its quality policy names. Its tests are the rules about
    rows, and each `field` rule that forbids nulls, as `not_null`.
    """
    return {
        "format": FORMAT,
        "datasources": {one.id: _described(one) for one in declarations},
    }


def declared_datasets(manifest: Mapping[str, object]) -> tuple[Dataset, ...]:
    """Read what `datasource_manifest` returned.

    A list of allowed values is what a policy has for a foreign key, so that a `referential` rule
    counts as `relationships` too.

    Raises:
        InvalidPolicyError: with every problem at once.
    """
    # Not `read_document`: with its thousands of fields a manifest outgrows what a person writes.
    place = Place(problems=[], unreadable=frozenset())
    found = _MANIFEST.read(dict(manifest), place)  # type: ignore[arg-type]  # it refuses all else
    if found is None:
        raise InvalidPolicyError("datasource manifest", place.problems)
    return found


def rule_fields(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the fields that rules name, each once, in their order."""
    return tuple(dict.fromkeys(name for rule in rules for name in rule.fields))


def _described(declaration: Datasource) -> dict[str, Json]:
    policy = declaration.quality_policy
    rules = () if policy is None else policy.rules
    tier = declaration.tags.get(TIER_TAG)
    return {
        **({} if tier is None else {"tier": tier}),
        "fields": list(rule_fields(rules)),
        "tests": [test for rule in rules for test in _tests(rule)],
    }


def _tests(rule: Rule) -> list[Json]:
    fields: list[Json] = list(rule.fields)
    if isinstance(rule, FieldRule) and rule.nullable is False:
        return [{"type": NotNullRule.type, "fields": fields}]
    return [{"type": rule.type, "fields": fields}] if isinstance(rule, ContentRule) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """A dataset that is not named yet."""

    tier: str | None
    fields: tuple[str, ...]
    tests: tuple[DatasetTest, ...]

    def named(self, id_: str) -> Dataset:
        foreign = tuple(
            DatasetTest(type="relationships", fields=test.fields)
            for test in self.tests
            if test.type == ReferentialRule.type
        )
        return Dataset(id=id_, tier=self.tier, fields=self.fields, tests=(*self.tests, *foreign))


_TEXT = Text(expected="a text that is not blank")
_TIER = Text(expected="a text", pattern=r"[^\n]*")
_FIELDS = ListOf(item=FIELD_NAME, expected="a list of field names")
_TEST = Record(
    keys=(Key("type", _TEXT, required=True), Key("fields", _FIELDS, default=())),
    build=DatasetTest,
)
_DATASOURCE = Record(
    keys=(
        Key("tier", _TIER),
        Key("fields", _FIELDS, required=True),
        Key("tests", ListOf(item=_TEST, expected="a list of tests"), required=True),
    ),
    build=_Described,
)
_MANIFEST = Record(
    keys=(
        Key("format", Text(expected=FORMAT, pattern=FORMAT), required=True),
        Key(
            "datasources",
            MapOf(key=_TEXT, item=_DATASOURCE, expected="an object of datasources"),
            required=True,
        ),
    ),
    build=lambda datasources, **_format: tuple(
        described.named(id_) for id_, described in datasources.items()
    ),
)
