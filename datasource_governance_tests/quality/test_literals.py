from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from datasource_governance.quality.literals import (
    boolean_literal,
    decimal_literal,
    double_literal,
    identifier,
    text_literal,
)

AWKWARD = "a'b\"c\\d%s:x {{ y }} {% z %} ${v} naïve 雪 😀\n;--"
DOUBLES = [0.1, -1e300, 5e-324, float("inf"), float("-inf"), 9007199254740993.0]


@pytest.mark.postgres
def test_postgres_reads_every_value_as_it_was_meant(postgres_url_connection):
    texts = [AWKWARD, "", "plain_1 2"]
    selected = ", ".join(
        [
            *(text_literal(one, "postgresql") for one in texts),
            *(double_literal(one, "postgresql") for one in DOUBLES),
            decimal_literal(Fraction(-12345678901234567890123, 1000), "numeric"),
            boolean_literal(True),
        ]
    )
    found = postgres_url_connection.execute(f"SELECT {selected}".encode()).fetchone()

    assert list(found) == [*texts, *DOUBLES, Decimal("-12345678901234567890.123"), True]


@pytest.mark.postgres
def test_postgres_takes_any_name_for_a_name(postgres_url_connection):
    name = identifier(AWKWARD[:20], "postgresql")
    cursor = postgres_url_connection.execute(f"SELECT 1 AS {name}".encode())

    assert cursor.description[0].name == AWKWARD[:20]


def test_duckdb_reads_every_value_as_it_was_meant():
    texts = [AWKWARD, "", "plain_1 2"]
    selected = ", ".join(
        [
            *(text_literal(one, "duckdb") for one in texts),
            *(double_literal(one, "duckdb") for one in DOUBLES),
            decimal_literal(Fraction(-123456, 1000), "DECIMAL(10, 3)"),
            boolean_literal(False),
        ]
    )
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {selected}").fetchone()
        named = connection.execute(f"SELECT 1 AS {identifier(AWKWARD, 'duckdb')}").description

    assert list(found) == [*texts, *DOUBLES, Decimal("-123.456"), False]
    assert named[0][0] == AWKWARD


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_no_literal_has_a_character_that_a_template_looks_at(dialect):
    assert not set("{}%$:") & set(text_literal(AWKWARD, dialect))
