"""A file is cut only between records, wherever its chunks end, and never one that is misquoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.sources.csv.blocks import Block, blocks
from datasource_governance_tests.sources.csv_reference import MalformedError, parse_records

MISQUOTED = "a quote is not closed, or text follows a closing quote"


def cut(content, size, longest=1000):
    chunks = (content[start : start + size] for start in range(0, len(content), size))
    return list(blocks(chunks, b",", longest))


def records_of(content):
    """Return records and whether all of the text could be told apart."""
    try:
        return parse_records(content.decode()), True
    except MalformedError:
        return [], False


@given(
    st.text(st.sampled_from('"",,\r\n\n xé'), max_size=60),
    st.integers(min_value=1, max_value=20),
)
def test_blocks_hold_the_records_of_the_whole_text_however_it_is_cut(text, size):
    content = text.encode()
    expected, is_sound = records_of(content)

    found = cut(content, size)

    assert [block.fault for block in found if block.fault] == ([] if is_sound else [MISQUOTED])
    if is_sound:
        parts = [records_of(block.content) for block in found]
        assert [record for part, _ in parts for record in part] == expected
        assert all(part_is_sound for _, part_is_sound in parts)


@given(
    st.lists(st.sampled_from(['"a"', '"a""b"', '"\n"', "x", '5"', "\r\n", "\r"]), max_size=12),
    st.integers(min_value=1, max_value=9),
)
def test_every_block_ends_with_a_line_end_and_together_they_are_the_text(cells, size):
    content = ",".join(cells).encode() + b"\n"

    found = cut(content, size)

    if not found[-1].fault:
        assert b"".join(block.content for block in found) == content
        assert all(block.content.endswith((b"\r", b"\n")) for block in found)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_line_end_of_two_characters_is_not_cut(size):
    assert all(block.content.endswith(b"\r\n") for block in cut(b"a\r\n\r\nb\r\n", size))


def test_the_last_record_gets_the_line_end_it_lacks():
    assert cut(b"a\nb", 100) == [Block(b"a\n"), Block(b"b\n")]
    assert cut(b"a\nb\r", 100)[-1] == Block(b"b\r\n")


def test_a_record_as_long_as_allowed_is_read_and_a_longer_one_is_a_fault():
    record = b"x" * 99

    assert cut(record + b"\n", 1, longest=100) == [Block(record + b"\n")]
    assert cut(record + b"xx\n", 1, longest=100) == [
        Block(b"", "longer than 100 bytes, or a quote is not closed")
    ]


def test_nothing_is_read_behind_a_record_that_is_misquoted():
    chunks = iter([b'a\n"x"y', b",1\n", b"b\n"])

    assert list(blocks(chunks, b",", 1000)) == [Block(b"a\n"), Block(b"", MISQUOTED)]
    assert list(chunks) == [b"b\n"]
