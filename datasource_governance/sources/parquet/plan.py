"""How to decode a Parquet file without ever holding more of it than is meant.

Source: SPEC section 3, "Hostile files".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from datasource_governance.sources.limits import (
    Limits,
    check,
    column_problems,
    nesting_problems,
    plain_bytes,
    ratio_problems,
    size_problems,
)
from datasource_governance.sources.parquet.dictionaries import longest_texts
from datasource_governance.sources.parquet.pages import Chunk, chunks_of
from datasource_governance.sources.stored import StoredFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_WEIGHED_ROWS = 2**20
"""A usual row group: its dictionary grows with every batch of it, and is weighed every time."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TEXT = "BYTE_ARRAY"
_OFFSET_BYTES = 8
_BUFFER_BYTES = 2**20


class Plan(NamedTuple):
    """The fields as the file declares them, and how much of it may be decoded at once."""

    schema: "pa.Schema"
    rows_at_once: tuple[int, ...]
    """By row group; 1 where a single row may be larger than is meant."""


class _Leaf(NamedTuple):
    """A column as Parquet has it: those of lists and structs are columns of their own."""

    path: str
    is_text: bool
    is_repeated: bool
    width: int
    """Bytes that a value takes in memory; of a text, its offset."""

    @property
    def is_sized_by_rows(self) -> bool:
        return not self.is_text and not self.is_repeated


class _Group(NamedTuple):
    """A row group: its rows, and the pages of columns of which rows do not tell the size."""

    rows: int
    chunks: Mapping[int, Chunk]


def opened(
    file: StoredFile, dictionaries: Iterable[str] = (), buffer_bytes: int = _BUFFER_BYTES
) -> "pq.ParquetFile":
    """Open a Parquet file; columns of these paths keep their texts in dictionaries.

    Of each column that much is read ahead; 0 reads a row group's column at once, as it is stored,
    which is quicker and takes as much memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = list(dictionaries)
    return pq.ParquetFile(
        file.reader(),
        arrow_extensions_enabled=False,
        page_checksum_verification=True,
        # It would hold whole row groups as they are stored.
        pre_buffer=False,
        buffer_size=buffer_bytes,
        read_dictionary=paths,
        # As the typed form has text: to widen its offsets afterwards takes a second copy. Arrow
        # keeps no dictionary of wide texts, though.
        binary_type=None if paths else pa.large_binary(),
    )


def planned(file: StoredFile, limits: Limits, batch_bytes: int) -> Plan:
    """Check a file's headers, and its dictionaries where those alone tell; plan the steps.

    Raises:
        UnreadableSourceError: kind `too_large`.
        Exception: of any kind, when the file is damaged; the caller shields.
    """
    with opened(file) as parquet:
        schema, metadata = parquet.schema_arrow, parquet.metadata
    leaves = _leaves(metadata)
    check(
        file.name,
        [
            *column_problems(max(len(schema.names), len(leaves)), limits),
            *nesting_problems(schema, limits),
            *size_problems(metadata.num_rows * sum(leaf.width for leaf in leaves), limits),
            *ratio_problems(file.size, _promised_page_bytes(metadata), limits),
        ],
    )
    groups = _groups(file, metadata, leaves)
    check(
        file.name,
        [
            *size_problems(_least_bytes(leaves, groups), limits),
            *ratio_problems(file.size, _page_bytes(groups), limits),
        ],
    )
    longest = _longest_texts(file, leaves, groups)
    most = sum(_most_bytes(leaves, group, longest[place]) for place, group in enumerate(groups))
    if most > limits.table_bytes:
        _weigh(file, limits, _repeating(leaves, groups))
    row_bytes = [_row_bytes(leaves, group, longest[place]) for place, group in enumerate(groups)]
    return Plan(schema, tuple(max(1, batch_bytes // max(size, 1)) for size in row_bytes))


def estimated_bytes(file: StoredFile) -> int:
    """Estimate from headers alone what the values of a file take in memory.

    A value that refers to a dictionary counts as the average text of that dictionary.

    Raises:
        Exception: of any kind, when the file is damaged; the caller shields.
    """
    with opened(file) as parquet:
        metadata = parquet.metadata
    leaves = _leaves(metadata)
    groups = _groups(file, metadata, leaves)
    return sum(
        _most_bytes(
            leaves, group, {place: _average(chunk) for place, chunk in group.chunks.items()}
        )
        for group in groups
    )


def _average(chunk: Chunk) -> int:
    return chunk.dictionary_bytes // max(chunk.dictionary_values, 1)


def _leaves(metadata: "pq.FileMetaData") -> list[_Leaf]:
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [
        _Leaf(
            path=column.path,
            is_text=column.physical_type == _TEXT,
            is_repeated=column.max_repetition_level > 0,
            width=_WIDTHS.get(column.physical_type) or max(column.length, _OFFSET_BYTES),
        )
        for column in columns
    ]


def _groups(file: StoredFile, metadata: "pq.FileMetaData", leaves: Sequence[_Leaf]) -> list[_Group]:
    rows = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    places = {place for place, leaf in enumerate(leaves) if not leaf.is_sized_by_rows}
    # Without such a column nobody needs to read the footer again.
    chunks = chunks_of(file.reader(), file.size, places) if places else [{} for _ in rows]
    return [_Group(*group) for group in zip(rows, chunks, strict=True)]


def _promised_page_bytes(metadata: "pq.FileMetaData") -> int:
    """Return what the footer says that all pages take once they are decompressed."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(int(group.total_byte_size) for group in groups)


def _page_bytes(groups: Iterable[_Group]) -> int:
    return sum(chunk.page_bytes for group in groups for chunk in group.chunks.values())


def _values(leaf: _Leaf, group: _Group, place: int) -> int:
    return group.rows if leaf.is_sized_by_rows else group.chunks[place].values


def _least_bytes(leaves: Sequence[_Leaf], groups: Iterable[_Group]) -> int:
    """Return values times width: what they take in memory if all texts are empty."""
    return sum(
        _values(leaf, group, place) * leaf.width
        for group in groups
        for place, leaf in enumerate(leaves)
    )


def _most_bytes(leaves: Sequence[_Leaf], group: _Group, longest: Mapping[int, int]) -> int:
    """Return what a row group takes in memory if the longest text is the one that is repeated."""
    texts = sum(
        chunk.referring * longest[place] + chunk.written + chunk.shared
        for place, chunk in group.chunks.items()
        if leaves[place].is_text
    )
    return _least_bytes(leaves, [group]) + texts


def _row_bytes(leaves: Sequence[_Leaf], group: _Group, longest: Mapping[int, int]) -> int:
    """Return what a row takes: of texts the longest, of lists the average, rounded up."""
    size = 0
    for place, leaf in enumerate(leaves):
        text = 0
        if leaf.is_text:
            text = max(group.chunks[place].widest, longest[place])
        size += (leaf.width + text) * -(-_values(leaf, group, place) // max(group.rows, 1))
    return size


def _longest_texts(
    file: StoredFile, leaves: Sequence[_Leaf], groups: Sequence[_Group]
) -> list[dict[int, int]]:
    """Return by row group the length of the longest text in each dictionary."""
    paths = {place: leaf.path for place, leaf in enumerate(leaves) if leaf.is_text}
    reader = file.reader()
    with opened(file, paths.values()) as parquet:
        return [
            longest_texts(reader, parquet, number, paths, group.chunks)
            for number, group in enumerate(groups)
        ]


def _repeating(leaves: Sequence[_Leaf], groups: Iterable[_Group]) -> list[str]:
    """Return the columns of texts that refer to dictionaries, and are written out nowhere."""
    referring, shared = set(), set()
    for group in groups:
        for place, chunk in group.chunks.items():
            if leaves[place].is_text and chunk.referring:
                referring.add(place)
            if chunk.shared:
                shared.add(place)
    return [leaves[place].path for place in sorted(referring - shared)]


def _weigh(file: StoredFile, limits: Limits, paths: Sequence[str]) -> None:
    """Refuse texts that are too many once written out, without writing them out."""
    size = 0
    with opened(file, paths) as parquet:
        batches = parquet.iter_batches(_WEIGHED_ROWS, columns=paths) if paths else ()
        for batch in batches:
            batch.validate(full=True)
            size += plain_bytes(batch)
            check(file.name, size_problems(size, limits))
