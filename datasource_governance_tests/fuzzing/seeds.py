"""Where the files of `corpus/files` come from: small ones with every type, coding and layout.

    python -m datasource_governance_tests.fuzzing.seeds

They are kept, not made anew by every run, because another version of a library writes other bytes.
"""

import datetime as dt
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from datasource_governance_tests.fuzzing.campaign import CORPUS
from datasource_governance_tests.fuzzing.judging import CANARY

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
MARKED = {b"datasource_governance": b"mixed"}
KINDS = pa.array(
    [{"kind": "number", "value": b"1"}, {"kind": "text", "value": CANARY.encode()}, None]
)
VIEWS = pa.array(["a", CANARY, None], pa.string_view())
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([CANARY, "b"]))
COMMON = {
    "whole": pa.table(
        {"a": pa.array([1, -(2**63), None]), "b": pa.array([0, 2**64 - 1, None], pa.uint64())}
    ),
    "fractions": pa.table(
        {"a": [0.1, float("nan"), None], "b": pa.array([0.5, float("inf"), -0.0], pa.float32())}
    ),
    "decimals": pa.table(
        {"a": pa.array([Decimal("0.10"), None, Decimal(-1)], pa.decimal128(38, 2))}
    ),
    "texts": pa.table({"s": [CANARY, "", None], "b": [CANARY.encode(), b"\0", None]}),
    "codes": pa.table({"s": pa.array([CANARY, "b", None]).dictionary_encode()}),
    "times": pa.table(
        {"d": [DAY, None, DAY], "t": [NOON, NOON, None], "c": [dt.time(1), None, dt.time(23)]}
    ),
    "nested": pa.table(
        {
            "l": [[CANARY, None], [], None],
            "o": [{"a": 1, "b": [True]}, None, {"a": None, "b": None}],
        }
    ),
    "maps": pa.table({"m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int8()))}),
    "booleans": pa.table({"x": [True, False, None], "n": pa.nulls(3)}),
    "empty": pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
}
ONLY_ARROW = {
    "views": pa.table({"v": VIEWS, "w": pa.array([b"a", b"b" * 20, None], pa.binary_view())}),
    "runs": pa.table({"r": RUNS}),
    "kinds": pa.Table.from_arrays(
        [KINDS], schema=pa.schema([pa.field("k", KINDS.type, metadata=MARKED)])
    ),
    "durations": pa.table({"d": pa.array([1, None, 2], pa.duration("s"))}),
    "fixed": pa.table(
        {
            "f": pa.array([b"ab", None, b"cd"], pa.binary(2)),
            "l": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        }
    ),
}
CSV = {
    "types": f"a,s,d,t,b\n1,{CANARY},2024-02-29,2024-02-29T12:00:00Z,true\n-0.5,,,,\n"
    "1e3,0123,2024-12-31,2024-12-31 00:00:00,false\n",
    "quoted": f'a,s\r\n"1","{CANARY}, ""quoted"""\r\n2,"two\r\nlines"\r\n"",x\r\n',
    "continental": f"a;s;d\n1,5;{CANARY};29.02.2024\n1.000,0;x;y\n",
    "whole": f"a\n{2**63}\n{-(2**70)}\n1\n",
    "ragged": f"a,s\n1,{CANARY}\n2,3,{CANARY}\n\n4\n",
    "mixed": f"a,d\n1,2024-02-29\nx,12:30\n{CANARY},2024-02-29T01:02:03.123456789+01:00\n",
    "one-column": f"s\n\n{CANARY}\n\n",
    "header": "a,b\n",
    "byte-order-mark": f"\ufeffa,s\n1,{CANARY}\n",
    "unclosed": f'a,s\n1,"{CANARY}\n',
}


def contents() -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file."""
    for name, text in CSV.items():
        yield f"{name}.csv", text.encode()
    for name, table in COMMON.items():
        yield f"{name}.parquet", parquet(table)
        yield (
            f"{name}-packed.parquet",
            parquet(table, compression="zstd", use_dictionary=False, data_page_version="2.0"),
        )
    for name, table in (COMMON | ONLY_ARROW).items():
        yield f"{name}.arrow", ipc(table, pa.ipc.new_file)
    for name in ("texts", "codes", "nested"):
        yield f"{name}-stream.arrow", ipc(COMMON[name], pa.ipc.new_stream)
        yield f"{name}-packed.arrow", ipc(COMMON[name], pa.ipc.new_stream, compression="lz4")


def parquet(table: pa.Table, **options: object) -> bytes:
    """Return the file without checksums, so that damage gets as far as the decoder."""
    sink = io.BytesIO()
    pq.write_table(
        table, sink, **{"compression": "none", "store_schema": len(table) > 0, **options}
    )
    return sink.getvalue()


def ipc(table: pa.Table, form: object, compression: str | None = None) -> bytes:
    """Return the file in two batches."""
    sink = io.BytesIO()
    with form(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table, 2)
    return sink.getvalue()


def write(folder: Path) -> None:
    """Write every file into the folder."""
    for name, content in contents():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write(CORPUS / "files")
