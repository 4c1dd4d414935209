"""The longest text in a dictionary of Parquet: what a value that refers to it may become.

Source: SPEC section 3, "Hostile files"; Parquet format, "Plain encoding".
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from datasource_governance.sources.limits import has_lengths
from datasource_governance.sources.parquet.pages import Chunk

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_LENGTH_BYTES = 4


def longest_texts(
    file: "pa.NativeFile",
    parquet: "pq.ParquetFile",
    group: int,
    paths: Mapping[int, str],
    chunks: Mapping[int, Chunk],
) -> dict[int, int]:
    """Return the length of the longest text of each chunk's dictionary, in bytes; or a bound of it.

    `parquet` is the file opened so that the columns at `paths` are read as dictionaries.

    Raises:
        Exception: of any kind, when a dictionary is damaged; the caller shields.
    """
    longest: dict[int, int] = {}
    unknown: dict[int, str] = {}
    for place, chunk in chunks.items():
        # What a dictionary takes as a whole is certain: nothing in it is longer.
        longest[place] = chunk.dictionary_bytes
        if place not in paths or not chunk.referring:
            continue
        if (found := _longest_of_short(file, chunk)) is not None:
            longest[place] = found
        # To look at texts of which only differences are written is to write them out.
        elif not chunk.shared:
            unknown[place] = paths[place]
    for place, dictionary in _dictionaries(parquet, group, unknown):
        # Arrow takes in a dictionary as a whole when a value refers to it, and not before.
        if len(dictionary) == chunks[place].dictionary_values:
            longest[place] = _longest(dictionary)
    return longest


def _longest_of_short(file: "pa.NativeFile", chunk: Chunk) -> int | None:
    """Return the length of the longest text if each has 1 to 255 bytes and none has three NULs.

    Such a text stands behind its length and three zeros. If every place that looks like this
    is exactly where the text before ends, these are the texts, and no other way to read them
    exists. It takes about half the time of letting Arrow hash them, which is done for all others.
    """
    import numpy as np

    page = np.frombuffer(_dictionary_page(file, chunk), np.uint8)
    zeros = np.flatnonzero(page == 0)
    starts = zeros[:-2][zeros[2:] - zeros[:-2] == 2] - 1  # noqa: PLR2004 - three in a row
    ends = starts + _LENGTH_BYTES + page[starts]
    expected = np.concatenate([[0], ends])
    found = np.concatenate([starts, [len(page)]])
    if len(starts) != chunk.dictionary_values or not np.array_equal(expected, found):
        return None
    return int(page[starts].max(initial=0))


def _dictionary_page(file: "pa.NativeFile", chunk: Chunk) -> "pa.Buffer | bytes":
    import pyarrow as pa

    stored = file.read_at(chunk.dictionary_stored_bytes, chunk.dictionary_position)
    if chunk.codec not in _CODECS:
        return stored
    return pa.Codec(_CODECS[chunk.codec]).decompress(stored, chunk.dictionary_bytes)


def _dictionaries(
    parquet: "pq.ParquetFile", group: int, paths: Mapping[int, str]
) -> Iterator[tuple[int, "pa.Array"]]:
    """Yield the dictionary that each column has in memory after its first row was read."""
    import pyarrow as pa

    if not paths:
        return
    first = next(parquet.iter_batches(1, row_groups=[group], columns=list(paths.values())))
    arrays = [array for column in first.columns for array in _leaf_arrays(column)]
    # A path that is the beginning of another's selects that as well.
    if len(arrays) != len(paths):
        return
    for place, array in zip(paths, arrays, strict=True):
        if pa.types.is_dictionary(array.type) and has_lengths(array.type.value_type):
            yield place, array.dictionary


def _leaf_arrays(array: "pa.Array") -> Iterator["pa.Array"]:
    import pyarrow as pa

    kind = array.type
    parts: Sequence[pa.Array] = ()
    if not pa.types.is_nested(kind):
        yield array
    elif pa.types.is_struct(kind):
        parts = [array.field(place) for place in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        parts = [array.keys, array.items]
    else:
        parts = [array.values]
    for part in parts:
        yield from _leaf_arrays(part)


def _longest(texts: "pa.Array") -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(texts)).as_py() or 0)
