"""The demo's deliveries: real gaps, real faults, and a policy that finds exactly these."""

from pathlib import Path

import pytest

from datasource_governance import demo
from datasource_governance.declarations import read_declaration
from datasource_governance.demo.deliveries import write_deliveries
from datasource_governance.domain.quality_policy import RULES
from datasource_governance.domain.schema_diff import Change, Classification
from datasource_governance.domain.validation import Outcome, Severity, Status
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.files import read_file

DECLARATION = read_declaration(
    Path(demo.__file__).parent / "datasources" / "airports" / "datasource.json"
)


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory):
    return write_deliveries(tmp_path_factory.mktemp("register"))


def judge(path, previous=None):
    payload = TypedPayload(read_file(path, DECLARATION.csv))
    return PanderaEvaluator().validate(DECLARATION.quality_policy, payload, previous)


@pytest.fixture(scope="module")
def first(deliveries):
    return judge(deliveries.first)


def not_passed(validation, severity):
    return {
        rule.id
        for rule in validation.rules
        if rule.status is not Status.PASSED and rule.severity is severity
    }


def test_the_policy_uses_every_type_of_rule():
    assert {rule.type for rule in DECLARATION.quality_policy.rules} == set(RULES)


def test_the_first_delivery_needs_review_because_of_gaps_that_are_really_there(first):
    assert first.outcome is Outcome.REVIEW
    assert not_passed(first, Severity.ERROR) == set()
    assert not_passed(first, Severity.WARNING) == {"city-known"}


def test_the_second_delivery_fails_exactly_the_five_rules_that_its_faults_break(deliveries, first):
    second = judge(deliveries.faulty, first.schema)

    affected = {rule.id: rule.affected for rule in second.rules if rule.status is Status.FAILED}
    assert second.outcome is Outcome.BLOCKED
    assert not_passed(second, Severity.ERROR) == {
        "columns",
        "names-present",
        "icao-unique",
        "latitude",
        "country-iso",
    }
    assert (affected["icao-unique"], affected["latitude"], affected["country-iso"]) == (6, 1, 1)


def test_the_second_delivery_lost_a_column_which_is_a_breaking_change(deliveries, first):
    diff = judge(deliveries.faulty, first.schema).schema_diff

    assert diff.classification is Classification.BREAKING
    assert [(change.field, change.change) for change in diff.changes] == [
        ("tz", Change.FIELD_REMOVED)
    ]


def test_the_corrected_delivery_needs_no_more_than_review(deliveries, first):
    corrected = judge(deliveries.corrected, first.schema)

    assert corrected.outcome is Outcome.REVIEW
    assert not_passed(corrected, Severity.ERROR) == set()
    assert corrected.row_count == first.row_count + 50


def test_equal_registers_give_equal_bytes(deliveries, tmp_path):
    again = write_deliveries(tmp_path)

    assert again.faulty.read_bytes() == deliveries.faulty.read_bytes()
