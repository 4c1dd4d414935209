import pyarrow as pa
import pytest

from datasource_governance.errors import InvalidArgumentError, UnreadableSourceError
from datasource_governance.evaluation.payload import (
    MAXIMUM_INLINE_BYTES,
    MAXIMUM_INLINE_ROWS,
    TypedPayload,
    decode_payload,
    require_inline,
    to_pandas,
)

BAIT = "zq-canary-payload"
MARKED = pa.schema(
    [pa.field("x", pa.decimal128(38, 0), metadata={"datasource_governance": "integer"})]
)
TABLE = pa.Table.from_arrays(
    [pa.chunked_array([[1], [], [2]], pa.decimal128(38, 0))], schema=MARKED
)


def test_a_payload_comes_back_with_types_marks_and_content():
    decoded = decode_payload(TypedPayload(TABLE).encoded())

    assert decoded.schema.equals(MARKED, check_metadata=True)
    assert decoded.column(0).to_pylist() == [1, 2]


def test_a_payload_without_rows_or_columns_comes_back():
    assert decode_payload(TypedPayload(TABLE.slice(0, 0)).encoded()).num_rows == 0
    assert decode_payload(TypedPayload(pa.table({})).encoded()).num_columns == 0


def test_the_encoded_form_is_a_compressed_arrow_stream():
    repeated = pa.table({"x": ["the same text"] * 10_000})

    assert len(TypedPayload(repeated).encoded()) < repeated.nbytes / 5


ENCODED = TypedPayload(pa.table({"x": [BAIT] * 1000})).encoded()
DAMAGED = {
    "empty": b"",
    "text": b"not arrow " + BAIT.encode(),
    "without its end": ENCODED[:-40],
    "half": ENCODED[: len(ENCODED) // 2],
    "zeros": bytes(len(ENCODED)),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_malformed_bytes_are_refused_without_a_value_or_a_cause(data):
    with pytest.raises(UnreadableSourceError) as refusal:
        decode_payload(data)

    assert [problem.kind for problem in refusal.value.problems] == ["malformed_arrow"]
    assert refusal.value.__cause__ is refusal.value.__context__ is None
    assert BAIT not in str(refusal.value)


def test_a_text_that_is_not_utf_8_is_refused():
    offsets, broken = pa.array([0, 1]).buffers()[1], pa.py_buffer(b"\xff")
    array = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, broken])

    with pytest.raises(UnreadableSourceError):
        decode_payload(TypedPayload(pa.table({"x": array})).encoded())


def test_a_payload_does_not_show_its_content():
    assert BAIT not in repr(TypedPayload(pa.table({"x": [BAIT]})))


def test_both_inline_limits_are_inclusive():
    require_inline(row_count=MAXIMUM_INLINE_ROWS, byte_count=MAXIMUM_INLINE_BYTES)


@pytest.mark.parametrize(
    ("rows", "size"), [(MAXIMUM_INLINE_ROWS + 1, 0), (0, MAXIMUM_INLINE_BYTES + 1)]
)
def test_a_larger_payload_is_refused_with_its_size(rows, size):
    with pytest.raises(InvalidArgumentError) as refusal:
        require_inline(row_count=rows, byte_count=size)

    assert refusal.value.code == "payload_too_large"
    assert refusal.value.facts["row_count"] == rows
    assert refusal.value.facts["byte_count"] == size


def test_a_payload_reads_back_as_a_frame_with_exact_values():
    frame = to_pandas(TypedPayload(pa.table({"x": [2**53 + 1, None]})).encoded())

    assert frame["x"].tolist()[0] == 2**53 + 1
    assert frame["x"].isna().tolist() == [False, True]
