"""A payload in batches has the verdict of the whole table, in bounded memory, and leaks nothing."""

import json
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.domain.validation import Status
from datasource_governance.errors import EvaluationError, UnreadableSourceError
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.evaluation.streaming import DEFAULT_MEMORY_BYTES, validate_batches
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.typed import to_typed
from datasource_governance_tests.builders import quality_policy, rule, schema
from datasource_governance_tests.evaluation.test_against_reference import (
    OBJECTS,
    RULES,
    TYPED,
    columns,
    objects,
)
from datasource_governance_tests.sources.refusals import CANARY, assert_says_nothing

PREVIOUS = schema(a="integer", gone="string?")
MEMORY = st.sampled_from([0, 12_000, DEFAULT_MEMORY_BYTES])
"""Every key in a partition of its own; a few of them in each; all in memory."""
CUTS = st.lists(st.integers(0, 10), max_size=12)
PAIRS = pa.struct([("key", pa.string()), ("item", pa.list_(pa.float64()))])
NESTED = {
    "lists": (
        pa.list_(pa.list_(pa.string())),
        "list",
        "own",
        [[], [None], [[]], [["a", "b"]], [["ab"]], [["a"], ["b"]]],
    ),
    "pairs": (pa.list_(pa.int8(), 2), "list", "own", [[1, 2], [None, 2], [1, None]]),
    "views": (pa.list_view(pa.string()), "list", "own", [[], ["a"], [None], ["a", None]]),
    "maps": (pa.map_(pa.string(), pa.int8()), "object", "own", [[], [("a", 1)], [("a", None)]]),
    "codes": (pa.list_(pa.dictionary(pa.int8(), pa.string())), "list", "own", [["a"], ["b"], []]),
    "structs": (
        PAIRS,
        "object",
        "own",
        [{"key": "a", "item": [-0.0]}, {"key": "a", "item": [0.0]}],
    ),
}


@dataclass
class Parts:
    """Tables as batches, and what happens after them."""

    schema: pa.Schema
    tables: list[pa.Table]
    rows_numbered: bool = True
    afterwards: object = field(default=lambda: None)

    def __iter__(self):
        yield from self.tables
        self.afterwards()


def cut(table, places, **keys):
    """Return the table in batches that end at these places, and at its end unless there is none."""
    ends = sorted(min(place, table.num_rows) for place in places)
    if ends or table.num_rows:
        ends.append(table.num_rows)
    starts = [0, *ends]
    tables = [table.slice(start, end - start) for start, end in zip(starts, ends, strict=False)]
    return Parts(table.schema, tables, **keys)


def whole(policy, table, **keys):
    return PanderaEvaluator().validate(policy, TypedPayload(table, **keys), PREVIOUS)


def assert_same_in_batches(rules, table, places, memory_bytes):
    policy = quality_policy(*rules)

    found = validate_batches(policy, cut(table, places), PREVIOUS, memory_bytes)

    assert found.hashed_bytes() == whole(policy, table).hashed_bytes()


@settings(max_examples=150)
@given(columns(TYPED | NESTED), RULES, CUTS, MEMORY)
def test_any_cutting_of_typed_columns_has_the_verdict_of_the_whole(drawn, rules, places, memory):
    arrays = [pa.array(one.values, kind, from_pandas=False) for kind, one in drawn]
    table = to_typed(pa.Table.from_arrays(arrays, names=[one.name for _, one in drawn]))

    assert_same_in_batches(rules, table, places, memory)


@settings(max_examples=60)
@given(OBJECTS, RULES, CUTS, MEMORY)
def test_any_cutting_of_marked_columns_has_the_verdict_of_the_whole(drawn, rules, places, memory):
    assert_same_in_batches(rules, from_data(objects(drawn)), places, memory)


UNIQUE = [rule("unique", id="x", field="x"), rule("unique", id="both", fields=["y", "x"])]
LARGE = to_typed(
    pa.table(
        {
            "x": [f"text {row * row % 9973}" if row % 17 else None for row in range(20_000)],
            "y": [[row % 3, None] for row in range(20_000)],
        }
    )
)


@pytest.mark.parametrize("memory_bytes", [400_000, 4_000_000])
@pytest.mark.parametrize("rows", [1_999, 10_000])
def test_keys_that_are_divided_again_and_read_together_have_the_verdict_of_the_whole(
    rows, memory_bytes
):
    assert_same_in_batches(UNIQUE, LARGE, range(rows, 20_000, rows), memory_bytes)


@pytest.mark.parametrize("table", [LARGE.slice(0, 40), LARGE.slice(0, 0)], ids=["40 rows", "none"])
def test_one_row_per_batch_and_empty_batches_between_have_the_verdict_of_the_whole(table):
    places = [place for place in range(40) for _ in range(2)]

    assert_same_in_batches(UNIQUE, table, places, 0)


def test_no_batch_at_all_is_a_payload_without_rows():
    policy = quality_policy(rule("row_count", id="rows"), *UNIQUE, rule("not_null", field="x"))
    nothing = LARGE.slice(0, 0)

    found = validate_batches(policy, Parts(nothing.schema, []), PREVIOUS)

    assert found.hashed_bytes() == whole(policy, nothing).hashed_bytes()
    assert [one.affected for one in found.rules] == [None, 0, 0, 0]


def test_a_payload_without_columns_has_a_verdict():
    policy = quality_policy(rule("row_count", id="rows"), rule("unique", field="x"))
    table = pa.table({})

    found = validate_batches(policy, Parts(table.schema, [table, table]), PREVIOUS)

    assert found.hashed_bytes() == whole(policy, table).hashed_bytes()


def test_only_the_name_of_the_engine_tells_that_there_were_batches():
    policy = quality_policy(*UNIQUE)

    found, expected = validate_batches(policy, cut(LARGE, [7])), whole(policy, LARGE)

    assert found.engine == "pandas_batches"
    assert found.document()["evaluator"] != expected.document()["evaluator"]
    assert b"pandas_batches" not in found.hashed_bytes()


def test_rows_of_an_unordered_source_are_counted_and_not_numbered():
    policy = quality_policy(*UNIQUE, rule("not_null", field="x"))

    found = validate_batches(policy, cut(LARGE, [7, 900], rows_numbered=False), PREVIOUS)

    assert found.hashed_bytes() == whole(policy, LARGE, rows_numbered=False).hashed_bytes()
    assert all(one.rows is None and one.affected for one in found.rules)
    assert found.notices == ("rows are not numbered: the source has no order",)


def test_a_payload_is_read_once():
    reads = []
    batches = cut(LARGE, [100], afterwards=lambda: reads.append("done"))

    validate_batches(quality_policy(*UNIQUE, rule("not_null", field="x")), batches)

    assert reads == ["done"]


def test_the_caller_is_told_how_many_rows_have_been_judged():
    told = []

    validate_batches(quality_policy(*UNIQUE), cut(LARGE, [100, 100, 5_000]), on_rows=told.append)

    assert told == [100, 100, 5_000, 20_000]


class PanicException(BaseException):
    """What Polars raises when its native code panics; it is no Exception."""


def fails(error):
    """Return a function that raises, with a value in the error and in reach of it."""

    def fail():
        raise error from KeyError(CANARY)

    return fail


def failing(error):
    cells = to_typed(pa.table({"x": [CANARY] * 100, "y": [[1]] * 100}))
    return cut(cells, [50], afterwards=fails(error))


@pytest.mark.parametrize(
    "error",
    [ValueError(CANARY), pa.ArrowInvalid(CANARY), OSError(CANARY), PanicException(CANARY)],
    ids=lambda error: type(error).__name__,
)
def test_batches_that_fail_leave_no_value(error):
    with pytest.raises(EvaluationError) as caught:
        validate_batches(quality_policy(*UNIQUE), failing(error))

    assert_leaves_no_value(caught.value)


def assert_leaves_no_value(error):
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in repr((error.args, vars(error)))


def test_the_refusal_of_a_source_is_handed_on_as_it_is():
    refusal = refused("file", "ragged_row", "record 3 has 2 cells", "3")

    def refuse():
        raise refusal

    batches = cut(to_typed(pa.table({"x": [CANARY]})), [], afterwards=refuse)
    with pytest.raises(UnreadableSourceError) as caught:
        validate_batches(quality_policy(*UNIQUE), batches)

    assert caught.value is refusal
    assert_says_nothing(caught.value)


def test_memory_that_runs_out_refuses_the_source():
    with pytest.raises(UnreadableSourceError) as caught:
        validate_batches(quality_policy(*UNIQUE), failing(MemoryError(CANARY)))

    assert [problem.kind for problem in caught.value.problems] == ["too_large"]
    assert_says_nothing(caught.value)


def test_a_batch_that_is_not_of_the_schema_leaves_no_value():
    other = to_typed(pa.table({"x": [CANARY], "z": [CANARY]}))

    with pytest.raises(EvaluationError) as caught:
        validate_batches(quality_policy(*UNIQUE), Parts(LARGE.schema, [LARGE, other]))

    assert_leaves_no_value(caught.value)


def test_a_panic_while_keys_are_hashed_leaves_no_value(monkeypatch):
    def panic(_frame):
        raise PanicException(CANARY)

    monkeypatch.setattr(pl.DataFrame, "hash_rows", panic)
    with pytest.raises(EvaluationError) as caught:
        validate_batches(quality_policy(*UNIQUE), cut(LARGE, [100]))

    assert_leaves_no_value(caught.value)


def test_an_interrupt_is_no_failure_of_the_payload():
    with pytest.raises(KeyboardInterrupt):
        validate_batches(quality_policy(*UNIQUE), failing(KeyboardInterrupt()))


def test_a_rule_that_cannot_be_evaluated_in_one_batch_never_passes(monkeypatch):
    policy = quality_policy(rule("field", field="x", data_type="string"))

    def broken(_field):
        raise ValueError(CANARY)

    def break_down(rows):
        monkeypatch.setattr("datasource_governance.evaluation.kernel.logical_type", broken)

    found = validate_batches(policy, cut(LARGE, [100]), on_rows=break_down)

    assert found.rules[0].status is Status.ERROR


@contextmanager
def files_limited_to(size):
    """Let no file of this process grow beyond so many bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def bait():
    return to_typed(
        pa.table({"x": [f"{CANARY} {row}" for row in range(50_000)], "y": [[0]] * 50_000})
    )


def test_a_full_disk_leaves_no_value():
    table = bait()

    with pytest.raises(EvaluationError) as caught, files_limited_to(500_000):
        validate_batches(quality_policy(*UNIQUE), cut(table, [10_000]), memory_bytes=0)

    assert_leaves_no_value(caught.value)


def test_a_folder_for_temporary_files_that_is_not_there_leaves_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))

    with pytest.raises(EvaluationError) as caught:
        validate_batches(quality_policy(*UNIQUE), cut(bait(), [10_000]))

    assert_leaves_no_value(caught.value)


PEAK = """
import json, pathlib, sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasource_governance.evaluation.streaming import validate_batches
from datasource_governance_tests.builders import quality_policy, rule

class Made:
    rows_numbered = True
    schema = pa.schema([("x", pa.large_string()), ("y", pa.large_string())])

    def __init__(self, rows):
        self.rows = rows
        self.bytes = 0

    def __iter__(self):
        for start in range(0, self.rows, 150_000):
            numbers = pa.array(np.arange(start, min(start + 150_000, self.rows)))
            texts = pc.utf8_lpad(numbers.cast(pa.large_string()), 40, "0")
            batch = pa.table([texts, pc.utf8_reverse(texts)], schema=self.schema)
            self.bytes += batch.nbytes
            yield batch

def peak():
    # Not ru_maxrss, which a process takes over from the one that started it.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

policy = quality_policy(rule("unique", id="x", field="x"), rule("unique", id="y", field="y"))
memory_bytes = int(sys.argv[1])
validate_batches(policy, Made(1000), memory_bytes=memory_bytes)
before, made = peak(), Made(3_000_000)
found = validate_batches(policy, made, memory_bytes=memory_bytes)
told = {"peak": peak() - before, "bytes": made.bytes, "affected": [r.affected for r in found.rules]}
json.dump(told, sys.stdout)
"""
MEBIBYTE = 1024 * 1024


def peak_of(memory_bytes):
    run = subprocess.run(
        [sys.executable, "-c", PEAK, str(memory_bytes)], capture_output=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.slow
def test_memory_is_bounded_by_the_setting_and_not_by_the_payload():
    """The bound is twice the setting, and 32 MiB that three allocators keep for later."""
    bound = (2 * 64 + 32) * MEBIBYTE

    told = peak_of(64 * MEBIBYTE)
    in_memory = peak_of(2048 * MEBIBYTE)

    assert told["bytes"] > 250 * MEBIBYTE
    assert told["affected"] == in_memory["affected"] == [0, 0]
    # The control: what is not bounded takes a good half more than the bound.
    assert told["peak"] < bound < 1.4 * bound < in_memory["peak"]
