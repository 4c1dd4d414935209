from dataclasses import replace

import pytest

from datasource_governance.domain.policy_version import (
    PolicyKind,
    PolicyVersion,
    recorded_approval_policy,
    recorded_quality_policy,
)
from datasource_governance.errors import GuardError
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.domain.lifecycle import MIDDAY, policy


def recorded(kind, parsed, **changes):
    facts = {
        "datasource": "orders",
        "kind": kind,
        "hash": parsed.hash,
        "version": parsed.version,
        "document": parsed.canonical,
        "attestation_id": "a",
        "created_at": MIDDAY,
    }
    return PolicyVersion(**{**facts, **changes})


@pytest.mark.parametrize(
    "authored",
    [
        quality_policy(),
        quality_policy(rule(minimum=0)),
        quality_policy(rule("range", field="id", minimum=-(2**63), maximum=0.1)),
        quality_policy(rule("referential", field="id", allowed_values=[True, 1, "1", 2**64])),
        quality_policy(schema_policy={"field_removed": "warning"}),
    ],
)
def test_a_recorded_quality_policy_is_the_one_that_was_authored(authored):
    assert recorded_quality_policy(recorded(PolicyKind.QUALITY, authored)) == authored


@pytest.mark.parametrize(
    "authored",
    [
        policy(),
        policy(expires_after_hours=None),
        policy(required=False),
        policy(required_approvals=3, separation_of_duties=False, policy_ref="p"),
    ],
)
def test_a_recorded_approval_policy_is_the_one_that_was_authored(authored):
    assert recorded_approval_policy(recorded(PolicyKind.APPROVAL, authored)) == authored


def test_a_policy_altered_after_it_was_recorded_is_not_used():
    lower = recorded(PolicyKind.QUALITY, quality_policy(rule()), hash=policy().hash)
    fewer = recorded(PolicyKind.APPROVAL, policy(), document=policy(required=False).canonical)

    for read, altered in ((recorded_quality_policy, lower), (recorded_approval_policy, fewer)):
        with pytest.raises(GuardError) as caught:
            read(altered)
        assert caught.value.code == "evidence_chain_broken"


def test_a_policy_that_was_read_before_is_not_used_once_it_was_altered():
    true = recorded(PolicyKind.QUALITY, quality_policy())
    recorded_quality_policy(true)

    with pytest.raises(GuardError) as caught:
        recorded_quality_policy(replace(true, document=quality_policy(rule()).canonical))

    assert caught.value.code == "evidence_chain_broken"


def test_a_record_that_is_no_object_is_refused():
    with pytest.raises(TypeError):
        recorded_quality_policy(recorded(PolicyKind.QUALITY, quality_policy(), document=b"[]"))
