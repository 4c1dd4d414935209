"""Unique over batches finds the rows that it finds over the whole table."""

import random
from contextlib import closing

import polars as pl
import pyarrow as pa
import pytest

from datasource_governance.domain.validation import Reason, Status
from datasource_governance.evaluation.keys_on_disk import KeysOnDisk
from datasource_governance.evaluation.spill import ROW, KeyStore, Spill
from datasource_governance.sources.typed import to_typed
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.evaluation.judging import judge

IN_MEMORY = 10**9
ON_DISK = [0, 5_000]
"""Bytes of a partition: every key goes to disk, alone or with others."""


def keys_of(store, **keys):
    policy = quality_policy(rule("unique", **keys))
    return KeysOnDisk(policy, policy.rules[0], store)


def unique(table, rows_per_batch, partition_bytes, **keys):
    """Return what unique finds in the batches of a typed table."""
    with closing(Spill()) as spill:
        kept = keys_of(KeyStore(spill, partition_bytes), **keys)
        for start in range(0, table.num_rows, rows_per_batch):
            kept.add(table.slice(start, rows_per_batch), start)
        return kept.outcome()


def one_field(cells, kind=None):
    return to_typed(pa.table({"x": pa.array(cells, kind)}))


@pytest.mark.parametrize("partition_bytes", [*ON_DISK, IN_MEMORY])
@pytest.mark.parametrize("rows_per_batch", [1, 26, 27, 10_000])
@pytest.mark.parametrize("equal", [1, 2, 25, 26, 27, 28, 53, 100])
def test_equal_keys_are_counted_exactly_however_many_there_are(
    equal, rows_per_batch, partition_bytes
):
    found = unique(one_field(["a"] * equal), rows_per_batch, partition_bytes, field="x")

    affected = equal if equal > 1 else 0
    assert found.affected == affected
    assert found.rows == tuple(range(1, min(affected, 25) + 1))
    assert found.reason == (Reason.DUPLICATE if affected else None)


@pytest.mark.parametrize("rows_per_batch", [999, 5_000, 100_000])
def test_thousands_of_equal_keys_are_counted_among_keys_of_their_own(rows_per_batch):
    cells = ["often", *(f"own {row}" for row in range(2_500)), *["often"] * 6_000, "own 7", None]

    found = unique(one_field(cells), rows_per_batch, 50_000, field="x")

    assert found.affected == 6_003
    assert found.rows == (1, 9, *range(2_502, 2_525))


@pytest.mark.parametrize("partition_bytes", [*ON_DISK, IN_MEMORY])
@pytest.mark.parametrize("rows_per_batch", [7, 100, 1_000])
@pytest.mark.parametrize(("ignore_nulls", "affected"), [(False, 300), (True, 100)])
def test_nulls_beyond_those_kept_count_only_where_they_are_not_ignored(
    ignore_nulls, affected, rows_per_batch, partition_bytes
):
    cells = [None, "a", None] * 100

    found = unique(
        one_field(cells), rows_per_batch, partition_bytes, field="x", ignore_nulls=ignore_nulls
    )

    step = 3 if ignore_nulls else 1
    assert found.affected == affected
    assert found.rows == tuple(range(step - step // 2, 301, step))[:25]


def test_many_ignored_nulls_alone_are_no_failure():
    found = unique(one_field([None] * 1_000, pa.int8()), 100, 0, field="x", ignore_nulls=True)

    assert (found.status, found.affected, found.rows) == (Status.PASSED, 0, ())


@pytest.mark.parametrize("partition_bytes", [*ON_DISK, IN_MEMORY])
@pytest.mark.parametrize("rows_per_batch", [7, 100, 1_000])
@pytest.mark.parametrize("ignore_nulls", [True, False])
def test_frequent_composite_keys_are_counted_exactly(ignore_nulls, rows_per_batch, partition_bytes):
    table = to_typed(pa.table({"x": [1, 1, None, 2] * 100, "y": ["a", "a", "a", None] * 100}))
    keys = {"fields": ["y", "x"], "ignore_nulls": ignore_nulls}

    found = unique(table, rows_per_batch, partition_bytes, **keys)

    assert found.affected == (200 if ignore_nulls else 400)
    assert found == judge(table, "unique", **keys)


@pytest.mark.parametrize("rows_per_batch", [10, 60, 1_000])
def test_the_lowest_rows_of_many_frequent_keys_are_listed(rows_per_batch):
    cells = ["a", "b", "c", "own"] + ["b", "a"] * 40 + ["c"] * 100

    found = unique(one_field(cells), rows_per_batch, 0, field="x")

    assert found.affected == len(cells) - 1
    assert found.rows == (1, 2, 3, *range(5, 27))


COLUMNS = {
    "text": (pa.string(), ["", "\0", "a", "a\0", "é", "e\u0301", None]),
    "number": (pa.float64(), [0.0, -0.0, 1.5, float("inf"), float("nan"), None]),
    "single": (pa.float32(), [0.0, -0.0, 0.5, None]),
    "bytes": (pa.binary(), [b"", b"\0", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "nothing": (pa.null(), [None]),
    "list": (pa.list_(pa.string()), [[], [None], [""], ["a", "b"], ["ab"], None]),
    "struct": (
        pa.struct([("a", pa.list_(pa.float64()))]),
        [{"a": [0.0]}, {"a": [-0.0]}, {"a": None}, {"a": []}, None],
    ),
    "map": (pa.map_(pa.string(), pa.int8()), [[("k", 1)], [("k", 2)], [("k", None)], [], None]),
}
CASES = [
    *([name] for name in COLUMNS),
    ["text", "number"],
    ["list", "nothing", "boolean"],
    ["struct", "map", "single", "bytes"],
]


@pytest.mark.parametrize("ignore_nulls", [True, False])
@pytest.mark.parametrize("fields", CASES, ids="+".join)
def test_keys_of_every_shape_are_judged_as_in_one_table(fields, ignore_nulls):
    choose = random.Random("+".join(fields))
    pools = {name: COLUMNS[name] for name in fields}
    table = to_typed(
        pa.table(
            {
                name: pa.array(choose.choices(pool, k=150), kind, from_pandas=False)
                for name, (kind, pool) in pools.items()
            }
        )
    )
    keys = {"fields": fields, "ignore_nulls": ignore_nulls}

    for rows_per_batch, partition_bytes in [(1, 20_000), (17, 0), (90, 5_000), (150, IN_MEMORY)]:
        found = unique(table, rows_per_batch, partition_bytes, **keys)
        assert found == judge(table, "unique", **keys)


@pytest.mark.parametrize("hashes", [1, 2, 3])
def test_keys_are_compared_by_content_where_their_hashes_are_equal(hashes, monkeypatch):
    monkeypatch.setattr(
        pl.DataFrame,
        "hash_rows",
        lambda frame: (frame.to_series(0).cast(pl.Int64).fill_null(7) % hashes).cast(pl.UInt64),
    )
    cells = random.Random(1).choices([None, *range(40)], k=300) + [5] * 100
    table = one_field(cells, pa.int64())

    assert unique(table, 90, 300, field="x") == judge(table, "unique", field="x")
    assert unique(table, 400, 300, field="x") == judge(table, "unique", field="x")


def test_one_key_in_all_rows_takes_little_disk():
    rows, batches = 10_000, 20
    key = "x" * 1_000
    batch = one_field([key] * rows)
    with closing(Spill()) as spill:
        kept = keys_of(KeyStore(spill, 0), field="x")
        for number in range(batches):
            kept.add(batch, number * rows)
        written, _ = spill.append(pl.DataFrame())

        found = kept.outcome()

    assert (found.affected, found.rows) == (rows * batches, tuple(range(1, 26)))
    assert written < batches * 30 * len(key)


def test_field_names_are_no_patterns_and_no_places():
    names = ["1", "0", "^.*$", ROW, "*"]
    table = to_typed(pa.table({name: [1, 2, 1] for name in names} | {"0": [1, 2, 3]}))

    for fields in (["1"], ["^.*$"], [ROW], ["*"], ["1", "^.*$", ROW, "*"]):
        assert unique(table, 2, 0, fields=fields).rows == (1, 3)
        assert unique(table, 2, 0, fields=[*fields, "0"]).rows == ()


def test_without_rows_a_key_is_unique():
    with closing(Spill()) as spill:
        found = keys_of(KeyStore(spill, 0), field="x").outcome()

    assert (found.status, found.affected, found.rows) == (Status.PASSED, 0, ())


class Damaged(KeyStore):
    """Gives back cells that have no typed form, in place of the last key."""

    def partitions(self):
        yield from super().partitions()
        yield pl.DataFrame({"0": pl.Series([object()], dtype=pl.Object), ROW: [1]})


def test_a_partition_that_cannot_be_judged_leaves_the_rule_not_evaluated():
    with closing(Spill()) as spill:
        kept = keys_of(Damaged(spill, 0), field="x")
        kept.add(one_field(["a"] * 100), 0)

        found = kept.outcome()

    assert (found.status, found.reason) == (Status.ERROR, Reason.NOT_EVALUATED)
    assert (found.affected, found.rows) == (None, None)
