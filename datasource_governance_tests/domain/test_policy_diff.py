"""A policy diff shows every change and says, where it can, which way it goes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.policy_diff import Effect, compare_policies
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance_tests.builders import quality_policy, rule

TIGHTENS, LOOSENS, NEITHER = Effect.TIGHTENS, Effect.LOOSENS, Effect.NEITHER
OPPOSITE = {TIGHTENS: LOOSENS, LOOSENS: TIGHTENS, NEITHER: NEITHER, None: None}


def changes(before, after):
    """Return path, before, after and effect of every change."""
    return [
        (change.path, change.before, change.after, change.effect)
        for change in compare_policies(before, after).changes
    ]


def rule_changes(before, after):
    return changes(quality_policy(before), quality_policy(after))


def approval(**keys):
    return parse_approval_policy({"version": "v1", "required": True, **keys})


def retention(**keys):
    return parse_retention_policy({"version": "v1", **keys})


def test_a_policy_has_no_changes_to_itself_however_it_is_spelled():
    spelled = '{"rules": [], "version": "v\\u0031"}'
    diff = compare_policies(quality_policy(), parse_quality_policy(spelled))

    assert not diff.changes_hash
    assert diff.changes == ()


def test_rules_are_added_and_removed_as_a_whole():
    old, new = rule(id="old"), rule("not_null", id="new", field="a", severity="warning")

    assert rule_changes(old, new) == [
        (("rules", "old"), old, None, LOOSENS),
        (("rules", "new"), None, new, TIGHTENS),
    ]


def test_a_rule_of_another_type_is_another_rule_and_nothing_is_decided():
    old, new = rule("not_null", field="a"), rule("unique", field="a")

    assert rule_changes(old, new) == [(("rules", "r"), old, new, None)]


def test_the_order_of_rules_is_a_change_that_does_neither():
    first, second = rule(id="a"), rule(id="b")

    assert changes(quality_policy(first, second), quality_policy(second, first)) == [
        (("rules",), ["a", "b"], ["b", "a"], NEITHER)
    ]


UNSET = {}
RANGE, UNIQUE, NOT_NULL = {"field": "f"}, {"fields": ["f", "g"]}, {"fields": ["f"]}


@pytest.mark.parametrize(
    ("rule_type", "common", "before", "after", "effect"),
    [
        ("row_count", {"maximum": 9}, UNSET, {"minimum": 1}, TIGHTENS),
        ("row_count", {"maximum": 9}, UNSET, {"minimum": 0}, NEITHER),
        ("row_count", {"minimum": 0}, {"maximum": 9}, {"maximum": 8}, TIGHTENS),
        ("row_count", {"minimum": 0}, {"maximum": 9}, UNSET, LOOSENS),
        ("row_count", {"minimum": 0}, UNSET, {"severity": "warning"}, LOOSENS),
        ("row_count", {"minimum": 0}, UNSET, {"severity": "error"}, NEITHER),
        ("range", {"field": "f", "maximum": 9}, UNSET, {"minimum": 0}, TIGHTENS),
        ("range", {"field": "f"}, {"minimum": 2**53}, {"minimum": 2**53 + 1}, TIGHTENS),
        ("range", {"field": "f", "minimum": 0}, UNSET, {"allow_null": True}, LOOSENS),
        ("range", {"field": "f", "minimum": 0}, UNSET, {"allow_null": False}, NEITHER),
        ("range", {"minimum": 0}, {"field": "f"}, {"field": "g"}, None),
        ("not_null", UNSET, {"fields": ["f"]}, {"fields": ["g", "f"]}, TIGHTENS),
        ("not_null", UNSET, {"fields": ["f"]}, {"fields": ["g"]}, None),
        ("required_fields", UNSET, {"fields": ["f", "g"]}, {"fields": ["g", "f"]}, NEITHER),
        ("unique", UNSET, {"fields": ["f", "g"]}, {"fields": ["g", "f"]}, NEITHER),
        ("unique", UNSET, {"fields": ["f"]}, {"fields": ["f", "g"]}, None),
        ("unique", {"field": "f"}, UNSET, {"ignore_nulls": True}, LOOSENS),
        ("field", {"field": "f"}, {"nullable": True}, {"nullable": False}, TIGHTENS),
        ("field", {"field": "f", "nullable": True}, UNSET, {"data_type": "date"}, TIGHTENS),
        ("field", {"field": "f"}, {"data_type": "number"}, {"data_type": "integer"}, TIGHTENS),
        ("field", {"field": "f"}, {"data_type": "number"}, {"data_type": "date"}, None),
        ("field", {"field": "f", "data_type": "date"}, UNSET, {"nullable": True}, None),
    ],
)
def test_a_changed_key_says_which_way_it_goes(rule_type, common, before, after, effect):
    old, new = rule(rule_type, **common, **before), rule(rule_type, **common, **after)
    (key,) = before.keys() | after.keys()

    there = [(("rules", "r", key), before.get(key), after.get(key), effect)]
    back = [(("rules", "r", key), after.get(key), before.get(key), OPPOSITE[effect])]

    assert rule_changes(old, new) == there
    assert rule_changes(new, old) == back


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (["a"], ["a", "b"], LOOSENS),
        (["a", "b"], ["b", "a"], NEITHER),
        ([1], ["1"], None),
        ([1], [True], None),
        ([1], [2, 1.5, 1], LOOSENS),
    ],
)
def test_more_codes_permit_more(before, after, effect):
    old, new = (rule("referential", field="f", allowed_values=codes) for codes in (before, after))

    assert rule_changes(old, new) == [
        (("rules", "r", "allowed_values"), before, after, effect),
    ]


def test_field_and_fields_of_one_are_two_spellings():
    assert rule_changes(rule("unique", field="f"), rule("unique", fields=["f"])) == [
        (("rules", "r", "fields"), "f", ["f"], NEITHER)
    ]


def test_every_override_of_the_schema_policy_is_compared_with_what_held_before():
    overrides = {"field_removed": "warning", "type_changed": "breaking", "type_widened": "warning"}
    path = "schema_policy"

    assert changes(quality_policy(), quality_policy(schema_policy=overrides)) == [
        ((path, "field_removed"), None, "warning", LOOSENS),
        ((path, "type_changed"), None, "breaking", NEITHER),
        ((path, "type_widened"), None, "warning", TIGHTENS),
    ]


def test_an_empty_schema_policy_is_a_change_because_the_hash_changes():
    diff = compare_policies(quality_policy(), quality_policy(schema_policy={}))

    assert diff.changes_hash
    assert [(one.path, one.before, one.after, one.effect) for one in diff.changes] == [
        (("schema_policy",), None, {}, NEITHER)
    ]


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({"required": False}, {"required": True}, TIGHTENS),
        ({"required_approvals": 2}, {"required_approvals": 1}, LOOSENS),
        ({"separation_of_duties": True}, {"separation_of_duties": False}, LOOSENS),
        ({"expires_after_hours": 72}, {"expires_after_hours": 71}, TIGHTENS),
        ({}, {"expires_after_hours": 72}, TIGHTENS),
        ({}, {"policy_ref": "wiki/7"}, NEITHER),
        ({"version": "v1"}, {"version": "v2"}, NEITHER),
    ],
)
def test_an_approval_policy_tightens_when_it_asks_for_more(before, after, effect):
    (key,) = before.keys() | after.keys()

    assert changes(approval(**before), approval(**after)) == [
        ((key,), before.get(key), after.get(key), effect)
    ]


def test_a_default_written_out_is_no_change_of_an_approval_policy():
    assert changes(approval(), approval(required_approvals=1)) == []


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({}, {"enabled": True}, LOOSENS),
        ({}, {"enabled": False}, NEITHER),
        ({}, {"stage_days": 30}, LOOSENS),
        ({"materialization_days": 30}, {"materialization_days": 31}, TIGHTENS),
        ({"frozen_evidence_days": 30}, {"frozen_evidence_days": 29}, LOOSENS),
    ],
)
def test_a_retention_policy_loosens_when_it_lets_more_be_destroyed(before, after, effect):
    (key,) = before.keys() | after.keys()

    assert changes(retention(**before), retention(**after)) == [
        ((key,), before.get(key), after.get(key), effect)
    ]


def test_the_document_of_a_diff_shows_both_hashes_and_every_change():
    old, new = quality_policy(), quality_policy(version="v2")

    assert compare_policies(old, new).document() == {
        "format": "datasource_governance/policy_diff/v1",
        "hash": {"before": old.hash, "after": new.hash, "changes": True},
        "changes": [{"path": ["version"], "before": "v1", "after": "v2", "effect": "neither"}],
    }
    assert compare_policies(old, quality_policy(rule(type="row_count"))).document()["changes"]


RULES = st.lists(
    st.builds(
        lambda name, low, severity: rule(id=name, minimum=low, **severity),
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.sampled_from([{}, {"severity": "error"}, {"severity": "warning"}]),
    ),
    max_size=3,
    unique_by=lambda one: one["id"],
)
POLICIES = st.builds(
    lambda rules, keys: quality_policy(*rules, **keys),
    RULES,
    st.sampled_from([{}, {"schema_policy": {}}, {"schema_policy": {"field_removed": "warning"}}]),
)


@settings(max_examples=100)
@given(POLICIES, POLICIES)
def test_there_is_a_change_exactly_when_the_hash_changes(old, new):
    diff, back = compare_policies(old, new), compare_policies(new, old)

    assert diff.changes_hash is bool(diff.changes)
    assert {change.path: OPPOSITE[change.effect] for change in diff.changes} == {
        change.path: change.effect for change in back.changes
    }
