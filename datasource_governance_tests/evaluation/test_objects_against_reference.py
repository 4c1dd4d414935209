"""Object columns are judged as a plain reading of the specification does, by Pandera alone, too."""

import pandera.errors
from hypothesis import given, settings

from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance_tests.builders import quality_policy
from datasource_governance_tests.evaluation import reference
from datasource_governance_tests.evaluation.test_against_reference import (
    BATCH_ROWS,
    OBJECTS,
    RULES,
    assert_judged_alike,
    objects,
)

VALUE_RULES = RULES.map(lambda rules: [rule for rule in rules if rule["type"] != "field"])


@settings(max_examples=500)
@given(OBJECTS, VALUE_RULES, BATCH_ROWS)
def test_object_columns_are_judged_by_the_kind_and_value_of_every_cell(drawn, rules, batch_rows):
    assert_judged_alike(rules, objects(drawn), drawn, batch_rows)


@settings(max_examples=100)
@given(OBJECTS, VALUE_RULES)
def test_pandera_refuses_by_itself_what_the_specification_refuses(drawn, rules):
    frame = objects(drawn)
    expected = reference.evaluate(rules, [one for _, one in drawn], len(frame))

    failed = {rule["id"] for rule, one in zip(rules, expected, strict=True) if one[1]}
    assert failing_checks(rules, frame) == failed


def failing_checks(rules, frame):
    try:
        pandera_schema(quality_policy(*rules), "pandas").validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        return {error.check.name for error in errors.schema_errors}
    return set()
