"""Evaluation gives what a plain row-by-row reading of the specification gives, on every engine.

2,000 frames, each with a policy of its own, here and in test_objects_against_reference.
"""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.evaluation.streaming import validate_batches
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.builders import quality_policy
from datasource_governance_tests.evaluation import reference

NAMES = ["a", "index", "[0]", "^.*$", 'q"uote', "``x``"]
WHOLE = [-(2**63), -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1]
FRACTIONS = [0.1, 0.5, 1.5, -0.25, 0.30000000000000004, 16777217.5]
BOUNDS = st.sampled_from([*WHOLE, *FRACTIONS, 2**63, 2**64, -(2**70), 10**30, 10**60, 255, 256])
SINGLES = [float(np.float32(x)) for x in (0.1, 0.5, 1.5, 16777216.0, 16777218.0)]
DOUBLES = [0.0, -0.0, 0.1, 0.5, 1.0, 2.0**53, 2.0**53 + 2, 1e300, math.inf, -math.inf, math.nan]
TEXTS = ["", " ", "a", "A", "1", "true", "é", "e\u0301", "null", "NA"]
DATES = [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
INSTANTS = [dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1, 12), dt.datetime(9999, 12, 31)]  # noqa: DTZ001 - local times
# The hour that a summer time of Europe ends with, twice on its clocks.
MOMENTS = [
    dt.datetime(2024, 10, 27, 0, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 1, tzinfo=dt.UTC),
]
HUNDREDTHS = [Decimal("0.10"), Decimal("0.50"), Decimal("1.00"), Decimal("-0.25")]
HUGE = [Decimal("1E+30"), Decimal("0.100"), Decimal(2**64), Decimal("1.000")]
LISTS = [[], [None], [0.0], [-0.0], [math.nan], [0.1, None], [None, 0.1]]
STRUCTS = [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": 1, "b": "x"}]
SAME_MOMENT = [MOMENTS[0], MOMENTS[0].astimezone(dt.timezone(dt.timedelta(hours=1)))]
NUMBERS = [1, 1.0, 0.1, -0.0, math.nan, math.inf, Decimal("0.10"), 2**53 + 1, 2**70]
MIXED = [*NUMBERS, True, False, "1", "", "NA", "é", "e\u0301", b"1", DATES[0], *SAME_MOMENT]
TYPED = {
    "int8": (pa.int8(), "integer", "decimal", [-128, -1, 0, 1, 127]),
    "int64": (pa.int64(), "integer", "decimal", WHOLE),
    "uint64": (pa.uint64(), "integer", "decimal", [0, 1, 2**53 + 1, 2**63, 2**64 - 1]),
    "single": (pa.float32(), "number", "single", [*SINGLES, math.nan, math.inf, -0.0, 0.0]),
    "double": (pa.float64(), "number", "double", DOUBLES),
    "decimal": (pa.decimal128(10, 2), "number", "decimal", HUNDREDTHS),
    "huge": (pa.decimal256(50, 3), "number", "decimal", HUGE),
    "boolean": (pa.bool_(), "boolean", "own", [True, False]),
    "string": (pa.string(), "string", "own", TEXTS),
    "code": (pa.dictionary(pa.int8(), pa.string()), "string", "own", TEXTS),
    "binary": (pa.binary(), "binary", "own", [b"", b"1", b"a"]),
    "date": (pa.date32(), "date", "own", DATES),
    "date64": (pa.date64(), "date", "own", DATES),
    "datetime": (pa.timestamp("us"), "datetime", "own", INSTANTS),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), "datetime", "own", MOMENTS),
    "seconds": (pa.timestamp("s"), "datetime", "own", INSTANTS),
    "time": (pa.time32("s"), "time", "own", [dt.time(0), dt.time(23, 59, 59)]),
    "list": (pa.list_(pa.float64()), "list", "own", LISTS),
    "struct": (pa.struct([("a", pa.int8()), ("b", pa.string())]), "object", "own", STRUCTS),
    "null": (pa.null(), "unknown", "own", [None]),
}
LOGICAL = ["integer", "number", "string", "boolean", "date", "datetime", "time", "list", "object"]
CODES = st.sampled_from([True, False, 0, 1, 2**53, 2**53 + 1, 0.1, 0.5, 1.5, *TEXTS, 2**70, 10**30])


def columns(kinds):
    return st.integers(0, 10).flatmap(
        lambda rows: st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).flatmap(
            lambda names: st.tuples(*(column(name, rows, kinds) for name in names))
        )
    )


def column(name, rows, kinds):
    def filled(kind):
        arrow_type, logical, precision, pool = kinds[kind]
        values = st.lists(st.sampled_from([None, *pool]), min_size=rows, max_size=rows)
        return values.map(
            lambda drawn: (arrow_type, reference.Column(name, logical, precision, drawn))
        )

    return st.sampled_from(sorted(kinds)).flatmap(filled)


FIELD = st.sampled_from(NAMES[:5])
SOME_FIELDS = st.lists(FIELD, min_size=1, max_size=3, unique=True)
FLAG = st.booleans()
BOUNDED = st.one_of(
    st.fixed_dictionaries({"minimum": BOUNDS}),
    st.fixed_dictionaries({"maximum": BOUNDS}),
    st.tuples(BOUNDS, BOUNDS).map(sorted).map(lambda two: {"minimum": two[0], "maximum": two[1]}),
)
COUNTED = st.integers(0, 12).map(lambda n: {"minimum": n, "maximum": n + 3})
RULE = st.one_of(
    COUNTED.map(lambda keys: {"type": "row_count", **keys}),
    st.fixed_dictionaries({"type": st.just("required_fields"), "fields": SOME_FIELDS}),
    st.fixed_dictionaries(
        {"type": st.just("field"), "field": FIELD, "data_type": st.sampled_from(LOGICAL)},
        optional={"nullable": FLAG},
    ),
    st.fixed_dictionaries({"type": st.just("not_null"), "fields": SOME_FIELDS}),
    st.fixed_dictionaries(
        {"type": st.just("unique"), "fields": SOME_FIELDS}, optional={"ignore_nulls": FLAG}
    ),
    st.tuples(
        st.fixed_dictionaries(
            {"type": st.just("range"), "field": FIELD}, optional={"allow_null": FLAG}
        ),
        BOUNDED,
    ).map(lambda two: two[0] | two[1]),
    st.fixed_dictionaries(
        {
            "type": st.just("referential"),
            "field": FIELD,
            "allowed_values": st.lists(CODES, min_size=1, max_size=6),
        },
        optional={"allow_null": FLAG},
    ),
)
RULES = st.lists(RULE, min_size=1, max_size=5).map(
    lambda rules: [{"id": f"r{place}", **rule} for place, rule in enumerate(rules)]
)


@dataclass
class Cut:
    """A table as batches of at most so many rows."""

    table: pa.Table
    rows: int
    rows_numbered = True

    @property
    def schema(self):
        return self.table.schema

    def __iter__(self):
        starts = range(0, self.table.num_rows, self.rows)
        return (self.table.slice(start, self.rows) for start in starts)


def on(engine):
    return lambda policy, table, _: PanderaEvaluator(engine).validate(
        policy, TypedPayload(table), None
    )


def in_batches(policy, table, batch_rows):
    """Judge batches of so many rows; memory for no key sends each to a partition of its own."""
    return validate_batches(policy, Cut(table, batch_rows), memory_bytes=0)


# What judges a table by a policy, each in its own way and all with the same result.
ENGINES = {"pandas": on("pandas"), "polars": on("polars"), "pandas in batches": in_batches}
BATCH_ROWS = st.sampled_from([1, 3, 10])
"""No table has more than 10 rows."""


@settings(max_examples=1400)
@given(columns(TYPED), RULES, BATCH_ROWS)
def test_typed_columns_are_judged_as_the_specification_reads(drawn, rules, batch_rows):
    table = pa.Table.from_arrays(
        [pa.array(one.values, arrow_type, from_pandas=False) for arrow_type, one in drawn],
        names=[one.name for _, one in drawn],
    )

    assert_judged_alike(rules, table, drawn, batch_rows)


OBJECTS = columns({"mixed": (None, "unknown", "own", MIXED)})


def objects(drawn):
    """Return a frame whose labels say nothing of the positions of its rows."""
    frame = pd.DataFrame({one.name: pd.Series(one.values, dtype=object) for _, one in drawn})
    frame.index = frame.index[::-1]
    return frame


def assert_judged_alike(rules, data, drawn, batch_rows):
    policy, table = quality_policy(*rules), from_data(data)
    expected = reference.evaluate(rules, [one for _, one in drawn], table.num_rows)

    judged = {name: validate(policy, table, batch_rows) for name, validate in ENGINES.items()}

    outcomes = {name: [found(rule) for rule in one.rules] for name, one in judged.items()}
    assert outcomes == dict.fromkeys(ENGINES, expected)
    assert len({one.hashed_bytes() for one in judged.values()}) == 1


def found(rule):
    reason = None if rule.reason is None else str(rule.reason)
    return str(rule.status), reason, rule.affected, rule.rows, rule.fields
