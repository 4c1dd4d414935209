"""Turn the declarative `data` of a case into real inputs.

to_arrow(data)            kind "table"
to_parquet(data, path)    kind "table"
to_dataframe(data)        kinds "table" (Arrow-backed; backend="numpy": numpy) and "dataframe"
to_csv_bytes(data)        kind "csv"
to_sql(data)              kinds "sql" and "table": PostgreSQL statements and rows
"""

import base64
import datetime as dt
import math
import re
from decimal import Decimal

FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0.0": -0.0}


DECODERS = {
    "$f": FLOATS.__getitem__,
    "$dec": Decimal,
    "$ts": dt.datetime.fromisoformat,
    "$date": dt.date.fromisoformat,
    "$time": dt.time.fromisoformat,
    "$hex": bytes.fromhex,
    "$struct": lambda body: {key: decode(value) for key, value in body.items()},
    "$na": lambda body: math.nan if body == "nan" else None,
}


def decode(value):
    """Return the Python value; every missing marker but `nan` is None."""
    if isinstance(value, dict):
        ((tag, body),) = value.items()
        return DECODERS[tag](body)
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


GENERATORS = {
    "range": lambda spec: list(range(spec["start"], spec["stop"])),
    "repeat": lambda spec: [spec["value"]] * spec["count"],
    "format": lambda spec: [
        spec["pattern"].replace("{i}", str(i)) for i in range(spec["start"], spec["stop"])
    ],
    "concat": lambda spec: [item for part in spec["parts"] for item in expand(part)],
}


def expand(values):
    """Return the list that a generator stands for; a list is itself."""
    return GENERATORS[values["$gen"]](values) if isinstance(values, dict) else values


def arrow_type(name):
    import pyarrow as pa

    builders = {
        r"decimal128\((\d+),(\d+)\)": lambda digits, scale: pa.decimal128(int(digits), int(scale)),
        r"timestamp\[(\w+)(?:, tz=(.+))?\]": lambda unit, tz: pa.timestamp(unit, tz=tz),
        r"dictionary<(.+)>": lambda of: pa.dictionary(pa.int32(), arrow_type(of)),
        r"list<(.+)>": lambda of: pa.list_(arrow_type(of)),
        r"struct<(.+)>": lambda members: pa.struct(
            [
                (member.split(":")[0], arrow_type(member.split(":")[1]))
                for member in members.split(",")
            ]
        ),
        r"(\w+)": pa.type_for_alias,
    }
    for pattern, build in builders.items():
        if match := re.fullmatch(pattern, name):
            return build(*match.groups())
    raise ValueError(name)


def to_arrow(data):
    import pyarrow as pa

    fields, arrays = [], []
    for column in data["columns"]:
        array = _array(column, arrow_type(column["arrow_type"]))
        arrays.append(array)
        fields.append(pa.field(column["name"], array.type, nullable=column.get("nullable", True)))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _array(column, type_):
    import pyarrow as pa

    values = [decode(value) for value in expand(column["values"])]
    if pa.types.is_floating(type_):
        values = [None if value is None else float(value) for value in values]
    if pa.types.is_decimal(type_):
        step = Decimal(1).scaleb(-type_.scale)
        values = [None if value is None else value.quantize(step) for value in values]
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_, from_pandas=False)


def to_parquet(data, path):
    import pyarrow.parquet as pq

    pq.write_table(to_arrow(data), path)


def to_dataframe(data, backend="arrow"):
    import pandas as pd

    if data["kind"] == "table":
        table = to_arrow(data)
        return (
            table.to_pandas() if backend == "numpy" else table.to_pandas(types_mapper=pd.ArrowDtype)
        )
    series = [_series(column) for column in data["columns"]]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = [column["name"] for column in data["columns"]]
    if index := data.get("index"):
        frame.index = _index(index)
    return frame


def _series(column):
    import pandas as pd
    import pyarrow as pa

    values, dtype = [_marked(value) for value in expand(column["values"])], column["pandas_dtype"]
    if dtype.startswith("arrow:"):
        type_ = arrow_type(dtype.removeprefix("arrow:"))
        array = pa.array(values, type_, from_pandas=False)
        return pd.Series(pd.array(array, dtype=pd.ArrowDtype(type_)))
    if dtype == "category":
        present = dict.fromkeys(value for value in values if value is not None)
        return pd.Series(
            pd.Categorical(values, categories=column.get("categories") or list(present))
        )
    return pd.Series(values, dtype=dtype)


def _marked(value):
    """Decode, but keep the very marker for missing that the case asks for."""
    import numpy as np
    import pandas as pd

    if isinstance(value, dict) and "$na" in value:
        return {"NA": pd.NA, "NaT": pd.NaT, "nan": np.nan, "None": None}[value["$na"]]
    return decode(value)


def _index(index):
    import pandas as pd

    if "levels" in index:
        return pd.MultiIndex.from_arrays(index["levels"], names=index["names"])
    return pd.Index(index["values"], name=index.get("name"))


def to_csv_bytes(data):
    if "bytes_base64" in data:
        return base64.b64decode(data["bytes_base64"])
    return data["text"].encode(data.get("file_encoding", "utf-8"))


SQL_TYPES = {
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float32": "real",
    "float64": "double precision",
    "bool": "boolean",
    "string": "text",
    "large_string": "text",
    "date32": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
    "binary": "bytea",
}


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def to_sql(data, table=None):
    """Return the CREATE TABLE and INSERT statements and the rows.

    For kind "table" a first column `_row` (primary key from 1) keeps the order. Leave it out when
    reading, or take it as one more field: no case forbids those.
    """
    name = quote(table or data.get("table", "t"))
    definitions, names, rows = (
        _sql_table(data) if data["kind"] == "sql" else _sql_table_of_columns(data)
    )
    columns = ", ".join(quote(column) for column in names).replace("%", "%%")
    places = ", ".join(["%s"] * len(names))
    return (
        f"CREATE TABLE {name} ({', '.join(definitions)})",
        f"INSERT INTO {name.replace('%', '%%')} ({columns}) VALUES ({places})",
        rows,
    )


def _sql_table(data):
    definitions = [
        f"{quote(column['name'])} {column['sql_type']}"
        + (" NOT NULL" if column.get("not_null") else "")
        for column in data["columns"]
    ]
    if key := data.get("primary_key"):
        definitions.append(f"PRIMARY KEY ({', '.join(quote(part) for part in key)})")
    rows = [[decode(value) for value in row] for row in data["rows"]]
    return definitions, [column["name"] for column in data["columns"]], rows


def _sql_table_of_columns(data):
    definitions = ["_row bigint PRIMARY KEY"]
    for column in data["columns"]:
        decimal = re.fullmatch(r"decimal128\((\d+),(\d+)\)", column["arrow_type"])
        sql_type = (
            "numeric({},{})".format(*decimal.groups())
            if decimal
            else SQL_TYPES[column["arrow_type"]]
        )
        definitions.append(f"{quote(column['name'])} {sql_type}")
    columns = [[decode(value) for value in expand(c["values"])] for c in data["columns"]]
    rows = [[number, *row] for number, row in enumerate(zip(*columns, strict=True), start=1)]
    return definitions, ["_row", *(column["name"] for column in data["columns"])], rows
