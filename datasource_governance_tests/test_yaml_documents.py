import pytest

from datasource_governance.domain.strict_json import MAXIMUM_DOCUMENT_BYTES, parse_json
from datasource_governance.errors import InvalidPolicyError
from datasource_governance.yaml_documents import json_from_yaml


def read(text):
    return parse_json(json_from_yaml(text.encode(), what="document"))


def refusal(content):
    """Return the message of the only problem of YAML."""
    with pytest.raises(InvalidPolicyError) as caught:
        json_from_yaml(content if isinstance(content, bytes) else content.encode(), what="document")

    (problem,) = caught.value.problems
    assert problem.kind == "invalid_yaml"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return problem.message


def test_yaml_reads_as_the_json_that_it_stands_for():
    text = """
    # A comment.
    share: 80%
    "no": [1, 1.5, -2, true, null, ~, "1", 'it''s', 0x10, 1e3]
    day: 2027-03-31
    version: 1.0.0
    nested: {"a\\u00e9": {}, list: []}
    folded: >-
      two
      lines
    """

    assert read(text) == {
        "share": "80%",
        "no": [1, 1.5, -2, True, None, None, "1", "it's", 16, "1e3"],
        "day": "2027-03-31",
        "version": "1.0.0",
        "nested": {"aé": {}, "list": []},
        "folded": "two lines",
    }


def test_json_is_yaml():
    assert read('{"a": [1, "x", {"b": null}]}') == {"a": [1, "x", {"b": None}]}


def test_a_repeated_key_is_found_by_the_reader_with_its_place():
    with pytest.raises(InvalidPolicyError) as caught:
        read("a:\n  b: 1\n  b: 2\n")

    assert [(one.kind, one.pointer) for one in caught.value.problems] == [("duplicate_key", "/a/b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("a: &x 1\nb: *x", "an alias at line 2, column 4"),
        ("a: 1\n<<: {b: 2}", "a key that is not a text at line 2, column 1"),
        ("on: 1", "a key that is not a text at line 1, column 1"),
        ("1: 1", "a key that is not a text at line 1, column 1"),
        ("[x]: 1", "a key that is not a text at line 1, column 1"),
        ("a: !!python/name:os.system", "a tag that JSON has no word for at line 1, column 4"),
        ("a: !mine {}", "a tag that JSON has no word for at line 1, column 4"),
        ("a: !!set {x}", "a tag that JSON has no word for at line 1, column 4"),
        ("a: !!binary aGk=", "a tag that JSON has no word for at line 1, column 4"),
        ("a: .nan", "a value that JSON has no word for at line 1, column 4"),
        ("a: -.inf", "a value that JSON has no word for at line 1, column 4"),
        ("a: !!int secret", "a value that JSON has no word for at line 1, column 4"),
        ("a: !!bool secret", "a value that JSON has no word for at line 1, column 4"),
        ("a: [secret", "not YAML at line 1, column 11"),
        ("a: 1\n---\nb: 2", "not YAML at line 2, column 1"),
        ("a: \x07", "not YAML"),
        (b"a: \xff", "not UTF-8 at byte 4"),
        ("[" * 33 + "]" * 33, "nested deeper than 32 at line 1, column 33"),
        ("[" * 100_000, "nested deeper than 32 at line 1, column 33"),
        (
            b" " * (MAXIMUM_DOCUMENT_BYTES + 1),
            f"{MAXIMUM_DOCUMENT_BYTES + 1} bytes, the limit is {MAXIMUM_DOCUMENT_BYTES}",
        ),
    ],
    ids=range(21),
)
def test_what_json_has_no_word_for_is_refused_with_its_place_and_without_its_text(text, message):
    assert refusal(text) == message


def test_nesting_at_the_limit_is_read():
    assert json_from_yaml(("[" * 32 + "]" * 32).encode(), what="document") == "[" * 32 + "]" * 32
