"""Files by their suffix.

Source: SPEC section 3.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.sources.arrow_ipc import read_arrow
from datasource_governance.sources.csv import read_csv
from datasource_governance.sources.limits import DEFAULT_LIMITS, Limits
from datasource_governance.sources.parquet import read_parquet
from datasource_governance.sources.refusal import refused

if TYPE_CHECKING:
    import pyarrow as pa

_READERS: Final[Mapping[str, Callable[[Path, Limits], "pa.Table"]]] = {
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".ipc": read_arrow,
}


def read_file(
    path: str | os.PathLike[str], csv: CsvOptions | None = None, limits: Limits = DEFAULT_LIMITS
) -> "pa.Table":
    """Read `.csv`, `.parquet`, `.arrow`, `.feather` or `.ipc`, in any case, into the typed form.

    `csv` says how a CSV file is written; other files say so themselves. No format is guessed from
    the content.

    Raises:
        UnreadableSourceError: kind `unknown_format`, or what the reader of the format refuses.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return read_csv(path, csv or CsvOptions(), limits)
    if read := _READERS.get(suffix):
        return read(path, limits)
    known = ", ".join((".csv", *_READERS))
    raise refused(path.name, "unknown_format", f"the name must end in one of {known}")
