"""Local files as batches, and the size by which to choose between batches and one table.

Source: SPEC sections 3 and 18, "streaming, out of core".
"""

import os
from pathlib import Path

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources.arrow_ipc import ArrowBatches, decoded_arrow_bytes
from datasource_governance.sources.batches import DEFAULT_BATCH_BYTES, Batches
from datasource_governance.sources.csv.read import CsvBatches
from datasource_governance.sources.files import known_suffix
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance.sources.parquet.read import ParquetBatches, decoded_parquet_bytes
from datasource_governance.sources.refusal import refused
from datasource_governance.sources.stored import StoredFile, stored_file

_CSV, _PARQUET = ".csv", ".parquet"
_SAMPLE_BYTES = 2**16
_CELL_BYTES = 9
"""What a cell takes besides its text: an offset and, rounded up, a bit of validity."""


def scan_file(
    path: str | os.PathLike[str],
    csv: CsvOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
) -> Batches:
    """Open a local file as batches of about `batch_bytes`, by the suffix of its name.

    The formats, and the meaning of `csv`, are those of `read_file`. The file may have any size.

    Raises:
        UnreadableSourceError: kind `unknown_format`, or what the reader of the format refuses.
    """
    suffix = known_suffix(Path(path).name)
    if suffix == _PARQUET:
        return ParquetBatches(path, limits, batch_bytes)
    if suffix != _CSV:
        return ArrowBatches(path, limits, batch_bytes)
    return CsvBatches(path, csv or CsvOptions(), limits, batch_bytes)


def decoded_bytes(path: str | os.PathLike[str], csv: CsvOptions | None = None) -> int:
    """Estimate what the typed table of a local file takes in memory, without decoding it.

    Parquet and Arrow files tell by their headers. Of a CSV file the first 64 KiB tell how many
    cells a byte holds.

    Raises:
        UnreadableSourceError: kinds `unknown_format`, `not_found`, `unreadable`, and for damaged
            headers `malformed_parquet` and `malformed_arrow`.
    """
    suffix = known_suffix(Path(path).name)
    if suffix == _PARQUET:
        return decoded_parquet_bytes(path)
    if suffix != _CSV:
        return decoded_arrow_bytes(path)
    delimiter = (csv or CsvOptions()).delimiter.encode()
    with stored_file(path) as file:
        otherwise = refused(file.name, "unreadable", "the file cannot be opened or read")
        return file.read(lambda: _csv_bytes(file, delimiter), otherwise)


def _csv_bytes(file: StoredFile, delimiter: bytes) -> int:
    sample = file.reader().read_at(min(file.size, _SAMPLE_BYTES), 0)
    cells = sample.count(delimiter) + sample.count(b"\n")
    return int(file.size + file.size * cells * _CELL_BYTES // max(len(sample), 1))
