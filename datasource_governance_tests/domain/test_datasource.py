import json

import pytest

from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.datasource import (
    DatasourceKind,
    Promote,
    parse_datasource,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import policy_document, rule

APPROVAL = {"version": "v1", "required": True}
RETENTION = {"version": "v1", "enabled": True, "stage_days": 30}


def declaration(**keys):
    return {"id": "airports", "kind": "static", **keys}


def beside(**documents):
    """Return a reader of files beside the declaration: `name="text"` for `name.json`."""

    def read(name):
        try:
            return documents[name.removesuffix(".json")].encode()
        except KeyError:
            raise FileNotFoundError(name) from None

    return read


NO_FILES = beside()


def problems(document, files=NO_FILES):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_datasource(document, files)

    return caught.value.problems


def refused(**keys):
    """Return (kind, pointer) of every problem of a declaration with these keys."""
    return [(one.kind, one.pointer) for one in problems(declaration(**keys))]


def test_a_declaration_needs_no_more_than_id_and_kind():
    datasource = parse_datasource('{"id": "airports", "kind": "static"}', NO_FILES)

    assert (datasource.id, datasource.kind) == ("airports", DatasourceKind.STATIC)
    assert (datasource.description, datasource.folder) == (None, None)
    assert (datasource.owners, datasource.kinds, datasource.tags) == ((), (), {})
    assert datasource.csv == CsvOptions(delimiter=",", decimal=".", encoding="utf-8")
    assert datasource.promote is Promote.MANUAL
    assert datasource.quality_policy is None
    assert datasource.approval_policy is None
    assert datasource.retention_policy is None
    assert datasource.allow_supplied_policy is False


def test_every_key_is_read():
    datasource = parse_datasource(
        declaration(
            kind="cached",
            description="Airports\nof the world",
            owners=["data@example.org", "team:Data stewards"],
            kinds=["csv", "postgres"],
            tags={"domain": "aviation", "example/tier": ""},
            source={"folder": "deliveries/airports"},
            csv={
                "delimiter": "\t",
                "decimal": ",",
                "encoding": "latin-1",
                "schema": {"code": "string"},
            },
            promote="automatic",
            governance={"allow_supplied_policy": True},
        ),
        beside(),
    )

    assert datasource.kind is DatasourceKind.CACHED
    assert datasource.description == "Airports\nof the world"
    assert datasource.owners == ("data@example.org", "team:Data stewards")
    assert datasource.kinds == ("csv", "postgres")
    assert datasource.tags == {"domain": "aviation", "example/tier": ""}
    assert datasource.folder == "deliveries/airports"
    assert datasource.csv == CsvOptions(
        delimiter="\t",
        decimal=",",
        encoding="latin-1",
        types={"code": DataType.STRING},
    )
    assert datasource.promote is Promote.AUTOMATIC
    assert datasource.allow_supplied_policy is True


def test_a_policy_is_the_same_inline_and_in_a_file():
    policies = {
        "quality_policy": policy_document(rule(minimum=10**30)),
        "approval_policy": APPROVAL,
        "retention_policy": RETENTION,
    }
    files = beside(**{name: json.dumps(policy) for name, policy in policies.items()})

    inline = parse_datasource(declaration(governance=policies), NO_FILES)
    named = parse_datasource(
        declaration(governance={name: f"{name}.json" for name in policies}), files
    )

    assert inline == named
    assert inline.quality_policy == parse_quality_policy(policies["quality_policy"])
    assert inline.approval_policy == parse_approval_policy(APPROVAL)
    assert inline.retention_policy == parse_retention_policy(RETENTION)


def test_problems_in_a_policy_file_carry_its_name_and_the_pointer_into_it():
    document = declaration(
        governance={"quality_policy": "quality.json", "retention_policy": "retention.json"}
    )
    files = beside(
        quality='{"version": "v1", "rules": [{"id": "x", "type": "row_count", "minimum": -1}]}',
        retention="{",
    )

    first, second = problems(document, files)

    assert (first.kind, first.pointer) == ("invalid_value", "/governance/quality_policy")
    assert first.message == (
        "quality.json/rules/0/minimum: expected an integer of 0 or more, got -1"
    )
    assert {"x", "minimum"} <= set(first.names)
    assert (second.kind, second.pointer) == ("invalid_json", "/governance/retention_policy")
    assert second.message.startswith("retention.json: not JSON at line 1")


def test_problems_in_an_inline_policy_have_their_pointer_in_the_declaration():
    text = """{"id": "a", "kind": "static", "governance": {"quality_policy": {"version": "v1",
        "rules": [
            {"id": "x", "type": "range", "field": "\\u0000", "minimum": 1e999, "low": 0}]}}}"""

    assert [(one.kind, one.pointer) for one in problems(text)] == [
        ("invalid_text", "/governance/quality_policy/rules/0/field"),
        ("invalid_value", "/governance/quality_policy/rules/0/minimum"),
        ("unknown_key", "/governance/quality_policy/rules/0/low"),
    ]


def test_a_missing_policy_file_is_named():
    (problem,) = problems(declaration(governance={"approval_policy": "approval.json"}))

    assert (problem.kind, problem.pointer) == ("invalid_value", "/governance/approval_policy")
    assert "approval.json" in problem.message


def test_problems_of_declaration_and_policies_are_reported_at_once():
    document = {
        "id": "Airports",
        "owner": "team:data",
        "source": {"sql": "select 1"},
        "governance": {"quality_policy": {}, "approval_policy": [], "artifact_evaluations": "here"},
    }

    assert [(one.kind, one.pointer) for one in problems(document)] == [
        ("unknown_key", "/owner"),
        ("missing_key", ""),
        ("invalid_value", "/id"),
        ("unknown_key", "/source/sql"),
        ("missing_key", "/source"),
        ("unknown_key", "/governance/artifact_evaluations"),
        ("missing_key", "/governance/quality_policy"),
        ("missing_key", "/governance/quality_policy"),
        ("invalid_value", "/governance/approval_policy"),
    ]


@pytest.mark.parametrize("name", ["a", "a" * 63, "a_1"])
def test_ids_have_up_to_63_characters(name):
    assert parse_datasource(declaration(id=name), NO_FILES).id == name


@pytest.mark.parametrize("name", ["", "a" * 64, "1a", "_a", "A", "a-b", "a\n", "é", None, 1])
def test_other_ids_are_refused(name):
    assert refused(id=name) == [("invalid_value", "/id")]


@pytest.mark.parametrize("folder", ["a", "a/b", "a/b/", "./a", "..a", "a..", "a b"])
def test_a_folder_is_below_the_declaration(folder):
    assert parse_datasource(declaration(source={"folder": folder}), NO_FILES).folder == folder


@pytest.mark.parametrize("folder", ["", "/a", "..", "../a", "a/../b", "a/..", "a//b", "a\\b", 1])
def test_a_folder_elsewhere_is_refused(folder):
    assert refused(source={"folder": folder}) == [("invalid_value", "/source/folder")]


@pytest.mark.parametrize(
    "name", ["policy.yaml", "../policy.json", "a/b.json", ".json", "", 1, None]
)
def test_a_policy_file_lies_beside_the_declaration(name):
    assert refused(governance={"quality_policy": name}) == [
        ("invalid_value", "/governance/quality_policy")
    ]


@pytest.mark.parametrize(
    ("keys", "pointer"),
    [
        ({"kind": "streamed"}, "/kind"),
        ({"description": ""}, "/description"),
        ({"owners": "team:data"}, "/owners"),
        ({"owners": ["team:"]}, "/owners/0"),
        ({"owners": ["somebody"]}, "/owners/0"),
        ({"owners": ["team:a", "team:a"]}, "/owners/1"),
        ({"kinds": [str(number) for number in range(11)]}, "/kinds"),
        ({"kinds": ["a b"]}, "/kinds/0"),
        ({"tags": ["a"]}, "/tags"),
        ({"tags": {"a b": "c"}}, "/tags/a b"),
        ({"tags": {"a": 1}}, "/tags/a"),
        ({"tags": {"a": "b c"}}, "/tags/a"),
        ({"source": {"folder": None}}, "/source/folder"),
        ({"csv": {"delimiter": ""}}, "/csv/delimiter"),
        ({"csv": {"delimiter": "||"}}, "/csv/delimiter"),
        ({"csv": {"delimiter": '"'}}, "/csv/delimiter"),
        ({"csv": {"decimal": ";"}}, "/csv/decimal"),
        ({"csv": {"encoding": "latin-99"}}, "/csv/encoding"),
        ({"csv": {"encoding": "rot13"}}, "/csv/encoding"),
        ({"csv": {"encoding": 1252}}, "/csv/encoding"),
        ({"csv": {"schema": {"a": "int"}}}, "/csv/schema/a"),
        ({"csv": {"schema": {" ": "integer"}}}, "/csv/schema/ "),
        ({"promote": "always"}, "/promote"),
        ({"governance": {"allow_supplied_policy": "yes"}}, "/governance/allow_supplied_policy"),
    ],
    ids=str,
)
def test_a_value_that_is_not_of_its_kind_is_refused(keys, pointer):
    assert refused(**keys) == [("invalid_value", pointer)]


def test_ten_kinds_are_enough():
    kinds = [str(number) for number in range(10)]

    assert parse_datasource(declaration(kinds=kinds), NO_FILES).kinds == tuple(kinds)


def test_what_is_published_is_neither_delivered_nor_promoted_without_anybody():
    delivered = {"source": {"folder": "deliveries"}, "promote": "automatic"}
    conflicting = ("conflicting_keys", "")

    assert refused(kind="published", **delivered) == [conflicting, conflicting]
    assert (
        parse_datasource(declaration(kind="published", promote="manual"), NO_FILES).folder is None
    )
    assert parse_datasource(declaration(**delivered), NO_FILES).promote is Promote.AUTOMATIC


def test_delimiter_and_decimal_sign_differ_also_where_one_is_the_default():
    assert refused(csv={"decimal": ","}) == [("conflicting_keys", "/csv")]
    assert refused(csv={"delimiter": "."}) == [("conflicting_keys", "/csv")]


def test_control_characters_are_refused_where_texts_are_shown_on_one_line():
    assert refused(owners=["team:a\tb"]) == [("invalid_text", "/owners/0")]
