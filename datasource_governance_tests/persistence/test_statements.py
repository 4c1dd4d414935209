"""Statements of one shape are one statement, and say by name which values they take."""

from sqlalchemy import Text, bindparam, literal, select
from sqlalchemy.dialects import postgresql

from datasource_governance.persistence import tables
from datasource_governance.persistence.statements import (
    change,
    inserted,
    insertion,
    locking_lookup,
    lookup,
    prepared,
)

NUMBERED = select(literal(7).label("seven"), bindparam("asked", type_=Text).label("asked"))
KEY = ("tenant", "id")
ACTOR = {"tenant": "t", "id": "dana", "display_name": "Dana", "created_at": None}
RUN = {"tenant": "t", "run_id": "r", "attestation_id": "a"}


def parameters(statement) -> set[str]:
    return set(compiled(statement).params)


def compiled(statement):
    return statement.compile(dialect=postgresql.dialect())


def test_a_shape_is_built_once():
    assert lookup(tables.stage, KEY) is lookup(tables.stage, KEY)
    assert insertion((tables.actor, tuple(ACTOR))) is insertion((tables.actor, tuple(ACTOR)))
    assert change(tables.datasource, ()) is change(tables.datasource, ())


def test_other_columns_are_another_shape():
    assert lookup(tables.stage, KEY) is not lookup(tables.stage, ("tenant",))


def test_a_lookup_takes_the_columns_by_their_names():
    assert parameters(lookup(tables.stage, KEY)) == set(KEY)


def test_only_a_locking_lookup_locks():
    assert "FOR UPDATE" in str(compiled(locking_lookup(tables.stage, KEY)))
    assert "FOR UPDATE" not in str(compiled(lookup(tables.stage, KEY)))


def test_rows_of_several_tables_keep_their_values_apart():
    both = insertion((tables.actor, tuple(ACTOR)), (tables.run_attestation, tuple(RUN)))

    assert parameters(both) == set(inserted(ACTOR, RUN))
    assert inserted(ACTOR, RUN)["0_tenant"] == inserted(ACTOR, RUN)["1_tenant"] == "t"
    assert inserted(ACTOR, RUN)["1_run_id"] == "r"


def test_a_change_writes_mutable_columns_where_the_key_and_what_was_there_match():
    expected = {"is_tenant", "is_id", "is_revision"}
    written = {column.name for column in tables.mutable_columns(tables.datasource)}

    assert parameters(change(tables.datasource, ("revision",))) == expected | written


def test_a_kept_statement_is_compiled_once():
    assert prepared(lookup(tables.stage, KEY)) is prepared(lookup(tables.stage, KEY))


def test_the_driver_gets_what_was_built_in_beside_what_is_given():
    sent = prepared(NUMBERED)

    assert b"%(asked)s" in sent.text
    assert sorted(map(str, sent.values({"asked": "x"}).values())) == ["7", "x"]


def test_a_statement_without_such_values_sends_what_is_given_as_it_is():
    given = {"tenant": "t", "id": "dana"}

    assert prepared(lookup(tables.stage, KEY)).values(given) is given
