import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.domain.schema_document import parse_declared_types, parse_schema
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.builders import schema

names = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=5
).filter(lambda text: text.strip())
schemas = st.lists(
    st.builds(Field, name=names, type=st.sampled_from(list(DataType)), nullable=st.booleans()),
    max_size=4,
    unique_by=lambda field: field.name,
).map(TableSchema.of)


def found(parse, document):
    with pytest.raises(InvalidPolicyError) as caught:
        parse(document)

    return [(one.kind, one.pointer, one.names) for one in caught.value.problems]


def test_declared_types_are_by_field_name_in_order():
    text = '[{"name": "b", "type": "number"}, {"type": "string", "name": "a"}]'

    assert list(parse_declared_types(text).items()) == [
        ("b", DataType.NUMBER),
        ("a", DataType.STRING),
    ]
    assert parse_declared_types("[]") == {}


def test_a_schema_keeps_the_order_of_its_fields():
    text = """[{"name": "b", "type": "number", "nullable": true},
               {"name": "a", "type": "unknown", "nullable": false}]"""

    assert parse_schema(text) == schema(b="number?", a="unknown")


@given(schemas)
def test_a_schema_reads_back_from_its_document(one):
    assert parse_schema(one.document()) == one


@pytest.mark.parametrize("parse", [parse_declared_types, parse_schema])
@pytest.mark.parametrize("document", ["{}", '{"a": "integer"}', "null", '"a"'])
def test_a_schema_document_is_a_list(parse, document):
    assert found(parse, document) == [("invalid_value", "", ())]


def test_every_problem_of_declared_types_is_reported_at_once():
    text = """[{"name": "a", "type": "int"}, {"name": " ", "type": "date"},
               {"name": "a", "type": "date", "nullable": true}, {"type": "date"}, "b",
               {"name": "\\u0000", "type": "date"},
               {"name": "c", "type": "date", "type": "date"}]"""

    assert found(parse_declared_types, text) == [
        ("invalid_text", "/5/name", ("name",)),
        ("duplicate_key", "/6/type", ("c", "type")),
        ("duplicate_column", "/2/name", ("name", "a")),
        ("invalid_value", "/0/type", ("a", "type")),
        ("invalid_value", "/1/name", (" ", "name")),
        ("unknown_key", "/2/nullable", ("a", "nullable")),
        ("missing_key", "/3", ("name",)),
        ("invalid_value", "/4", ()),
    ]


def test_a_schema_says_of_every_field_whether_it_is_nullable():
    text = '[{"name": "a", "type": "date"}, {"name": "b", "type": "date", "nullable": null}]'

    assert found(parse_schema, text) == [
        ("missing_key", "/0", ("a", "nullable")),
        ("invalid_value", "/1/nullable", ("b", "nullable")),
    ]


def test_names_that_only_look_alike_are_several_fields():
    names = ["\u00e9", "e\u0301", "\u00c9", " \u00e9"]

    types = parse_declared_types([{"name": name, "type": "date"} for name in names])

    assert list(types) == names
