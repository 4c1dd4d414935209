"""What a provider is asked, and that another process is asked the very same."""

from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import canonical_bytes, load_canonical
from datasource_governance.domain.quality_expectation import (
    CONTENT_KINDS,
    expectation_document,
    expectations,
    read_expectations,
)
from datasource_governance_tests.builders import quality_policy, rule

RULES = (
    rule("required_fields", id="fields", fields=["a"]),
    rule("unique", id="key", fields=["a", "b"], ignore_nulls=True, severity="warning"),
    rule("field", id="shape", field="a", data_type="integer"),
    rule("row_count", id="rows", minimum=0, maximum=2**70),
    rule("not_null", id="present", field="a"),
    rule("range", id="bounds", field="a", minimum=-(2**63), maximum=0.1, allow_null=True),
    rule("referential", id="codes", field="b", allowed_values=[True, 1, "1", 2**53 + 1, 0.5, ""]),
)


def read_back(asked):
    """Return expectations after their way to another process."""
    sent = canonical_bytes(expectation_document(asked))
    return read_expectations(load_canonical(sent), asked[0].policy_hash)


def test_rules_about_rows_are_expectations_in_policy_order_and_schema_rules_are_not():
    asked = expectations(quality_policy(*RULES))

    assert [one.id for one in asked] == ["key", "rows", "present", "bounds", "codes"]
    assert {one.kind for one in asked} == CONTENT_KINDS


def test_an_expectation_says_what_its_rule_says_and_of_which_policy_it_is():
    policy = quality_policy(*RULES)

    key = expectations(policy)[0]

    assert (key.kind, key.fields, key.severity) == ("unique", ("a", "b"), "warning")
    assert key.policy_hash == policy.hash


def test_a_policy_without_rules_about_rows_asks_nothing():
    assert expectations(quality_policy(RULES[0])) == ()


def test_another_process_reads_the_same_expectations():
    asked = expectations(quality_policy(*RULES))

    assert read_back(asked) == asked
    assert [type(code) for code in read_back(asked)[-1].rule.allowed_values] == [
        *(bool, int, str, int, float, str)
    ]


NAMES = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() and text.isprintable() and "\0" not in text
)
NUMBERS = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)


@given(NAMES, NAMES, NUMBERS, st.lists(NUMBERS | NAMES | st.booleans(), min_size=1, unique_by=repr))
def test_whatever_the_names_bounds_and_codes_are(rule_id, field, minimum, codes):
    asked = expectations(
        quality_policy(
            rule("range", id=rule_id, field=field, minimum=minimum),
            rule("referential", id=f"{rule_id}.", field=field, allowed_values=codes),
        )
    )

    assert read_back(asked) == asked
