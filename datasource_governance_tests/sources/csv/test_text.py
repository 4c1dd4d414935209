"""The text of a file is the same in chunks as in one piece, in every encoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.sources.csv.text import SMALLEST_CHUNK, Text
from datasource_governance_tests.sources.refusals import kinds_and_names

ENCODINGS = [
    *("utf-8", "utf-8-sig", "utf-7", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"),
    *("ascii", "latin-1", "cp1252", "shift_jis", "euc_jp", "iso2022_jp", "gb18030", "big5", "hz"),
]


def chunked(stored, encoding, size=SMALLEST_CHUNK):
    chunks = (stored[start : start + size] for start in range(0, len(stored), size))
    return Text("content", chunks, encoding, b",")


def whole(stored, encoding):
    """Return the text as UTF-8, None for bytes that are none."""
    try:
        text = stored.decode(encoding)
        return None if "\0" in text else text.encode().removeprefix(b"\xef\xbb\xbf")
    except UnicodeError:
        return None


def same_in_chunks(stored, encoding):
    expected = whole(stored, encoding)
    if expected is None:
        refusal = kinds_and_names(lambda: list(chunked(stored, encoding)))
        return refusal == [("invalid_encoding", (encoding,))]
    return b"".join(chunked(stored, encoding)) == expected


@given(st.text(st.sampled_from("aé,\n日本🙂\ufeff"), max_size=60), st.sampled_from(ENCODINGS))
def test_a_text_is_the_same_in_chunks(text, encoding):
    assert same_in_chunks(text.encode(encoding, "replace"), encoding)


@given(
    st.binary(max_size=60).filter(lambda stored: not stored.startswith((b"\x1f\x8b", b"PK"))),
    st.sampled_from(ENCODINGS),
)
def test_bytes_are_refused_in_chunks_as_they_are_in_one_piece(stored, encoding):
    assert same_in_chunks(stored, encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_text_without_a_byte_order_mark_has_the_order_of_the_machine(encoding):
    # The machine's own order is the one that is written behind a mark.
    mark = len("".encode(encoding))
    stored = ("äö\n" * 40).encode(encoding)[mark:]

    assert b"".join(chunked(stored, encoding)).decode() == "äö\n" * 40


def test_the_size_counts_the_bytes_and_nine_for_every_end_of_a_cell():
    text = chunked("a,b\r\né,\n".encode(), "utf-8")

    list(text)

    assert text.size == 9 + 5 * 9
