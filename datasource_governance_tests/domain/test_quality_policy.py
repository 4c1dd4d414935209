from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import digest, load_canonical
from datasource_governance.domain.quality_policy import (
    MAXIMUM_ALLOWED_VALUES,
    MAXIMUM_FIELDS,
    MAXIMUM_RULES,
    FieldRule,
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RequiredFieldsRule,
    RowCountRule,
    Severity,
    UniqueRule,
    parse_quality_policy,
)
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import Change, Classification
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import policy_document, quality_policy, rule

GOLDEN = Path(__file__).parent.parent / "golden" / "policies" / "quality"


def problems(document):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_quality_policy(document)

    return caught.value.problems


def found(document):
    """Return (kind, pointer, names) of every problem, in order."""
    return [(one.kind, one.pointer, one.names) for one in problems(document)]


def rule_problem(**keys):
    """Return the kind, the pointer below the rule and the names of the only problem of a rule."""
    ((kind, pointer, names),) = found(policy_document(rule(**keys)))
    return kind, pointer.removeprefix("/rules/0"), names


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_golden_policies_keep_their_hash(path):
    policy = parse_quality_policy(path.read_bytes())

    assert policy.hash == path.with_suffix(".sha256").read_text().strip()


def test_every_rule_type_becomes_its_class_with_defaults_filled_in():
    rules = quality_policy(
        rule("row_count", id="a", minimum=0, maximum=0),
        rule("required_fields", id="b", fields=["x", "y"]),
        rule("field", id="c", field="x", data_type="integer", nullable=False),
        rule("not_null", id="d", field="x", severity="warning"),
        rule("unique", id="e", fields=["x", "y"]),
        rule("range", id="f", field="x", maximum=1.5),
        rule("referential", id="g", field="x", allowed_values=["", True, 1, 1.5], allow_null=True),
    ).rules

    error, warning = Severity.ERROR, Severity.WARNING
    assert rules == (
        RowCountRule(id="a", severity=error, minimum=0, maximum=0),
        RequiredFieldsRule(id="b", severity=error, fields=("x", "y")),
        FieldRule(id="c", severity=error, field="x", data_type=DataType.INTEGER, nullable=False),
        NotNullRule(id="d", severity=warning, fields=("x",)),
        UniqueRule(id="e", severity=error, fields=("x", "y"), ignore_nulls=False),
        RangeRule(id="f", severity=error, field="x", minimum=None, maximum=1.5, allow_null=False),
        ReferentialRule(
            id="g", severity=error, field="x", allowed_values=("", True, 1, 1.5), allow_null=True
        ),
    )
    assert [type(code) for code in rules[-1].allowed_values] == [str, bool, int, float]


def test_every_rule_names_its_fields_alike():
    rules = quality_policy(
        rule("row_count", id="a"),
        rule("field", id="b", field="x", nullable=True),
        rule("range", id="c", field="x", minimum=0),
        rule("referential", id="d", field="x", allowed_values=[1]),
        rule("unique", id="e", field="x"),
    ).rules

    assert [one.fields for one in rules] == [(), ("x",), ("x",), ("x",), ("x",)]


def test_a_policy_may_have_no_rules_but_must_say_so():
    assert parse_quality_policy('{"version": "v1", "rules": []}').rules == ()
    assert found("{}") == [
        ("missing_key", "", ("version",)),
        ("missing_key", "", ("rules",)),
    ]


def test_schema_policy_overrides_only_what_it_names():
    policy = quality_policy(schema_policy={"field_removed": "warning"})

    assert policy.schema_policy == {Change.FIELD_REMOVED: Classification.WARNING}
    assert quality_policy().schema_policy == {}


@pytest.mark.parametrize("document", ["[]", "null", '"rules"', "1", b"true"])
def test_a_policy_that_is_no_object_is_refused(document):
    assert found(document) == [("invalid_value", "", ())]


def test_every_problem_is_reported_at_once_with_pointer_kind_and_names():
    text = """{"version": 7, "notes": "x", "rules": [
        {"id": "a", "type": "row_count", "least": 1, "minimum": -1},
        {"id": "b", "type": "range", "field": "x", "minimum": 1e999, "minimum": 1e999},
        {"id": "a", "type": "not_null", "field": "x", "fields": ["x", "x"], "severity": "warn"},
        {"id": "c", "type": "not_nul", "field": "x"},
        {"id": "d", "type": "unique", "field": "\\u0000"},
        {"type": "row_count", "minimum": 2, "maximum": 1},
        "row_count",
        {"id": "e"}],
      "schema_policy": {"removed": "warning", "type_widened": "bad"}}"""

    assert found(text) == [
        ("duplicate_key", "/rules/1/minimum", ("b", "minimum")),
        ("invalid_value", "/rules/1/minimum", ("b", "minimum")),
        ("invalid_text", "/rules/4/field", ("d", "field")),
        ("unknown_key", "/notes", ("notes",)),
        ("invalid_value", "/version", ("version",)),
        ("duplicate_rule_id", "/rules/2/id", ("id", "a")),
        ("unknown_key", "/rules/0/least", ("a", "least")),
        ("invalid_value", "/rules/0/minimum", ("a", "minimum")),
        ("invalid_value", "/rules/2/severity", ("a", "severity")),
        ("invalid_value", "/rules/2/fields/1", ("a", "fields", "x")),
        ("conflicting_keys", "/rules/2", ("a", "field", "fields")),
        ("unknown_rule_type", "/rules/3/type", ("c", "type", "not_nul")),
        ("missing_key", "/rules/5", ("rules", "id")),
        ("bounds_reversed", "/rules/5", ("rules", "minimum", "maximum")),
        ("invalid_value", "/rules/6", ("rules",)),
        ("missing_key", "/rules/7", ("e", "type")),
        ("unknown_key", "/schema_policy/removed", ("removed",)),
        ("invalid_value", "/schema_policy/type_widened", ("type_widened",)),
    ]


def test_a_message_says_where_what_was_expected_and_what_was_there():
    document = policy_document(
        rule("row_count", minimum=-1),
        rule("range", id="s", field="x", minimum="0", maximum=None, allow_null=[]),
        rule("referential", id="t", field={}, allowed_values=[]),
        rule("field", id="u", field="x", data_type="int", nullable=1.5),
    )

    assert [problem.line() for problem in problems(document)] == [
        "/rules/0/minimum: expected an integer of 0 or more, got -1",
        "/rules/1/minimum: expected a number, got '0'",
        "/rules/1/maximum: expected a number, got null",
        "/rules/1/allow_null: expected true or false, got a list of 0",
        "/rules/2/field: expected a field name that is not blank, got an object",
        "/rules/2/allowed_values: expected a list of 1 to 10000 codes, got a list of 0",
        f"/rules/3/data_type: expected one of {', '.join(DataType)}, got 'int'",
        "/rules/3/nullable: expected true or false, got 1.5",
    ]


def test_a_long_text_is_not_quoted_in_full():
    (problem,) = problems(policy_document(rule("row_count", severity="x" * 10_000)))

    assert len(problem.message) < 100


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"minimum": True}, ("invalid_value", "/minimum", ("r", "minimum"))),
        ({"minimum": 0.5}, ("invalid_value", "/minimum", ("r", "minimum"))),
        ({"minimum": None}, ("invalid_value", "/minimum", ("r", "minimum"))),
        (
            {"minimum": 2, "maximum": 1},
            ("bounds_reversed", "", ("r", "minimum", "maximum")),
        ),
        ({"severity": "ERROR"}, ("invalid_value", "/severity", ("r", "severity"))),
        ({"severity": None}, ("invalid_value", "/severity", ("r", "severity"))),
        ({"field": "x"}, ("unknown_key", "/field", ("r", "field"))),
        ({"id": ""}, ("invalid_value", "/id", ("", "id"))),
        ({"id": 7}, ("invalid_value", "/id", ("id",))),
        ({"id": "a\nb"}, ("invalid_text", "/id", ("a\nb", "id"))),
        ({"id": "\x9f"}, ("invalid_text", "/id", ("\x9f", "id"))),
        ({"rule_type": "Row_Count"}, ("unknown_rule_type", "/type", ("r", "type", "Row_Count"))),
        ({"rule_type": 1}, ("invalid_value", "/type", ("r", "type"))),
        ({"rule_type": "unique"}, ("missing_key", "", ("r", "field", "fields"))),
        (
            {"rule_type": "field", "field": "x"},
            ("missing_key", "", ("r", "data_type", "nullable")),
        ),
        (
            {"rule_type": "range", "field": "x"},
            ("missing_key", "", ("r", "minimum", "maximum")),
        ),
        (
            {"rule_type": "range", "field": "x", "minimum": 0.1, "maximum": 0},
            ("bounds_reversed", "", ("r", "minimum", "maximum")),
        ),
        (
            {"rule_type": "range", "field": "x", "minimum": 1, "allow_null": 1},
            ("invalid_value", "/allow_null", ("r", "allow_null")),
        ),
        ({"rule_type": "not_null", "fields": []}, ("invalid_value", "/fields", ("r", "fields"))),
        ({"rule_type": "not_null", "fields": "x"}, ("invalid_value", "/fields", ("r", "fields"))),
        ({"rule_type": "not_null", "fields": [1]}, ("invalid_value", "/fields/0", ("r", "fields"))),
        ({"rule_type": "not_null", "field": " \t"}, ("invalid_value", "/field", ("r", "field"))),
        (
            {"rule_type": "not_null", "field": "x", "ignore_nulls": True},
            ("unknown_key", "/ignore_nulls", ("r", "ignore_nulls")),
        ),
        (
            {"rule_type": "referential", "field": "x"},
            ("missing_key", "", ("r", "allowed_values")),
        ),
        (
            {"rule_type": "referential", "field": "x", "allowed_values": [1, None]},
            ("invalid_value", "/allowed_values/1", ("r", "allowed_values")),
        ),
        (
            {"rule_type": "referential", "field": "x", "allowed_values": [["a"]]},
            ("invalid_value", "/allowed_values/0", ("r", "allowed_values")),
        ),
    ],
    ids=str,
)
def test_a_rule_is_refused_for_what_it_may_not_say(keys, problem):
    assert rule_problem(**keys) == problem


def test_equal_bounds_are_in_order():
    assert quality_policy(rule("range", field="x", minimum=1, maximum=1.0)).rules[0].maximum == 1


def test_rule_ids_have_up_to_128_characters_and_are_compared_exactly():
    ids = ["a", "A", " a", "é", "e\u0301", "x" * 128, "\U0001f600" * 128]

    assert [one.id for one in quality_policy(*(rule(id=id_) for id_ in ids)).rules] == ids
    assert found(policy_document(rule(id="x" * 129)))[0][:2] == ("invalid_value", "/rules/0/id")


def test_field_names_are_kept_as_they_are():
    names = (" a", "a\nb", "é", "e\u0301", "a" * 1000)

    assert quality_policy(rule("unique", fields=list(names))).rules[0].fields == names


def test_there_may_be_500_rules():
    rules = [rule(id=str(number)) for number in range(MAXIMUM_RULES + 1)]

    assert len(quality_policy(*rules[:MAXIMUM_RULES]).rules) == 500
    assert found(policy_document(*rules)) == [("invalid_value", "/rules", ("rules",))]


def test_a_rule_may_have_10000_allowed_values():
    codes = list(range(MAXIMUM_ALLOWED_VALUES + 1))

    kept = quality_policy(rule("referential", field="x", allowed_values=codes[:-1])).rules[0]

    assert len(kept.allowed_values) == 10_000
    assert rule_problem(rule_type="referential", field="x", allowed_values=codes) == (
        "invalid_value",
        "/allowed_values",
        ("r", "allowed_values"),
    )


def test_a_rule_may_name_2000_fields():
    names = [str(number) for number in range(MAXIMUM_FIELDS + 1)]

    assert len(quality_policy(rule("unique", fields=names[:-1])).rules[0].fields) == 2_000
    for rule_type in ("required_fields", "not_null", "unique"):
        problem = rule_problem(rule_type=rule_type, fields=names)
        assert problem == ("invalid_value", "/fields", ("r", "fields"))


def test_a_list_that_is_too_long_is_one_problem_whatever_is_in_it():
    fields = ",".join(["1"] * 100_000)
    rules = f'[{{"id": "r", "type": "not_null", "fields": [{fields}]}}]'

    (problem,) = problems(f'{{"version": "v1", "rules": {rules}}}')

    assert problem.line() == (
        "/rules/0/fields: expected a list of 1 to 2000 field names, got a list of 100000"
    )


@pytest.mark.parametrize(("count", "more"), [(100, []), (101, ["  and 1 more"])])
def test_a_message_lists_100_problems_and_counts_the_others(count, more):
    with pytest.raises(InvalidPolicyError) as caught:
        quality_policy(rule("not_null", fields=[1] * count))

    first, *lines = str(caught.value).splitlines()
    assert first == f"quality policy has {count} problem(s)"
    assert lines == [f"  {one.line()}" for one in caught.value.problems[:100]] + more
    assert len(caught.value.problems) == count


def test_the_hash_covers_the_document_as_authored():
    written = parse_quality_policy('{"rules": [], "version": "\\u0076\\u0031"}')

    assert written.canonical == b'{"rules":[],"version":"v1"}'
    assert written.hash == digest("datasource_governance/quality_policy/v1", written.canonical)
    assert written.hash != quality_policy(schema_policy={}).hash
    assert quality_policy(rule()).hash != quality_policy(rule(severity="error")).hash


@given(st.integers(min_value=0, max_value=10**300), st.integers(min_value=0, max_value=10**300))
def test_integer_bounds_and_codes_are_exact_at_any_size(one, other):
    low, high = sorted((one, other))
    policy = quality_policy(
        rule("range", id="a", field="x", minimum=-high, maximum=low),
        rule("referential", id="b", field="x", allowed_values=[low, high]),
    )

    again = parse_quality_policy(load_canonical(policy.canonical))

    assert (again.rules[0].minimum, again.rules[0].maximum) == (-high, low)
    assert again.rules[1].allowed_values == (low, high)
    assert again == policy


def test_a_field_rule_permits_nulls_only_where_it_says_so():
    policy = quality_policy(
        rule("field", id="a", field="x", nullable=True),
        rule("field", id="b", field="y", nullable=False),
        rule("field", id="c", field="z", data_type="string"),
        rule("not_null", id="d", field="w"),
    )

    assert [name for name in "xyzw" if policy.permits_null(name)] == ["x"]
