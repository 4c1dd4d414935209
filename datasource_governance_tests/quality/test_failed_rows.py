"""The statements against the native evaluator, over the same tables of real databases."""

from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.rules import Severity, UniqueRule
from datasource_governance.domain.validation import Status
from datasource_governance.evaluation.evaluate import validate
from datasource_governance.quality.failed_rows import failed_rows, relation_name
from datasource_governance.sources.sql.read import SqlSource, sql_schema

BIG = 2**53
COLUMNS = {
    "small": ("smallint", [1, 2, 2, None, -32768]),
    "whole": ("bigint", [BIG, BIG + 1, BIG + 1, None, 2**63 - 1]),
    "single": ("real", [0.1, 0.1, "-0.0", "0.0", "NaN"]),
    "double": ("double precision", [float(BIG), "Infinity", "-Infinity", "NaN", None]),
    "exact": ("numeric(20, 3)", ["1.100", "1.1", "-5", None, "99999999999999999.999"]),
    "word": ("varchar", ["a", "A", "a ", "", None]),
    'naïve "q\'uote" {{x}} 100%': ("varchar", ["ä'", "a\u0308'", "{% raw %}", "$x", "ä'"]),
    "flag": ("boolean", ["true", "false", "true", None, "true"]),
    "day": ("date", ["2024-02-29", "2024-02-29", None, "2000-01-01", "1999-12-31"]),
    "id": ("int", [1, 2, 3, 4, 5]),
}
POSTGRES_ONLY = {
    "free": ("numeric", ["0.7", "1e30", "NaN", None, "-0.0001"]),
    "padded": ("char(4)", ["ab", "ab", "c", None, "abcd"]),
    "key": ("uuid", ["00000000-0000-0000-0000-000000000001"] * 2 + [None] * 3),
    "document": ("jsonb", ['{"a": 1}', '{"a":1}', "[]", None, "1"]),
}
NUMBERS = [0, 0.1, 0.5, 1.1, -5, 2, BIG, BIG + 1, 2**63, 10**40, -32768, 1e300]
CODES = [1, 2, True, "a", "ab", "ab  ", "", 0.1, 1.1, BIG + 1, "1", 0, "ä'", "{% raw %}", 0.7]


def policy_over(columns):
    """Return a policy with rules of every kind over every column, alone and together."""
    names = list(columns)
    rules = [
        {"id": "few", "type": "row_count", "maximum": 4},
        {"id": "many", "type": "row_count", "minimum": 5, "maximum": 5},
        {"id": "any-null", "type": "not_null", "fields": names},
        {"id": "all-unique", "type": "unique", "fields": names[:4]},
        {"id": "pair-skip", "type": "unique", "fields": ["single", "flag"], "ignore_nulls": True},
        {"id": "pair", "type": "unique", "fields": ["double", "flag"]},
    ]
    for name in names:
        rules += [
            {"id": f"null {name}", "type": "not_null", "field": name},
            {"id": f"unique {name}", "type": "unique", "field": name},
            {"id": f"skip {name}", "type": "unique", "field": name, "ignore_nulls": True},
            {"id": f"codes {name}", "type": "referential", "field": name, "allowed_values": CODES},
            {
                "id": f"codes or null {name}",
                "type": "referential",
                "field": name,
                "allowed_values": [True, "A"],
                "allow_null": True,
            },
            *(
                {
                    "id": f"{side} {bound} {name}",
                    "type": "range",
                    "field": name,
                    side: bound,
                    "allow_null": side == "minimum",
                }
                for bound in NUMBERS
                for side in ("minimum", "maximum")
            ),
        ]
    return parse_quality_policy({"version": "v1", "rules": rules})


def created(columns):
    described = ", ".join(
        f'"{name.replace(chr(34), chr(34) * 2)}" {kind}' for name, (kind, _) in columns.items()
    )
    return f"CREATE TABLE measured ({described})"


def inserted(columns):
    rows = [
        "("
        + ", ".join(
            "NULL" if one is None else "'" + str(one).replace("'", "''") + "'" for one in row
        )
        + ")"
        for row in zip(*(values for _, values in columns.values()), strict=True)
    ]
    return f"INSERT INTO measured VALUES {', '.join(rows)}"


def compared(source, dialect, count):
    """Assert that each statement counts what the native evaluator counts."""
    policy = policy_over(count.columns)
    # 500 rules are the most that a policy has.
    native = {}
    for start in range(0, len(policy.rules), 400):
        part = replace(policy, rules=policy.rules[start : start + 400])
        native |= {one.id: one for one in validate(part, source).rules}
    columns = sql_schema(source)
    relation = relation_name(None, "measured", dialect)
    statements = {
        one.id: failed_rows(one.rule, columns, dialect, relation) for one in expectations(policy)
    }
    assert None not in statements.values()
    found = count(statements)
    for rule_id, expected in native.items():
        affected = expected.affected
        if expected.type == "row_count":
            affected = int(expected.status is Status.FAILED)
        assert (rule_id, found[rule_id]) == (rule_id, affected)


class Counting:
    """Counts the rows of many statements in one round trip."""

    def __init__(self, columns, execute):
        self.columns = columns
        self._execute = execute

    def __call__(self, statements):
        counted = [f"SELECT count(*) FROM ({one}) AS rows" for one in statements.values()]
        found = self._execute(
            " UNION ALL ".join(f"SELECT {n} AS n, ({one}) AS c" for n, one in enumerate(counted))
        )
        by_place = dict(found)
        return {rule_id: by_place[place] for place, rule_id in enumerate(statements)}


@pytest.mark.postgres
def test_postgres_counts_what_the_native_evaluator_counts(postgres_url, postgres_url_connection):
    columns = {**COLUMNS, **POSTGRES_ONLY}
    postgres_url_connection.execute(created(columns).encode())
    source = SqlSource(postgres_url, table="measured", order_by=("id",))
    counting = Counting(
        columns, lambda asked: postgres_url_connection.execute(asked.encode()).fetchall()
    )

    compared(source, "postgresql", counting)
    postgres_url_connection.execute(inserted(columns).encode())
    compared(source, "postgresql", counting)


def test_duckdb_counts_what_the_native_evaluator_counts(tmp_path):
    path = tmp_path / "measured.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(created(COLUMNS))
    source = SqlSource(f"duckdb:///{path}", table="measured", order_by=("id",))

    def execute(asked):
        with duckdb.connect(path) as connection:
            return connection.execute(asked).fetchall()

    counting = Counting(COLUMNS, execute)
    compared(source, "duckdb", counting)
    execute(inserted(COLUMNS))
    compared(source, "duckdb", counting)


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [
        (pa.list_(pa.int64()), "duckdb"),
        (pa.struct([("a", pa.int64())]), "postgresql"),
    ],
)
def test_keys_that_a_database_does_not_compare_as_we_do_have_no_statement(kind, dialect):
    rule = UniqueRule(id="u", severity=Severity.ERROR, fields=("a",), ignore_nulls=False)

    assert failed_rows(rule, pa.schema([("a", kind)]), dialect, '"t"') is None


def test_no_statement_selects_a_cell():
    columns = pa.schema([("a", pa.large_string()), ("b", pa.date32()), ("c", pa.decimal128(9, 2))])
    policy = parse_quality_policy(
        {
            "version": "v1",
            "rules": [
                {"id": "u", "type": "unique", "fields": ["a", "b"]},
                {"id": "n", "type": "not_null", "field": "a"},
                {"id": "r", "type": "range", "field": "c", "minimum": 1},
            ],
        }
    )
    for one in expectations(policy):
        for dialect in ("postgresql", "duckdb"):
            statement = failed_rows(one.rule, columns, dialect, '"t"')
            assert statement.startswith("SELECT 1 AS failed FROM ")
