from dataclasses import replace

import pytest

from datasource_governance.domain.canonical import digest, load_canonical
from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.quality_provider import EVALUATOR_VERSION
from datasource_governance.domain.validation import (
    FORMAT,
    MAXIMUM_ROWS_LISTED,
    Outcome,
    Reason,
    Status,
)
from datasource_governance_tests.builders import schema
from datasource_governance_tests.domain.lifecycle import outcome, sha, validation

ERROR, WARNING = Severity.ERROR, Severity.WARNING
PASSED, FAILED, NOT_EVALUATED = Status.PASSED, Status.FAILED, Status.ERROR
SAME = schema(id="integer")
WARNED = schema()
BROKEN = schema(gone="string", id="integer")


@pytest.mark.parametrize(
    ("found", "previous", "expected"),
    [
        ([], None, Outcome.READY),
        ([(ERROR, PASSED), (WARNING, PASSED)], SAME, Outcome.READY),
        ([(WARNING, FAILED)], None, Outcome.REVIEW),
        ([(WARNING, NOT_EVALUATED)], None, Outcome.REVIEW),
        ([(WARNING, FAILED)] * 30, None, Outcome.REVIEW),
        ([(ERROR, FAILED)], None, Outcome.BLOCKED),
        ([(ERROR, NOT_EVALUATED)], None, Outcome.BLOCKED),
        ([(WARNING, FAILED), (ERROR, FAILED)], SAME, Outcome.BLOCKED),
        ([(ERROR, PASSED)], WARNED, Outcome.REVIEW),
        ([(ERROR, PASSED)], BROKEN, Outcome.BLOCKED),
        ([(WARNING, FAILED)], BROKEN, Outcome.BLOCKED),
    ],
)
def test_errors_and_breaking_changes_block_and_warnings_ask_for_a_review(found, previous, expected):
    rules = [
        outcome(f"r{number}", status, severity) for number, (severity, status) in enumerate(found)
    ]

    assert validation(*rules, previous=previous).outcome is expected


@pytest.mark.parametrize(
    "found",
    [
        (),
        (outcome("a"),),
        (outcome("b"), outcome("a")),
        (outcome("a"), outcome("b"), outcome("c")),
        (outcome("a"), outcome("a"), outcome("b")),
    ],
)
def test_every_rule_needs_exactly_one_outcome_in_policy_order(found):
    with pytest.raises(ValueError, match="exactly one outcome, in policy order"):
        validation(outcome("a"), outcome("b"), rules=found)


def test_rules_are_counted_by_severity_and_status():
    found = validation(outcome("a"), outcome("b", FAILED), outcome("c", NOT_EVALUATED, WARNING))

    assert found.rule_counts == {
        "error": {"passed": 1, "failed": 1, "error": 0},
        "warning": {"passed": 0, "failed": 0, "error": 1},
    }


@pytest.mark.parametrize(
    ("affected", "rows", "truncated"),
    [
        (None, None, False),
        (0, (), False),
        (MAXIMUM_ROWS_LISTED, tuple(range(1, 26)), False),
        (MAXIMUM_ROWS_LISTED + 1, tuple(range(1, 26)), True),
    ],
)
def test_a_rule_says_when_more_rows_are_affected_than_listed(affected, rows, truncated):
    assert outcome(affected=affected, rows=rows).truncated is truncated


def test_the_document_has_the_published_form():
    found = validation(
        outcome(
            "unique",
            FAILED,
            type="unique",
            fields=("id",),
            affected=2,
            rows=(7, 9),
            reason=Reason.DUPLICATE,
        ),
        previous=WARNED,
    )

    document = found.document()

    assert document["rules"] == [
        {
            "id": "unique",
            "type": "unique",
            "severity": "error",
            "status": "failed",
            "fields": ["id"],
            "affected": 2,
            "rows": [7, 9],
            "truncated": False,
            "reason": "duplicate",
        }
    ]
    assert document["schema_diff"] == {
        "classification": "warning",
        "changes": [
            {
                "field": "id",
                "change": "field_added_required",
                "before": None,
                "after": {"type": "integer", "nullable": False},
                "classification": "warning",
            }
        ],
    }
    assert {key: document[key] for key in document if key not in {"rules", "schema_diff"}} == {
        "format": FORMAT,
        "outcome": "blocked",
        "policy": {"version": "v1", "hash": found.policy_hash},
        "rule_counts": found.rule_counts,
        "schema": [{"name": "id", "type": "integer", "nullable": False}],
        "row_count": 2,
        "byte_count": 16,
        "fingerprint": sha("payload"),
        "notices": [],
        "evaluator": {"version": EVALUATOR_VERSION, "engine": "polars"},
    }


def test_what_is_hashed_leaves_out_the_engine_and_nothing_else():
    found = validation()

    hashed = load_canonical(found.hashed_bytes())

    assert hashed == {**found.document(), "evaluator": {"version": EVALUATOR_VERSION}}
    assert found.hash == digest(FORMAT, found.hashed_bytes())
    assert replace(found, engine="pandas").hash == found.hash
    assert replace(found, row_count=3).hash != found.hash
