"""Schemas as JSON documents: the types an author declares, and the schema of an earlier delivery.

Source: SPEC section 5 (`--schema` and `--previous-schema`).
"""

from datasource_governance.domain.policy_keys import FIELD_NAME, Key, Record, read_document
from datasource_governance.domain.policy_values import Choice, Flag, ListOf
from datasource_governance.domain.schema import DataType, Field, TableSchema

_NAME = Key("name", FIELD_NAME, required=True, meaning="Compared code point by code point.")
_TYPE = Key("type", Choice(DataType), required=True, meaning="The logical type.")
_NULLABLE = Key(
    "nullable",
    Flag(),
    required=True,
    meaning="Whether nulls are present, or the policy declares the field nullable.",
)


def parse_declared_types(document: object) -> dict[str, DataType]:
    """Read a list of `{name, type}` into the type by field name, in the order of the list.

    Raises:
        InvalidPolicyError: with every problem at once; a repeated or blank name is one.
    """
    return dict(read_document(DECLARED_TYPES, document, what="declared types"))


def parse_schema(document: object) -> TableSchema:
    """Read a list of `{name, type, nullable}`, which is what `TableSchema.document` returns.

    Raises:
        InvalidPolicyError: with every problem at once; a repeated or blank name is one.
    """
    return TableSchema(read_document(SCHEMA, document, what="schema"))


def _declared_type(*, name: str, type: DataType) -> tuple[str, DataType]:  # noqa: A002 - the key's name
    return name, type


DECLARED_TYPES = ListOf(
    item=Record(keys=(_NAME, _TYPE), build=_declared_type, named_by="name"),
    expected="a list of fields, each with name and type",
    repeated="duplicate_column",
    distinct_by="name",
)
"""The keys of a `--schema` document."""

SCHEMA = ListOf(
    item=Record(keys=(_NAME, _TYPE, _NULLABLE), build=Field, named_by="name"),
    expected="a list of fields, each with name, type and nullable",
    repeated="duplicate_column",
    distinct_by="name",
)
"""The keys of a `--previous-schema` document."""
