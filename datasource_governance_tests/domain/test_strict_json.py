import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.strict_json import (
    MAXIMUM_DOCUMENT_BYTES,
    parse_json,
    pointer,
    read_json,
)
from datasource_governance.errors import InvalidPolicyError

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**53) + 1, max_value=2**53 - 1)
    | st.floats(min_value=-1e15, max_value=1e15, allow_subnormal=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def refusal(document):
    """Return (kind, pointer) of every problem, in order."""
    with pytest.raises(InvalidPolicyError) as caught:
        parse_json(document)

    assert caught.value.__context__ is None
    return [(problem.kind, problem.pointer) for problem in caught.value.problems]


@given(documents)
def test_canonical_bytes_parse_to_what_they_spell(document):
    canonical = canonical_bytes(document)

    assert canonical_bytes(parse_json(canonical)) == canonical
    assert canonical_bytes(parse_json(canonical.decode())) == canonical


@given(documents)
def test_spelling_does_not_count(document):
    spelled = json.dumps(document, indent=3, ensure_ascii=True)

    assert canonical_bytes(parse_json(spelled)) == canonical_bytes(document)


@given(st.integers(min_value=-(10**300), max_value=10**300))
def test_whole_numbers_are_exact_however_they_are_spelled(number):
    for spelled in (f"{number}", f"{number}.000", f"{number}e0", f"{number * 10}E-1"):
        value = parse_json(spelled)
        assert value == number
        assert type(value) is int


@pytest.mark.parametrize("spelled", ["0", "-0", "0.0", "-0.00", "0e9", "0E-9", "0.0e+400"])
def test_zero_is_one_number(spelled):
    value = parse_json(spelled)

    assert (type(value), canonical_bytes(value)) == (int, b"0")


def test_fractions_have_at_most_17_significant_digits():
    assert parse_json("0.12345678901234567") == 0.12345678901234567
    assert parse_json("0.1234567890123456700000000000000000000000000") == 0.12345678901234567
    assert refusal("[1, 0.123456789012345678]") == [("invalid_value", "/1")]
    assert refusal("[12345678901234567.5]") == [("invalid_value", "/0")]


def test_numbers_end_where_doubles_do():
    largest = int(sys.float_info.max)

    assert parse_json("1.7976931348623157e308") == 17976931348623157 * 10**292
    assert parse_json(str(largest)) == largest
    assert parse_json("5e-324") == 5e-324
    for beyond in (
        str(largest + 1),
        "1.7976931348623159e308",
        "-1e309",
        "1e99999999999999999999",
        "1e-324",
        "1e-1000030",
        "-1e-99999999999999999999",
        "9" * 5000,
    ):
        assert refusal(f'{{"a": [{beyond}]}}') == [("invalid_value", "/a/0")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        '{"a":1,}',
        "[1] 2",
        "// no\n1",
        "[01]",
        "[+1]",
        "[.5]",
        "[1.]",
        "{'a': 1}",
        '"a\nb"',
        "\ufeff1",
        "NaN",
        "[Infinity]",
        "[-Infinity]",
        "nul",
        '"unfinished',
        '"unfinished \\',
        '"\\x"',
        "]]]]",
    ],
)
def test_what_is_not_json_is_refused(text):
    assert refusal(text) == [("invalid_json", "")]


def test_a_byte_order_mark_is_refused():
    assert refusal(b"\xef\xbb\xbf{}") == [("invalid_json", "")]


@pytest.mark.parametrize("text", [b'"\xff"', b'"\xed\xa0\x80"', "{}".encode("utf-16")])
def test_bytes_that_are_not_utf8_are_refused(text):
    assert refusal(text) == [("invalid_text", "")]


def test_a_repeated_key_is_found_at_any_depth_however_it_is_spelled():
    text = '{"a": {"x/y": [0, {"b": 1, "\\u0062": 2, "b": 3}]}, "c": 1, "c": 1}'

    assert refusal(text) == [("duplicate_key", "/c"), ("duplicate_key", "/a/x~1y/1/b")]


def test_nul_and_lone_surrogates_are_refused_in_keys_and_texts():
    text = '{"a": "\\u0000", "b\\u0000": 1, "c": ["\\ud800", "\\ud83d\\ude00"], "\\udc00": 2}'

    assert refusal(text) == [
        ("invalid_text", "/a"),
        ("invalid_text", "/b\\x00"),
        ("invalid_text", "/c/0"),
        ("invalid_text", "/\\udc00"),
    ]
    assert refusal('"\ud800"') == [("invalid_text", "")]


def test_the_key_that_tags_integers_is_reserved():
    assert refusal('[{"$integer": "1"}]') == [("unknown_key", "/0/$integer")]


def test_problems_that_can_be_told_apart_are_reported_at_once():
    assert refusal('{"a": 1e999, "a": 2, "b": ["\\u0000", 0.123456789012345678]}') == [
        ("duplicate_key", "/a"),
        ("invalid_text", "/b/0"),
        ("invalid_value", "/b/1"),
    ]


def test_nesting_is_limited_to_32():
    assert parse_json("[" * 32 + "]" * 32)
    assert refusal("[" * 33 + "]" * 33) == [("invalid_value", "")]
    assert refusal('{"a":' * 33 + "1" + "}" * 33) == [("invalid_value", "")]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_hostile_nesting_is_refused_without_recursion(opening):
    assert refusal(opening * 100_000) == [("invalid_value", "")]


def test_brackets_in_texts_are_no_nesting():
    text = "[" * 100 + '\\"' + "{" * 100 + "\\"

    assert parse_json(json.dumps([text, text])) == [text, text]


def test_a_document_has_at_most_one_mebibyte():
    limit = MAXIMUM_DOCUMENT_BYTES

    assert len(parse_json('"' + "a" * (limit - 2) + '"')) == limit - 2
    assert refusal('"' + "a" * (limit - 1) + '"') == [("invalid_value", "")]
    assert refusal('"' + "é" * (limit // 2) + '"') == [("invalid_value", "")]
    assert refusal(b" " * (limit + 1)) == [("invalid_value", "")]


def test_no_message_holds_what_the_document_says():
    with pytest.raises(InvalidPolicyError) as caught:
        parse_json('{"a": "zq-canary \\u0000", "b": 1e987654, "c": "zq-canary \\ud800"}')

    assert "zq-canary" not in str(caught.value)
    assert "987654" not in str(caught.value)


def test_a_pointer_escapes_tilde_and_slash():
    assert pointer() == ""
    assert pointer("a/b", 0, "~1", "") == "/a~1b/0/~01/"


def test_a_parsed_value_is_held_to_the_same_rules():
    value, problems = read_json(
        {
            "whole": 10.0,
            "tuple": (1,),
            "nan": float("nan"),
            "huge": 10**309,
            "set": {1},
            "nul": "\x00",
            "\ud800": 1,
            7: 1,
            "$integer": "1",
        }
    )

    assert [(one.kind, one.pointer) for one in problems] == [
        ("invalid_value", "/nan"),
        ("invalid_value", "/huge"),
        ("invalid_value", "/set"),
        ("invalid_text", "/nul"),
        ("invalid_text", "/\\ud800"),
        ("invalid_value", ""),
        ("unknown_key", "/$integer"),
    ]
    assert value == {
        "whole": 10,
        "tuple": [1],
        "nan": None,
        "huge": None,
        "set": None,
        "nul": None,
    }


def test_a_parsed_value_may_not_be_deeper_or_larger_than_a_text():
    endless = []
    endless.append(endless)

    _, problems = read_json(endless)

    assert [(one.kind, one.pointer) for one in problems] == [("invalid_value", "/0" * 32)]
    with pytest.raises(InvalidPolicyError):
        read_json(["a" * MAXIMUM_DOCUMENT_BYTES])
