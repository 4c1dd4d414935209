import hashlib
import itertools
import math
import struct
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.evaluation.fingerprint import fingerprint, type_spelling
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.typed import to_typed

ONE_OF_TWO = pa.py_buffer(b"\1")
"""Validity bits: a value, then a null. What lies under the null is garbage."""
OVER_NUMBER = pa.Array.from_buffers(
    pa.int64(), 2, [ONE_OF_TWO, pa.py_buffer(struct.pack("<qq", 1, 9))]
)
OVER_TEXT = pa.Array.from_buffers(
    pa.string(), 2, [ONE_OF_TWO, pa.py_buffer(struct.pack("<iii", 0, 1, 2)), pa.py_buffer(b"ab")]
)

GOLDEN = {
    "no columns": (
        pa.table({}),
        "2bdb265b0e80370619f0405d8ca16c8b33ddb6c77d42ddf85ba97d7299dc6b35",
    ),
    "no rows": (
        pa.table({"a": pa.array([], pa.int64())}),
        "2fe6665076f01339cd96fec74e656801d36de9b89985a6a9ad45096061ad55a3",
    ),
    "numbers": (
        pa.table({"n": [1, None, -1], "x": [0.5, None, -0.0]}),
        "0c3aea797d3a2421f7419f913d43527b75f5efcee75b565e97efd023f8c4a866",
    ),
    "texts": (
        pa.table(
            {
                "s": ["a", "", None, "é"],
                "b": [b"\x00", None, b"", b"a"],
            }
        ),
        "41657c17592f2aa4b06949c5832e1d0afde15761b189991a62bc0284e77050df",
    ),
    "booleans": (
        pa.table({"b": [True, None, False]}),
        "5a8baa35deb2ac54ba1291ab769c3b404ea3779b9e00076ae1737a1c6dea1410",
    ),
    "decimals": (
        pa.table({"d": pa.array([Decimal("-1.50"), None], pa.decimal128(10, 2))}),
        "6411e679d67c5d7e7ee5e18a977598361a9a270ac373b22aeec4ccd686e5b0bb",
    ),
    "instants": (
        pa.table({"t": pa.array([0, None], pa.timestamp("us", "UTC"))}),
        "24b6bfedfd9e7edb21dca56b9ee98fc5074b9c1a46da4f52947ce832fbd0e8d1",
    ),
    "lists": (
        pa.table({"l": [[1, None], None, []]}),
        "ac62008988e08753a95c974d528b959e182632c2b115355986137d7e222be16b",
    ),
    "structs": (
        pa.table({"o": [{"a": 1, "b": ["x"]}, None]}),
        "a14149f1e12dc0ace3d3cbd789577fb7da5c946c177adcf0f3d5c2df8b571b9a",
    ),
    "nulls": (
        pa.table({"z": pa.nulls(2)}),
        "6d57a08dd520d46214705a7d41f5c3c70832002d4c66cd0b1d1dbb6507cd9aa6",
    ),
}
"""Changing one of these breaks every fingerprint ever stored."""


@pytest.mark.parametrize(("table", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_golden_fingerprints_do_not_change(table, expected):
    assert fingerprint(to_typed(table))[0] == expected


def test_the_format_can_be_written_again_from_its_description():
    table = to_typed(pa.table({"n": pa.array([1, None], pa.int16()), "s": ["é", None]}))
    integers = b"\1\0" + struct.pack("<hh", 1, 0)
    texts = b"\1\0" + struct.pack("<qq", 2, 0) + "é".encode()
    columns = [
        framed(b"n") + framed(b"int16") + integers,
        framed(b"s") + framed(b"string") + texts,
    ]

    found, size = fingerprint(table)

    parts = [struct.pack(">q", 2), *(hashlib.sha256(column).digest() for column in columns)]
    domain = framed(b"datasource_governance/payload/v1")
    assert found == hashlib.sha256(domain + b"".join(map(framed, parts))).hexdigest()
    assert size == sum(map(len, columns))


def test_nested_cells_are_written_from_the_outside_in():
    table = to_typed(pa.table({"l": pa.array([[1, None], None], pa.list_(pa.int8()))}))
    cells = b"\1\0" + struct.pack("<qq", 2, 0) + b"\1\0" + b"\1\0"
    column = framed(b"l") + framed(b"list<int8>") + cells

    found, size = fingerprint(table)

    parts = [struct.pack(">q", 2), hashlib.sha256(column).digest()]
    domain = framed(b"datasource_governance/payload/v1")
    assert found == hashlib.sha256(domain + b"".join(map(framed, parts))).hexdigest()
    assert size == len(column)


def framed(part):
    return struct.pack(">q", len(part)) + part


def everything(rows=200):
    cycle = [place % 7 for place in range(rows)]
    gaps = [None if value == 3 else value for value in cycle]
    return pa.table(
        {
            "integer": pa.array(gaps, pa.int32()),
            "float": pa.array([None if one is None else one / 2 for one in gaps]),
            "single": pa.array(gaps, pa.float32()),
            "boolean": [None if one is None else one > 3 for one in gaps],
            "text": [None if one is None else "é" * one for one in gaps],
            "bytes": [None if one is None else b"\0" * one for one in gaps],
            "decimal": pa.array(gaps, pa.int64()).cast(pa.decimal128(21, 2)),
            "date": pa.array(gaps, pa.int32()).cast(pa.date32()),
            "instant": pa.array(gaps, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "list": [None if one is None else [one, None][: one % 3] for one in gaps],
            "object": [None if one is None else {"a": one, "b": [str(one)]} for one in gaps],
            "null": pa.nulls(rows),
        }
    )


EVERYTHING = everything()
OF_EVERYTHING = fingerprint(to_typed(EVERYTHING))


@given(st.lists(st.integers(0, 200), max_size=6).map(sorted))
def test_chunks_and_slices_do_not_count(cuts):
    edges = [0, *cuts, 200]
    pieces = [EVERYTHING.slice(start, end - start) for start, end in itertools.pairwise(edges)]

    assert fingerprint(to_typed(pa.concat_tables(pieces))) == OF_EVERYTHING


def test_more_rows_than_a_block_are_the_same_in_any_chunks():
    column = pa.array(range(150_000)).cast(pa.string())
    whole = pa.table({"x": column})
    cut = pa.table(
        {"x": pa.chunked_array([column[:65_535], column[65_535:65_537], column[65_537:]])}
    )

    assert fingerprint(to_typed(whole)) == fingerprint(to_typed(cut))


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "row_group_size": 7}])
def test_the_layout_of_a_file_does_not_count(tmp_path, options):
    path = tmp_path / "delivery.parquet"
    pq.write_table(EVERYTHING, path, compression="zstd", **options)

    assert fingerprint(to_typed(pq.read_table(path))) == OF_EVERYTHING


def test_frame_libraries_that_keep_the_types_keep_the_fingerprint():
    pandas_frame = EVERYTHING.to_pandas(types_mapper=pd.ArrowDtype)
    polars_frame = pl.DataFrame(EVERYTHING)

    assert fingerprint(from_data(pandas_frame)) == OF_EVERYTHING
    assert fingerprint(from_data(polars_frame)) == OF_EVERYTHING


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()),
        (pa.array(["a"]), pa.array(["a"], pa.large_string())),
        (pa.array([[1]]), pa.array([[1]], pa.large_list(pa.field("element", pa.int64())))),
        (pa.array([[1]]), pa.array([[1]], pa.list_(pa.int64(), 1))),
        (pa.array([[math.nan, 0.0]]), pa.array([[-math.nan, -0.0]])),
        (pa.array([1, None]), OVER_NUMBER),
        (pa.array(["a", None]), OVER_TEXT),
        (pa.array([["a"]]), pa.array([["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))),
        (
            pa.array([{"a": None}, None], pa.struct([("a", pa.int64())])),
            pa.StructArray.from_arrays([pa.array([None, 5])], ["a"], mask=pa.array([False, True])),
        ),
    ],
)
def test_spellings_of_the_same_content_do_not_count(one, other):
    assert of(one) == of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1]), pa.array([1], pa.int32())),
        (pa.array([1, 2]), pa.array([2, 1])),
        (pa.array([0, None]), pa.array([0, 0])),
        (pa.array(["", None]), pa.array([None, ""])),
        (pa.array(["ab", "c"]), pa.array(["a", "bc"])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([[1], []]), pa.array([[], [1]])),
        (pa.array([[None]]), pa.array([[math.nan]])),
        (pa.array([{"a": 1}]), pa.array([{"b": 1}])),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("ns"))),
        (pa.nulls(1), pa.nulls(2)),
        (pa.nulls(1), pa.nulls(1, pa.int64())),
        (pa.array([np.float16(1)]), pa.array([1], pa.float32())),
    ],
)
def test_content_and_types_count(one, other):
    assert of(one) != of(other)


def test_names_and_their_order_count():
    tables = [{"a": [1], "b": [1]}, {"b": [1], "a": [1]}, {"a": [1], "c": [1]}, {"a": [1]}]

    assert len({fingerprint(to_typed(pa.table(one)))[0] for one in tables}) == len(tables)


def test_a_mark_counts():
    frame = pd.DataFrame({"x": pd.Series([2**70], dtype=object)})
    marked = from_data(frame)

    assert fingerprint(marked) != fingerprint(
        marked.replace_schema_metadata(None).cast(pa.schema([("x", marked.schema.field(0).type)]))
    )


def of(column):
    return fingerprint(to_typed(pa.table({"x": column})))


@pytest.mark.parametrize(
    ("arrow_type", "spelling"),
    [
        (pa.large_string(), "string"),
        (pa.large_binary(), "binary"),
        (pa.int8(), "int8"),
        (pa.float16(), "halffloat"),
        (pa.float64(), "double"),
        (pa.bool_(), "bool"),
        (pa.date32(), "date32[day]"),
        (pa.time64("ns"), "time64[ns]"),
        (pa.duration("s"), "duration[s]"),
        (pa.timestamp("us", "UTC"), "timestamp[us, tz=UTC]"),
        (pa.decimal128(10, 2), "decimal128(10, 2)"),
        (pa.map_(pa.string(), pa.int8()), "map<string,int8>"),
        (pa.list_(pa.list_(pa.string_view())), "list<list<string>>"),
        (pa.struct([('a":<', pa.int8()), ("b", pa.null())]), 'struct<"a\\":<":int8,"b":null>'),
    ],
)
def test_a_type_has_one_spelling(arrow_type, spelling):
    assert type_spelling(arrow_type) == spelling
