"""The payload kept inline: one typed table as an Arrow IPC stream with zstd.

Source: SPEC section 10, "Inline payloads".
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datasource_governance.errors import InvalidArgumentError, Problem, UnreadableSourceError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MAXIMUM_INLINE_ROWS = 100_000
MAXIMUM_INLINE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypedPayload:
    """A typed table in memory. Its representation shows none of it.

    `rows_numbered` is False for a source without an order, such as a SQL query without `order_by`:
    what is affected can be counted, but not pointed at.
    """

    table: "pa.Table"
    rows_numbered: bool = True

    def encoded(self) -> bytes:
        """Return the Arrow IPC stream, compressed with zstd; marks of fields are kept in it.

        Raises:
            InvalidArgumentError: code `payload_too_large`, as `require_inline`.
        """
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, self.table.schema, options=options) as writer:
            writer.write_table(self.table)
        encoded = bytes(sink.getvalue())
        require_inline(row_count=self.table.num_rows, byte_count=len(encoded))
        return encoded


def decode_payload(data: bytes) -> "pa.Table":
    """Return the table of a stored payload, with every buffer checked.

    Raises:
        UnreadableSourceError: kind `malformed_arrow`, when the bytes are not a whole, valid Arrow
            IPC stream; neither the message nor a cause holds a value.
    """
    table = _decoded(data)
    if table is None:
        problem = Problem(
            kind="malformed_arrow", message="the bytes are not a whole Arrow IPC stream"
        )
        raise UnreadableSourceError("the stored payload", [problem])
    return table


def to_pandas(data: bytes) -> "pd.DataFrame":
    """Return a stored payload as a frame with Arrow dtypes, which keep every value exact.

    Raises:
        UnreadableSourceError: as `decode_payload`.
    """
    import pandas as pd

    frame: pd.DataFrame = decode_payload(data).to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def _decoded(data: bytes) -> "pa.Table | None":
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return table


def require_inline(*, row_count: int, byte_count: int) -> None:
    """Refuse a payload that is too large to keep inline; both limits are inclusive.

    Args:
        row_count: Rows of the table.
        byte_count: Bytes of the encoded payload.

    Raises:
        InvalidArgumentError: code `payload_too_large`, with counts and limits as facts.
    """
    if row_count <= MAXIMUM_INLINE_ROWS and byte_count <= MAXIMUM_INLINE_BYTES:
        return
    raise InvalidArgumentError(
        f"{row_count} rows in {byte_count} bytes are too large to keep inline; "
        f"the limits are {MAXIMUM_INLINE_ROWS} rows and {MAXIMUM_INLINE_BYTES} bytes",
        code="payload_too_large",
        row_count=row_count,
        byte_count=byte_count,
        maximum_rows=MAXIMUM_INLINE_ROWS,
        maximum_bytes=MAXIMUM_INLINE_BYTES,
    )
