"""Producer evidence: what it is worth for one artifact under one policy, and nothing more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.producer_evidence import (
    OUR_EVALUATOR,
    Judgement,
    ResultStatus,
    evidence_of,
    judge_evidence,
    needs_content,
    parse_producer_evidence,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests import case_files
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.domain.artifacts import SHA256, evidence, reference

POLICY = quality_policy(
    rule("required_fields", id="columns", fields=["id"]),
    rule("unique", id="unique", field="id"),
    rule("range", id="amount", field="n", minimum=0, severity="warning"),
)
SHAPE_ONLY = quality_policy(
    rule(id="rows"),
    rule("required_fields", id="columns", fields=["id"]),
    rule("field", id="type", field="id", data_type="integer"),
    rule("field", id="nulls", field="id", nullable=True),
)
OTHER = "b" * 64


def pytest_generate_tests(metafunc):
    case_files.parametrise(metafunc, publication_case="publication")


@pytest.mark.parametrize(
    ("given_evidence", "judgement"),
    [
        (evidence(POLICY), "accepted"),
        (evidence(POLICY, amount="failed"), "warnings"),
        (evidence(POLICY, amount="error"), "warnings"),
        (evidence(POLICY, unique="failed"), "failed"),
        (evidence(POLICY, unique="error"), "failed"),
        (evidence(POLICY, columns="failed"), "failed"),
        (None, "missing"),
        (evidence(POLICY, unique="deferred"), "deferred"),
        (evidence(POLICY, amount="deferred"), "deferred"),
        (evidence(POLICY, unique=None), "partial"),
        (evidence(POLICY, amount=None), "partial"),
        (evidence(POLICY, columns=None), "partial"),
        (evidence(POLICY, columns=None, unique=None, amount=None), "partial"),
        (evidence(POLICY, artifact_sha256=OTHER), "unbound"),
        (evidence(POLICY, policy_hash=OTHER), "unbound"),
        (evidence(POLICY, more="passed"), "unbound"),
        # What is wrong with more than one is as bad as the worst that is certain.
        (evidence(POLICY, unique="failed", amount=None), "failed"),
        (evidence(POLICY, unique="failed", amount="deferred"), "failed"),
        (evidence(POLICY, unique="deferred", amount=None), "partial"),
        (evidence(POLICY, unique="deferred", amount="failed"), "deferred"),
        (evidence(POLICY, unique="failed", artifact_sha256=OTHER), "unbound"),
        (evidence(POLICY, unique="failed", more="passed"), "unbound"),
    ],
)
def test_evidence_is_worth(given_evidence, judgement):
    assert judge_evidence(given_evidence, POLICY, reference()) == judgement


def test_rules_that_a_footer_answers_need_no_evidence_and_bear_it():
    assert not any(map(needs_content, SHAPE_ONLY.rules))
    assert judge_evidence(None, SHAPE_ONLY, reference()) == "accepted"
    assert judge_evidence(evidence(SHAPE_ONLY), SHAPE_ONLY, reference()) == "accepted"
    assert judge_evidence(evidence(SHAPE_ONLY, type="failed"), SHAPE_ONLY, reference()) == "failed"
    assert judge_evidence(None, quality_policy(), reference()) == "accepted"


@pytest.mark.parametrize(
    "asked",
    [
        rule("field", field="id", nullable=False),
        rule("field", field="id", data_type="integer", nullable=False),
        rule("not_null", field="id"),
        rule("unique", field="id"),
        rule("range", field="id", minimum=1),
        rule("referential", field="id", allowed_values=[1]),
    ],
)
def test_a_rule_about_rows_needs_evidence(asked):
    assert judge_evidence(None, quality_policy(asked), reference()) == "missing"


def test_what_is_open_needs_review_and_what_is_decided_does_not():
    assert {one for one in Judgement if one.needs_review} == {
        *("missing", "deferred", "partial", "unbound"),
    }


@given(
    st.dictionaries(
        st.sampled_from(["columns", "unique", "amount"]), st.sampled_from([*ResultStatus, None])
    )
)
def test_an_artifact_is_accepted_only_if_every_rule_passed(statuses):
    accepted = judge_evidence(evidence(POLICY, **statuses), POLICY, reference()) == "accepted"

    assert accepted == all(status == "passed" for status in statuses.values())


TERMINAL = {
    Judgement.ACCEPTED: "published",
    Judgement.WARNINGS: "published_with_warnings",
    Judgement.FAILED: None,
}


def test_publication_case_judges_evidence_as_expected(publication_case):
    """The case's results are of content rules; whoever publishes finds the others here."""
    policies = {
        name: parse_quality_policy(document)
        for name, document in publication_case.input["policies"].items()
    }
    policy = policies[publication_case.input["initial_policy"]]
    steps = zip(publication_case.input["steps"], publication_case.expected["steps"], strict=True)
    for step, expected in steps:
        policy = policies.get(step.get("policy"), policy)
        # Other matters are an object that the backend finds to be different, and a replay.
        if "artifact" not in step or "backend_checksum" in step["artifact"]:
            continue
        if expected["result"] == "replayed":
            continue
        sent = step["artifact"].get("evidence")
        judged = judge_evidence(sent and of_case(sent, policies), policy, sent_reference(step))

        assert TERMINAL.get(judged, "review_required") == expected.get("terminal")


def of_case(sent, policies):
    policy = policies[sent["policy"]]
    results = {
        one.id: {None: None, True: "passed", False: "failed"}[sent["results"].get(one.id)]
        for one in policy.rules
        if needs_content(one)
    }
    return evidence(policy, digest_of(sent["checksum"]), **results)


def sent_reference(step):
    return reference(sha256=digest_of(step["payload"]))


def digest_of(label):
    return label.encode().hex().ljust(64, "0")


def problems_of(**changes):
    document = {**evidence(POLICY).document(), **changes}
    with pytest.raises(InvalidPolicyError) as refused:
        parse_producer_evidence(document)
    return {(one.kind, one.pointer) for one in refused.value.problems}


def test_evidence_is_read_from_its_own_document():
    written = evidence(POLICY, unique="failed", amount="deferred")

    assert parse_producer_evidence(written.document()) == written
    assert parse_producer_evidence(canonical_bytes(written.document())) == written
    assert parse_producer_evidence(written.document()).hash == written.hash
    assert written.hash != evidence(POLICY).hash


def test_everything_that_is_wrong_is_said_at_once():
    results = [
        {"id": "unique", "status": "passed", "affected": -1},
        {"id": "unique", "status": "ok", "rows": [1]},
        {"status": True},
        "passed",
    ]

    assert problems_of(
        format="v1",
        artifact_sha256="A" * 64,
        policy_hash=1,
        evaluator=" ",
        results=results,
        note="",
    ) == {
        ("invalid_value", "/format"),
        ("invalid_value", "/artifact_sha256"),
        ("invalid_value", "/policy_hash"),
        ("invalid_value", "/evaluator"),
        ("unknown_key", "/note"),
        ("invalid_value", "/results/0/affected"),
        ("duplicate_rule_id", "/results/1/id"),
        ("invalid_value", "/results/1/status"),
        ("unknown_key", "/results/1/rows"),
        ("missing_key", "/results/2"),
        ("invalid_value", "/results/2/status"),
        ("invalid_value", "/results/3"),
    }


def test_a_validation_of_ours_is_evidence_about_an_artifact():
    import pyarrow as pa

    from datasource_governance import validate

    validation = validate(POLICY, pa.table({"id": [1, 1, 2], "n": [0, None, 1]}))
    found = evidence_of(validation, SHA256)

    assert [(one.id, one.status, one.affected) for one in found.results] == [
        ("columns", "passed", None),
        ("unique", "failed", 2),
        ("amount", "failed", 1),
    ]
    assert (found.evaluator, found.policy_hash) == (OUR_EVALUATOR, POLICY.hash)
    assert judge_evidence(found, POLICY, reference()) == "failed"
