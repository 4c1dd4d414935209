from decimal import Decimal

import duckdb
import pytest

from datasource_governance.quality.literals import (
    column_reference,
    number_literal,
    relation_name,
    text_literal,
)

AWKWARD = "a'b\"c\\d%s:x {{ y }} {% z %} ${v} naïve 雪 😀\n;--"
TEXTS = [AWKWARD, "", "plain_1 2"]
NUMBERS = [
    (0.1, "double precision"),
    (-1e300, "double precision"),
    (5e-324, "double precision"),
    (9007199254740993, "DECIMAL(38, 0)"),
    (-12, "bigint"),
]
# What Postgres keeps of a name is 63 bytes.
NAME = AWKWARD[:20]


def spelled(dialect):
    texts = [text_literal(one, dialect) for one in TEXTS]
    return ", ".join([*texts, *(number_literal(*one) for one in NUMBERS)])


@pytest.mark.postgres
def test_postgres_reads_every_value_and_name_as_it_was_meant(postgres_url_connection):
    run = postgres_url_connection.execute
    found = run(f"SELECT {spelled('postgresql')}".encode()).fetchone()
    relation = relation_name(None, NAME, "postgresql")
    run(f'CREATE TABLE {relation} AS SELECT 7 AS "{NAME.replace(chr(34), chr(34) * 2)}"'.encode())
    column = column_reference(NAME, "postgresql", "t")
    (kept,) = run(f"SELECT {column} FROM {relation} AS t".encode()).fetchone()

    assert list(found) == [*TEXTS, 0.1, -1e300, 5e-324, Decimal(9007199254740993), -12]
    assert kept == 7


def test_duckdb_reads_every_value_and_name_as_it_was_meant():
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {spelled('duckdb')}").fetchone()
        connection.execute(
            f'CREATE TABLE t AS SELECT 7 AS "{AWKWARD.replace(chr(34), chr(34) * 2)}"'
        )
        column = column_reference(AWKWARD, "duckdb", "u")
        (kept,) = connection.execute(f"SELECT {column} FROM t AS u").fetchone()

    assert list(found[:3]) == TEXTS
    assert [float(one) for one in found[3:]] == [0.1, -1e300, 5e-324, 9007199254740993.0, -12]
    assert kept == 7


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_nothing_that_is_spelled_has_a_character_that_a_template_looks_at(dialect):
    spelling = [text_literal(AWKWARD, dialect), column_reference(AWKWARD, dialect, "t")]

    assert not set("{}%$:") & set("".join(spelling))
