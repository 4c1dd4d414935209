"""The JSON Schema of a policy and its parser agree on all that JSON Schema can say."""

import copy
import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.json_schema import json_schema, policy_schema
from datasource_governance.domain.policy_version import POLICIES, PolicyKind
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests import case_files
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.test_cases_policies import generated

PARSE = {
    PolicyKind.QUALITY: parse_quality_policy,
    PolicyKind.APPROVAL: parse_approval_policy,
    PolicyKind.RETENTION: parse_retention_policy,
}
VALIDATORS = {kind: jsonschema.Draft202012Validator(policy_schema(kind)) for kind in POLICIES}

BEYOND_JSON_SCHEMA = {"invalid_json", "duplicate_key", "bounds_reversed", "duplicate_rule_id"}
# Of these kinds JSON Schema can say some: what the text of a number or a document is, it cannot.
ABOUT_THE_TEXT = ("significant digits", "beyond double range", "nested deeper", "lone surrogate")


def pytest_generate_tests(metafunc):
    case_files.parametrise(metafunc, parse_case="policy_parse")


def test_schema_and_parser_agree_on_a_policy_parse_case(parse_case):
    kind = PolicyKind(parse_case.input.get("policy_kind", "quality"))
    text = parse_case.input.get("policy_text")
    document = generated(parse_case.input["policy_build"]) if text is None else text

    assert_agreement(kind, document)


def assert_agreement(kind, document):
    """Compare the verdicts, unless the parser knows a reason that JSON Schema has no word for."""
    problems = problems_of(kind, document)
    expressible = [problem for problem in problems if is_expressible(problem)]
    if problems and not expressible:
        return
    value = json.loads(document) if isinstance(document, str) else document
    errors = [error.message for error in VALIDATORS[kind].iter_errors(value)]
    assert bool(errors) == bool(expressible), (document, errors, expressible)


def problems_of(kind, document):
    try:
        PARSE[kind](document)
    except InvalidPolicyError as error:
        return error.problems
    return ()


def is_expressible(problem):
    return problem.kind not in BEYOND_JSON_SCHEMA and not any(
        words in problem.message for words in ABOUT_THE_TEXT
    )


@pytest.mark.parametrize("kind", POLICIES)
def test_the_schema_of_every_policy_kind_is_a_schema(kind):
    jsonschema.Draft202012Validator.check_schema(policy_schema(kind))


@pytest.mark.parametrize("kind", POLICIES)
def test_every_key_says_what_it_means(kind):
    assert all(schema["description"] for schema in properties_of(policy_schema(kind)))


def properties_of(schema):
    for one in schema.get("properties", {}).values():
        if one.keys() != {"const"}:
            yield one
        yield from properties_of(one)
    for one in (*filter(None, [schema.get("items")]), *schema.get("oneOf", ())):
        yield from properties_of(one)


def test_a_kind_of_value_that_no_policy_has_is_no_schema():
    with pytest.raises(TypeError, match="str has no JSON Schema"):
        json_schema("a text")


def errors_of(*rules):
    return list(VALIDATORS[PolicyKind.QUALITY].iter_errors(policy_document(*rules)))


@pytest.mark.parametrize(
    "wrong",
    [
        rule(type="sum"),
        rule("range", field="a"),
        rule("not_null", field="a", fields=["b"]),
        rule("row_count", minimum=-1),
        rule("unique", fields=["a", "a"]),
        rule("required_fields", fields=["  "]),
        rule("row_count", id="line\n"),
        rule("not_null", field="nul\0"),
        rule("referential", field="a", allowed_values=[None]),
        {"type": "row_count", "minimum": 1},
    ],
    ids=json.dumps,
)
def test_a_wrong_rule_is_refused_by_both(wrong):
    assert errors_of(wrong)
    assert problems_of(PolicyKind.QUALITY, policy_document(wrong))


def test_a_list_that_is_too_long_is_refused_by_both():
    names = [str(number) for number in range(2_001)]

    assert not errors_of(rule("unique", fields=names[:-1]))
    assert errors_of(rule("unique", fields=names))
    assert problems_of(PolicyKind.QUALITY, policy_document(rule("unique", fields=names)))


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('{"version": "v", "rules": []', "invalid_json"),
        ('{"version": "v", "version": "v", "rules": []}', "duplicate_key"),
        (policy_document(rule(minimum=2, maximum=1)), "bounds_reversed"),
        (policy_document(rule(), rule()), "duplicate_rule_id"),
    ],
)
def test_what_only_the_parser_can_refuse_is_as_documented(document, kind):
    assert [problem.kind for problem in problems_of(PolicyKind.QUALITY, document)] == [kind]


NAMES = st.sampled_from(["a", "B c", "é", "tab\there"])
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9, width=32)
FIELD = st.fixed_dictionaries({"field": NAMES})
FIELDS = st.fixed_dictionaries({"fields": st.lists(NAMES, min_size=1, unique=True)})
FLAG = st.booleans()


def keys(**strategies):
    return st.fixed_dictionaries({}, optional=strategies)


def rules_of(type_, *parts):
    common = keys(severity=st.sampled_from(["error", "warning"]))
    return st.tuples(common, *parts).map(lambda found: rule(type_, **merged(found)))


def merged(documents):
    return {key: value for document in documents for key, value in document.items()}


def at_least_one(**strategies):
    return keys(**strategies).filter(bool)


CODES = st.booleans() | st.integers(0, 9) | st.text("abc", max_size=2)
RULES = st.one_of(
    rules_of("row_count", at_least_one(minimum=st.integers(0, 5), maximum=st.integers(5, 9))),
    rules_of("required_fields", FIELDS),
    rules_of("field", FIELD, at_least_one(data_type=st.just("integer"), nullable=FLAG)),
    rules_of("not_null", FIELD | FIELDS),
    rules_of("unique", FIELD | FIELDS, keys(ignore_nulls=FLAG)),
    rules_of("range", FIELD, at_least_one(minimum=NUMBERS), keys(allow_null=FLAG)),
    rules_of(
        "referential",
        FIELD,
        st.fixed_dictionaries({"allowed_values": st.lists(CODES, min_size=1, max_size=3)}),
    ),
)
REF = keys(policy_ref=st.just("wiki/7"))
DAYS = st.integers(1, 1_000_000)
POLICIES = {
    PolicyKind.QUALITY: st.tuples(
        st.lists(RULES, max_size=2),
        keys(schema_policy=keys(field_removed=st.sampled_from(["compatible", "breaking"]))),
    ).map(lambda found: policy_document(*numbered(found[0]), **found[1])),
    PolicyKind.APPROVAL: st.tuples(
        st.fixed_dictionaries({"version": st.just("v1"), "required": FLAG}),
        keys(required_approvals=st.integers(1, 3), separation_of_duties=FLAG),
        keys(expires_after_hours=st.integers(1, 24_000_000)),
        REF,
    ).map(merged),
    PolicyKind.RETENTION: st.just({})
    | st.tuples(
        st.fixed_dictionaries({"version": st.just("v1")}),
        keys(enabled=FLAG, stage_days=DAYS, materialization_days=DAYS, frozen_evidence_days=DAYS),
        REF,
    ).map(merged),
}


def numbered(rules):
    return [{**one, "id": f"r{place}"} for place, one in enumerate(rules)]


NO_TEXTS = [None, True, 0, -1, 1.5, 10**7 + 1, 10**8, [], ["a", "a"], [None], {}, {"x": 1}]
TEXTS = ["", " ", "x", "nul\0", "x" * 129, "line\n", "warning", "integer"]
WRONG = st.sampled_from([*NO_TEXTS, *TEXTS])


def places(value, path=()):
    """Return the path of every value in a document, the document itself first."""
    yield path
    if not isinstance(value, (dict, list)):
        return
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(member, (*path, key))


@st.composite
def one_fault(draw, document):
    """Return the document with one value replaced, left out, or added under an unknown key."""
    changed = copy.deepcopy(document)
    *path, last = draw(st.sampled_from(list(places(document))[1:] or [("version",)]))
    parent = changed
    for key in path:
        parent = parent[key]
    fault = draw(st.sampled_from(["replace", "remove", "add"]))
    if fault == "replace":
        parent[last] = draw(WRONG)
    elif fault == "remove" and parent:
        del parent[last]
    elif isinstance(parent, dict):
        parent["unknown"] = 1
    else:
        parent.append(draw(WRONG))
    return changed


@pytest.mark.parametrize("kind", POLICIES)
@settings(max_examples=200)
@given(st.data())
def test_schema_and_parser_agree_on_generated_policies_with_at_most_one_fault(kind, data):
    document = data.draw(POLICIES[kind])

    assert problems_of(kind, document) == ()
    assert_agreement(kind, document)
    assert_agreement(kind, data.draw(one_fault(document)))
