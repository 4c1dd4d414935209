"""The acceptance cases about policies and schema comparison."""

import pytest

from datasource_governance.domain import quality_policy
from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.canonical import document_digest
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.domain.schema_diff import Change, Classification, compare_schemas
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.domain.strict_json import parse_json
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests import case_files
from datasource_governance_tests.cases import build

PARSE = {
    "quality": parse_quality_policy,
    "approval": parse_approval_policy,
    "retention": parse_retention_policy,
}


def pytest_generate_tests(metafunc):
    case_files.parametrise(
        metafunc, parse_case="policy_parse", hash_case="policy_hash", diff_case="schema_diff"
    )


def test_policy_parse_case_is_accepted_or_refused_as_expected(parse_case):
    parse = PARSE[parse_case.input.get("policy_kind", "quality")]
    document = parse_case.input.get("policy_text")
    if document is None:
        document = generated(parse_case.input["policy_build"])

    try:
        parse(document)
        problems = ()
    except InvalidPolicyError as error:
        problems = error.problems

    assert any(answers(problems, expected) for expected in parse_case.answers), problems


def answers(problems, expected):
    if expected["valid"]:
        return not problems
    kinds = expected["error"]["kind"]
    return any(
        problem.kind in ([kinds] if isinstance(kinds, str) else kinds)
        and all(name in problem.names for name in expected["error"]["names"])
        for problem in problems
    )


def generated(value):
    """Return the document with its generators replaced by the lists that they stand for."""
    if isinstance(value, dict) and "$gen" in value:
        return build.expand(value)
    if isinstance(value, dict):
        return {key: generated(item) for key, item in value.items()}
    return [generated(item) for item in value] if isinstance(value, list) else value


def test_policy_hash_case_groups_the_texts_as_expected(hash_case):
    hashes = [
        document_digest(quality_policy.HASH_DOMAIN, parse_json(text))
        for text in hash_case.input["texts"]
    ]

    groups = {}
    for index, one in enumerate(hashes):
        groups.setdefault(one, []).append(index)
    assert list(groups.values()) in [answer["groups"] for answer in hash_case.answers]
    assert {len(one) for one in hashes} == {hash_case.expected["hex_length"]}


def test_schema_diff_case_finds_and_classifies_every_change(diff_case):
    overrides = {
        Change(key): Classification(value)
        for key, value in diff_case.input.get("schema_policy", {}).items()
    }

    diff = compare_schemas(
        parse_schema(diff_case.input["previous"]),
        parse_schema(diff_case.input["current"]),
        overrides,
    )

    assert {
        "classification": diff.classification,
        "blocks_promotion": diff.classification is Classification.BREAKING,
        "changes": [
            {"change": one.change, "field": one.field, "classification": one.classification}
            for one in diff.changes
        ],
    } in diff_case.answers


@pytest.mark.parametrize(
    ("operation", "least"), [("policy_parse", 41), ("policy_hash", 8), ("schema_diff", 20)]
)
def test_packaged_cases_are_all_there(operation, least):
    assert len(case_files.load_cases(case_files.PACKAGED, operation)) >= least
