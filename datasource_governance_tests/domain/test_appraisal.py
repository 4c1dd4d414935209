import pytest

from datasource_governance.domain.appraisal import Appraisal, stored_score
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.quality_policy import Severity
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.quality_score import (
    DEFAULT_WEIGHTS,
    ScoreLevel,
    Thresholds,
    WeightClass,
)
from datasource_governance.domain.validation import Outcome, Status
from datasource_governance_tests.domain.lifecycle import outcome, sha, validation

PANDERA = ProviderBinding(name="pandera", version="0.35.0", configuration=sha("manifest"))


def appraisal(**changes):
    given = {
        "provider": PANDERA,
        "weights": DEFAULT_WEIGHTS,
        "weight_classes": {},
        "thresholds": Thresholds(),
        "gates": True,
        **changes,
    }
    return Appraisal(**given)


def test_a_validation_gets_its_provider_and_its_score():
    found = appraisal().of(validation())

    assert found.provider == PANDERA
    assert found.score.value == 100
    assert found.document()["score"] == {**found.score.document(), "gates": True}


def test_without_a_manifest_there_is_no_score():
    assert "score" not in validation().document()


WARNING = {"severity": Severity.WARNING}


@pytest.mark.parametrize(
    ("failing", "gates", "expected"),
    [
        (0, True, Outcome.READY),
        (1, True, Outcome.BLOCKED),
        (1, False, Outcome.REVIEW),
    ],
)
def test_a_score_that_gates_decides_about_the_outcome(failing, gates, expected):
    """One warning that fails of two: 50, below the minimum, whatever no error rule says."""
    rules = (
        outcome("a", status=Status.FAILED if failing else Status.PASSED, **WARNING),
        outcome("b", status=Status.PASSED, **WARNING),
    )

    found = appraisal(gates=gates).of(validation(*rules))

    assert found.outcome is expected


def test_a_score_below_the_warning_threshold_needs_review_where_it_gates():
    """The failing rule counts little, so that only the threshold is missed."""
    rules = (
        outcome("a", status=Status.FAILED, **WARNING),
        outcome("b", status=Status.PASSED, **WARNING),
        outcome("c", status=Status.PASSED, **WARNING),
        outcome("d", status=Status.PASSED, **WARNING),
    )

    found = appraisal().of(validation(*rules))

    assert (found.score.value, found.score.level) == (75, ScoreLevel.WARN)
    assert found.outcome is Outcome.REVIEW


def test_a_rule_that_the_manifest_moves_counts_as_its_class():
    rules = (
        outcome("a", status=Status.FAILED, **WARNING),
        outcome("b", status=Status.PASSED, **WARNING),
    )

    moved = appraisal(weight_classes={"a": WeightClass.STATISTICAL, "other": WeightClass.CRITICAL})

    assert moved.of(validation(*rules)).score.value == pytest.approx(100 / 1.5)


def test_a_stored_score_is_read_as_it_was_made():
    found = stored_score(load_canonical(appraisal().of(validation()).hashed_bytes()))

    assert (found.told, found.provider, found.is_blocking) == (
        "100.00 (ok)",
        "pandera 0.35.0",
        False,
    )
    assert stored_score(load_canonical(validation().hashed_bytes())) is None


def test_a_score_that_could_not_be_made_is_told_so():
    lacking = validation(outcome("a", status=Status.ERROR))

    found = stored_score(load_canonical(appraisal().of(lacking).hashed_bytes()))

    assert (found.value, found.told, found.is_blocking) == (None, "none (blocked)", True)
