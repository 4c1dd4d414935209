from datetime import date

import pytest

from datasource_governance.domain.tier import DEFAULT_GATES, Tier, Waiver
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.manifests import gates, platform_manifest, waiver


def coverage(value):
    return (
        platform_manifest(gates(gold={"min_test_coverage": value}))
        .gates[Tier.GOLD]
        .min_test_coverage
    )


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ("80%", 0.8),
        ("33.3%", 0.333),
        ("100%", 1),
        ("0%", 0),
        (0.8, 0.8),
        (1, 1),
        (1.0, 1),
        (0, 0),
    ],
)
def test_a_share_is_a_percentage_as_text_or_a_number_up_to_one(value, share):
    assert coverage(value) == share


@pytest.mark.parametrize(
    "value",
    [-0.1, "80", "101%", "-1%", "%", "1e1%", "8\N{ARABIC-INDIC DIGIT ZERO}%", ".%", True, None],
)
def test_anything_else_is_no_share(value):
    with pytest.raises(InvalidPolicyError) as caught:
        coverage(value)

    assert [one.kind for one in caught.value.problems] == ["invalid_value"]


def test_a_number_above_one_is_refused_with_what_it_may_have_meant():
    with pytest.raises(InvalidPolicyError, match='got 80; write "80%"'):
        coverage(80)
    with pytest.raises(InvalidPolicyError, match="got 101; write at most 1"):
        coverage(101)


def test_required_tests_are_named_in_any_frameworks_words():
    names = ["expect_column_values_to_not_be_null", "accepted_values", "relationships"]

    manifest = platform_manifest(gates(bronze={"required_tests": names}))

    assert manifest.gates[Tier.BRONZE].required_tests == (
        "not_null",
        "referential",
        "relationships",
    )
    with pytest.raises(InvalidPolicyError, match="expected one of not_null"):
        platform_manifest(gates(bronze={"required_tests": ["no_nulls"]}))


@pytest.mark.parametrize("value", ["20270331", "2027-W13-3", "2027-02-30", "soon", 2027])
def test_a_day_is_spelled_in_one_way(value):
    with pytest.raises(InvalidPolicyError, match="expected a day"):
        platform_manifest(gates(waivers=[waiver(expires=value)]))


def test_the_defaults_are_those_of_the_decision():
    assert {
        str(tier): (gate.min_test_coverage, gate.required_tests)
        for tier, gate in DEFAULT_GATES.items()
    } == {
        "bronze": (0.5, ()),
        "silver": (0.8, ("not_null", "unique")),
        "gold": (1.0, ("not_null", "relationships", "unique")),
    }


def test_a_waiver_holds_through_its_last_day():
    (one,) = platform_manifest(gates(waivers=[waiver(field="amount")])).waivers

    assert one == Waiver(
        datasource="orders",
        test=None,
        field="amount",
        reason="The key is checked upstream.",
        approved_by="steward@example.com",
        expires=date(2027, 3, 31),
    )
    assert not one.is_expired(date(2027, 3, 31))
    assert one.is_expired(date(2027, 4, 1))
    assert one.document() == waiver(field="amount")
