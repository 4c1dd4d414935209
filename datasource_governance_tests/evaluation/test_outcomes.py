import pyarrow as pa
import pytest

from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.validation import Reason, RuleOutcome, Status
from datasource_governance.evaluation import outcomes
from datasource_governance_tests.builders import quality_policy, rule

POLICY = quality_policy(
    rule("not_null", id="first", field="a"),
    rule("range", id="second", field="a", minimum=2),
    rule("row_count", id="third", minimum=9),
)
(FIRST, SECOND, THIRD) = POLICY.rules


def outcome(status=Status.PASSED, **keys):
    """Return what `second` found; with neither rows nor a count, unless told otherwise."""
    return RuleOutcome(
        id="second",
        type="range",
        severity=Severity.ERROR,
        **{"fields": ("a",), "status": status, **keys},
    )


def about_rows(*rows, more=0):
    """Return what `second` found in rows: these, and more that are not listed."""
    affected = len(rows) + more
    status, reason = (Status.FAILED, Reason.OUT_OF_RANGE) if affected else (Status.PASSED, None)
    return outcome(status, reason=reason, affected=affected, rows=rows)


NOT_EVALUATED = outcome(Status.ERROR, reason=Reason.NOT_EVALUATED)
WRONG_TYPE = outcome(Status.FAILED, reason=Reason.TYPE_MISMATCH)


@pytest.mark.parametrize("passed", [True, False])
def test_a_rule_without_a_receipt_was_not_evaluated(passed):
    assert outcomes.demand(SECOND, None, passed=passed) == NOT_EVALUATED


@pytest.mark.parametrize(
    ("receipt", "passed"),
    [
        (about_rows(), False),
        (about_rows(1), True),
        (WRONG_TYPE, True),
        (NOT_EVALUATED, True),
    ],
)
def test_a_rule_on_which_pandera_and_its_receipt_disagree_was_not_evaluated(receipt, passed):
    assert outcomes.demand(SECOND, receipt, passed=passed) == NOT_EVALUATED


@pytest.mark.parametrize("receipt", [about_rows(), about_rows(1), WRONG_TYPE, NOT_EVALUATED])
def test_a_receipt_that_pandera_agrees_with_is_what_the_rule_found(receipt):
    agreed = receipt.status is Status.PASSED

    assert outcomes.demand(SECOND, receipt, passed=agreed) is receipt


def test_only_some_rules_are_left_in_the_order_of_the_policy_which_keeps_all_else():
    left = outcomes.only(POLICY, [THIRD, FIRST])

    assert left.rules == (FIRST, THIRD)
    assert (left.version, left.schema_policy) == (POLICY.version, POLICY.schema_policy)
    assert outcomes.only(POLICY, []).rules == ()


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (about_rows(), about_rows(), about_rows()),
        (about_rows(1, 3), about_rows(), about_rows(1, 3)),
        (about_rows(), about_rows(7), about_rows(7)),
        (about_rows(1, 3), about_rows(7), about_rows(1, 3, 7)),
        (about_rows(5), about_rows(1, 9), about_rows(1, 5, 9)),
        (about_rows(*range(1, 25)), about_rows(30), about_rows(*range(1, 25), 30)),
        (
            about_rows(*range(1, 25)),
            about_rows(30, 31),
            about_rows(*range(1, 25), 30, more=1),
        ),
        (about_rows(*range(1, 26), more=5), about_rows(90), about_rows(*range(1, 26), more=6)),
        (
            about_rows(*range(11, 36)),
            about_rows(*range(1, 11), more=90),
            about_rows(*range(1, 11), *range(11, 26), more=100),
        ),
    ],
)
def test_counts_of_two_parts_add_up_and_their_lowest_rows_are_listed(earlier, later, expected):
    assert outcomes.joined(earlier, later) == expected


@pytest.mark.parametrize("other", [about_rows(), about_rows(1), outcome(), WRONG_TYPE])
def test_a_part_that_could_not_be_evaluated_leaves_the_rule_so(other):
    assert outcomes.joined(NOT_EVALUATED, other) == NOT_EVALUATED
    assert outcomes.joined(other, NOT_EVALUATED) == NOT_EVALUATED


@pytest.mark.parametrize("told", [outcome(), WRONG_TYPE])
def test_what_is_not_about_rows_is_the_same_for_all_parts(told):
    assert outcomes.joined(told, told) == told


def test_rows_of_a_source_without_an_order_are_left_out_and_their_number_is_not():
    (found,) = outcomes.numbered((about_rows(1, 2),), rows_numbered=False)

    assert (found.affected, found.rows, found.truncated) == (2, None, False)
    assert outcomes.numbered((about_rows(1, 2),), rows_numbered=True) == (about_rows(1, 2),)


def test_a_reader_is_told_of_similar_names_and_of_rows_without_numbers():
    similar = "fields that differ only in case or Unicode form: 'Id', 'ID'"

    assert outcomes.notices(["Id", "ID"], rows_numbered=True) == (similar,)
    assert outcomes.notices(["a", "b"], rows_numbered=True) == ()
    assert outcomes.notices(["Id", "ID"], rows_numbered=False) == (similar, outcomes.UNNUMBERED)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_every_rule_has_its_outcome_in_policy_order(engine):
    table = pa.table({"unconcerned": [0, 0, 0], "a": [1, None, 2]})

    found = outcomes.of_table(POLICY, table, engine)

    assert [(one.id, one.affected, one.rows) for one in found] == [
        ("first", 1, (2,)),
        ("second", 2, (1, 2)),
        ("third", None, None),
    ]


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_rows_are_counted_where_no_rule_names_a_field(engine):
    counted = quality_policy(rule("row_count", minimum=3, maximum=3))

    (found,) = outcomes.of_table(counted, pa.table({"a": [1, 2, 3]}), engine)

    assert found.status is Status.PASSED
