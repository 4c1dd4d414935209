import hashlib
import json
import math
from enum import StrEnum
from pathlib import Path

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from datasource_governance.domain.canonical import (
    MAXIMUM_EXACT_INTEGER,
    canonical_bytes,
    digest,
    document_digest,
    load_canonical,
)
from datasource_governance.domain.strict_json import parse_json

GOLDEN = Path(__file__).parent.parent / "golden" / "canonical"
NAMES = sorted(path.stem for path in (GOLDEN / "input").glob("*.json"))

keys = st.text(max_size=5) | st.sampled_from(["$integer", "$$integer", "$$$integer", "$", "$$"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**53 - 2, max_value=2**53 + 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


spelled_by_rfc8785 = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-MAXIMUM_EXACT_INTEGER, max_value=MAXIMUM_EXACT_INTEGER)
    | st.floats(min_value=-MAXIMUM_EXACT_INTEGER, max_value=MAXIMUM_EXACT_INTEGER)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=3).filter(lambda key: not key.endswith("$integer")), inner, max_size=6
        )
    ),
    max_leaves=20,
)
"""What the RFC has a word for, so that nothing is tagged."""


def typed(value):
    """Return what tells JSON values apart: Python takes True for 1, JSON does not."""
    if isinstance(value, dict):
        return ("object", frozenset((key, typed(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(typed(item) for item in value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return ("number" if is_number else type(value).__name__, value)


@pytest.mark.parametrize("name", NAMES)
def test_golden_documents_keep_their_bytes_and_digest(name):
    text = (GOLDEN / "input" / f"{name}.json").read_bytes()
    expected = (GOLDEN / "output" / f"{name}.json").read_bytes()
    sha256 = (GOLDEN / "sha256" / f"{name}.txt").read_text().strip()

    canonical = canonical_bytes(parse_json(text))

    assert canonical == expected
    assert digest("golden", canonical) == sha256


def test_there_are_golden_documents():
    assert len(NAMES) >= 6


@given(spelled_by_rfc8785)
@example({"\U0001f600": 1, "\ue000": 2, "\x00": 3, "a": 4, "": 5})
@example("".join(map(chr, range(0x100))) + "\u2028\u2029\ufeff\uffff\U0010ffff")
@example([1e-7, 5e-324, 0.1, 1.5e-10, -0.0, 4.0])
def test_canonical_bytes_are_those_of_the_reference_implementation(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(values)
def test_canonical_bytes_load_to_the_same_value(value):
    assert typed(load_canonical(canonical_bytes(value))) == typed(value)


@given(values)
def test_canonical_bytes_of_a_loaded_value_are_the_same(value):
    canonical = canonical_bytes(value)

    assert canonical_bytes(load_canonical(canonical)) == canonical


@given(values, values)
@example(2**53, {"$integer": str(2**53)})
@example({"$integer": "1"}, {"$$integer": "1"})
@example(True, 1)
@example("1", 1)
@example([], {})
def test_bytes_are_equal_exactly_when_values_are(one, other):
    assert (canonical_bytes(one) == canonical_bytes(other)) is (typed(one) == typed(other))


@given(values)
def test_canonical_bytes_are_json_that_any_reader_reads(value):
    json.loads(canonical_bytes(value).decode("utf-8"))


@given(st.dictionaries(keys, scalars), st.randoms(use_true_random=False))
def test_key_order_does_not_count(document, random):
    items = list(document.items())
    random.shuffle(items)

    assert canonical_bytes(dict(items)) == canonical_bytes(document)


def test_keys_are_ordered_by_utf16_code_units():
    assert canonical_bytes({"\uffee": 2, "\U0001f600": 1}) == '{"\U0001f600":1,"\uffee":2}'.encode()


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_are_tagged_from_two_to_the_53_on(sign):
    assert canonical_bytes(sign * MAXIMUM_EXACT_INTEGER) == str(sign * (2**53 - 1)).encode()
    assert canonical_bytes(sign * 2**53) == b'{"$integer":"%d"}' % (sign * 2**53)


def test_whole_doubles_are_the_integers_that_they_equal():
    assert canonical_bytes(1e300) == canonical_bytes(int(1e300))
    assert canonical_bytes(-0.0) == canonical_bytes(0) == b"0"


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_of_5000_digits_have_bytes_and_come_back(sign):
    huge = sign * (10**5000 + 1)

    assert load_canonical(canonical_bytes(huge)) == huge


def test_mappings_tuples_and_enumerations_are_taken_as_json():
    class Word(StrEnum):
        ONE = "one"

    assert canonical_bytes({Word.ONE: (Word.ONE, 1)}) == b'{"one":["one",1]}'


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "secret \ud800",
        {"secret \ud800": 1},
        {1: "secret"},
        {None: "secret"},
        b"secret",
        object(),
        {"secret"},
    ],
    ids=[
        "nan",
        "infinity",
        "minus-infinity",
        "surrogate",
        "surrogate-key",
        "number-key",
        "null-key",
        "bytes",
        "object",
        "set",
    ],
)
def test_what_json_cannot_say_is_refused_without_the_value(value):
    with pytest.raises(ValueError, match=r"^the value has no canonical JSON form$") as caught:
        canonical_bytes([value])

    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_nesting_beyond_the_interpreter_is_refused():
    value = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(ValueError, match="no canonical JSON form"):
        canonical_bytes(value)


def test_digest_frames_the_domain_and_every_part_with_its_length():
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"domain", b"", b"a", b"bc"))

    assert digest("domain", b"", b"a", b"bc") == hashlib.sha256(framed).hexdigest()


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
@example([b"a", b"bc"], [b"ab", b"c"])
@example([], [b""])
def test_different_parts_never_meet(parts, others):
    assert (digest("d", *parts) == digest("d", *others)) is (parts == others)


def test_domains_keep_equal_documents_apart():
    assert document_digest("one", {"a": 1}) != document_digest("other", {"a": 1})
    assert document_digest("one", {"a": 1}) == digest("one", b'{"a":1}')


@pytest.mark.parametrize(
    "tag", ["", "x", "1e999999999", "Infinity", "NaN", "01", "1.5", "+1", " 1"]
)
def test_a_tag_that_holds_no_whole_number_is_no_tag(tag):
    assert load_canonical(b'{"$integer":"%s"}' % tag.encode()) == {"$integer": tag}
