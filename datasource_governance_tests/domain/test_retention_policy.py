from pathlib import Path

import pytest

from datasource_governance.domain.canonical import digest
from datasource_governance.domain.retention_policy import MAXIMUM_DAYS, parse_retention_policy
from datasource_governance.errors import InvalidPolicyError

GOLDEN = Path(__file__).parent.parent / "golden" / "policies" / "retention"
CLASSES = ["stage_days", "materialization_days", "frozen_evidence_days"]


def found(document):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_retention_policy(document)

    return [(one.kind, one.pointer, one.names) for one in caught.value.problems]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_golden_policies_keep_their_hash(path):
    policy = parse_retention_policy(path.read_bytes())

    assert policy.hash == path.with_suffix(".sha256").read_text().strip()


def test_the_empty_policy_is_legal_deletes_nothing_and_has_a_hash():
    policy = parse_retention_policy("{}")

    assert (policy.version, policy.enabled) == (None, False)
    assert [getattr(policy, one) for one in CLASSES] == [None, None, None]
    assert policy.canonical == b"{}"
    assert policy.hash == digest("datasource_governance/retention_policy/v1", b"{}")


def test_a_policy_that_says_anything_says_its_version():
    assert found({"enabled": False}) == [("missing_key", "", ("version",))]


def test_an_omitted_class_is_kept_for_ever_and_nothing_is_enabled_by_default():
    policy = parse_retention_policy({"version": "v1", "stage_days": 30, "policy_ref": "ref"})

    assert (policy.version, policy.enabled, policy.policy_ref) == ("v1", False, "ref")
    assert [getattr(policy, one) for one in CLASSES] == [30, None, None]


def test_the_hash_covers_the_document_as_authored():
    short = parse_retention_policy({"version": "v1"})

    written = parse_retention_policy({"version": "v1", "enabled": False})

    assert short.canonical == b'{"version":"v1"}'
    assert written.hash != short.hash


@pytest.mark.parametrize("key", CLASSES)
@pytest.mark.parametrize("days", [0, -1, 1.5, True, None, "30", MAXIMUM_DAYS + 1])
def test_days_are_whole_and_at_least_one(key, days):
    assert found({"version": "v1", "enabled": True, key: days}) == [
        ("invalid_value", f"/{key}", (key,))
    ]


@pytest.mark.parametrize("days", [1, MAXIMUM_DAYS])
def test_days_reach_from_one_to_the_limit(days):
    assert parse_retention_policy({"version": "v1", "stage_days": days}).stage_days == days


@pytest.mark.parametrize("enabled", ["true", "false", 1, None])
def test_a_policy_is_enabled_by_true_alone(enabled):
    assert found({"version": "v1", "enabled": enabled}) == [
        ("invalid_value", "/enabled", ("enabled",))
    ]


def test_every_problem_is_reported_at_once():
    assert found('{"enabled": 0, "days": 3, "stage_days": 0, "stage_days": 0}') == [
        ("duplicate_key", "/stage_days", ("stage_days",)),
        ("unknown_key", "/days", ("days",)),
        ("missing_key", "", ("version",)),
        ("invalid_value", "/enabled", ("enabled",)),
        ("invalid_value", "/stage_days", ("stage_days",)),
    ]
