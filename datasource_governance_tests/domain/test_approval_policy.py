import json
from pathlib import Path

import pytest

from datasource_governance.domain.approval_policy import MAXIMUM_HOURS, parse_approval_policy
from datasource_governance.domain.canonical import digest
from datasource_governance.errors import InvalidPolicyError

GOLDEN = Path(__file__).parent.parent / "golden" / "policies" / "approval"
ALL_KEYS = {
    "version": "v1",
    "required": True,
    "required_approvals": 2,
    "separation_of_duties": False,
    "expires_after_hours": 72,
    "policy_ref": "policy:promotion",
}


def found(document):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_approval_policy(document)

    return [(one.kind, one.pointer, one.names) for one in caught.value.problems]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_golden_policies_keep_their_hash(path):
    policy = parse_approval_policy(path.read_bytes())

    assert policy.hash == path.with_suffix(".sha256").read_text().strip()


def test_every_key_is_read():
    policy = parse_approval_policy(ALL_KEYS)

    assert {key: getattr(policy, key) for key in ALL_KEYS} == ALL_KEYS


def test_defaults_are_one_approval_by_another_person_that_does_not_age():
    policy = parse_approval_policy('{"version": "v1", "required": true}')

    assert json.loads(policy.canonical) == {
        "version": "v1",
        "required": True,
        "required_approvals": 1,
        "separation_of_duties": True,
        "expires_after_hours": None,
        "policy_ref": None,
    }
    assert policy.hash == digest("datasource_governance/approval_policy/v1", policy.canonical)


def test_a_default_hashes_alike_whether_written_or_left_out():
    short = parse_approval_policy({"version": "v1", "required": True})

    written = parse_approval_policy(
        {
            "separation_of_duties": True,
            "required_approvals": 1.0,
            "required": True,
            "version": "v1",
        }
    )

    assert written == short


@pytest.mark.parametrize("key", sorted(ALL_KEYS.keys() - {"required", "separation_of_duties"}))
def test_every_key_counts_in_the_hash(key):
    other = {**ALL_KEYS, key: "other" if isinstance(ALL_KEYS[key], str) else 9}

    assert parse_approval_policy(other).hash != parse_approval_policy(ALL_KEYS).hash


@pytest.mark.parametrize("key", ["required", "separation_of_duties"])
def test_both_switches_count_in_the_hash(key):
    other = {**ALL_KEYS, key: not ALL_KEYS[key]}

    assert parse_approval_policy(other).hash != parse_approval_policy(ALL_KEYS).hash


def test_every_problem_is_reported_at_once():
    document = {
        "required": "true",
        "required_approvals": 0,
        "separation_of_duties": 1,
        "expires_after_hours": None,
        "policy_ref": "",
        "approved": True,
    }

    assert found(document) == [
        ("unknown_key", "/approved", ("approved",)),
        ("missing_key", "", ("version",)),
        ("invalid_value", "/required", ("required",)),
        ("invalid_value", "/required_approvals", ("required_approvals",)),
        ("invalid_value", "/separation_of_duties", ("separation_of_duties",)),
        ("invalid_value", "/expires_after_hours", ("expires_after_hours",)),
        ("invalid_value", "/policy_ref", ("policy_ref",)),
    ]


@pytest.mark.parametrize(("hours", "legal"), [(0, False), (1, True), (MAXIMUM_HOURS, True)])
def test_expiry_is_at_least_one_hour(hours, legal):
    document = {"version": "v1", "required": True, "expires_after_hours": hours}

    if legal:
        assert parse_approval_policy(document).expires_after_hours == hours
    else:
        assert found(document)[0][0] == "invalid_value"


def test_expiry_stays_an_instant_that_can_be_computed():
    document = {"version": "v1", "required": True, "expires_after_hours": MAXIMUM_HOURS + 1}

    assert found(document) == [("invalid_value", "/expires_after_hours", ("expires_after_hours",))]


@pytest.mark.parametrize("version", ["", " \t", None, 1, "a\nb", "x" * 129])
def test_a_version_is_a_short_printable_text(version):
    assert found({"version": version, "required": True})[0][1] == "/version"
