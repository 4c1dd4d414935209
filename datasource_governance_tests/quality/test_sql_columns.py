"""What a column's type leaves out of a statement, and how names and texts are spelled in one.

That the counts are those of the native evaluator is told by the tests of the statements.
"""

import duckdb
import pyarrow as pa
import pytest

from datasource_governance.domain.rules import RangeRule, Severity
from datasource_governance.quality.literals import column_reference, relation_name, text_literal
from datasource_governance.quality.sql_columns import ALWAYS, NEVER, sql_column

AWKWARD = 'it\'s "{{ x }}" {% y %} ${z} %s :n \\ \0 é😀'
WIDE = ("5", str(2**63), str(2**100), str(2**127 - 1), None)


def bounds(minimum=None, maximum=None):
    return RangeRule(
        id="r",
        severity=Severity.ERROR,
        field="x",
        minimum=minimum,
        maximum=maximum,
        allow_null=False,
    )


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
@pytest.mark.parametrize("kind", [pa.bool_(), pa.large_string(), pa.date32(), pa.list_(pa.int8())])
def test_every_value_that_is_no_number_is_out_of_range(kind, dialect):
    assert sql_column("x", kind, dialect).outside(bounds(minimum=0)) == ALWAYS


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_codes_of_another_type_than_the_column_match_nothing(dialect):
    assert sql_column("x", pa.int64(), dialect).listed((True, "1", 0.5)) == NEVER
    assert sql_column("x", pa.bool_(), dialect).listed((1, "true")) == NEVER
    assert sql_column("x", pa.date32(), dialect).listed(("2024-02-29",)) == NEVER


def test_bounds_beyond_a_type_of_postgres_are_constants():
    column = sql_column("x", pa.int16(), "postgresql")

    assert column.outside(bounds(minimum=2**15)) == ALWAYS
    assert column.outside(bounds(minimum=-(2**15), maximum=2**15 - 1)) == NEVER


def test_wide_integers_of_duckdb_are_compared_exactly_although_they_are_told_as_others():
    column = sql_column("x", pa.int64(), "duckdb")
    inner = column.outside(bounds(minimum=2**63, maximum=2**100))
    codes = column.listed((2**63, 2**127 - 1, 2**127))
    rows = ", ".join(f"({'NULL' if one is None else one}::hugeint)" for one in WIDE)

    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {inner}, {codes} FROM (VALUES {rows}) t(x)").fetchall()

    assert found == [(True, False), (False, True), (False, False), (True, True), (None, None)]


def test_columns_of_duckdb_are_found_by_names_that_need_escapes():
    name = AWKWARD.replace("\0", "")
    spelled = column_reference(name, "duckdb", "r")

    with duckdb.connect() as connection:
        quoted = name.replace('"', '""')
        connection.execute(f'CREATE TABLE t AS SELECT 7 AS "{quoted}"')
        found = connection.execute(f"SELECT {spelled} FROM t AS r").fetchone()

    assert found == (7,)
    assert not set(spelled) & set('{}%$:\\"é')


def test_texts_have_no_special_character_in_either_dialect():
    for dialect in ("postgresql", "duckdb"):
        assert not set(text_literal(AWKWARD, dialect)) & set('{}%$:\\"é')
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {text_literal(AWKWARD, 'duckdb')}").fetchone()[0] == (
            AWKWARD
        )


def test_relations_of_postgres_have_no_special_character_but_quotes():
    assert not set(relation_name(AWKWARD, AWKWARD, "postgresql")) & set("{}%$:\\é")
