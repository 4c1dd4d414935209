"""Python functions as origins."""

import pytest

from datasource_governance.domain.origin import PythonOrigin
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.origins.function import ask_function
from datasource_governance_tests.sources.origins import told
from datasource_governance_tests.sources.refusals import refusal_of


def ask(name, version=None):
    return ask_function(PythonOrigin(function=f"{told.__name__}:{name}"), version)


def test_a_function_gives_data_and_its_version_and_is_told_the_last_one():
    answer = ask("conditional")

    assert (answer.table.to_pylist(), answer.version) == ([{"a": 1}, {"a": 2}], "v1")
    assert answer.sha256 is None
    assert ask("conditional", "v1") is None
    assert ask("conditional", "v0") is not None


def test_a_function_may_give_a_frame_without_a_version():
    answer = ask("frame")

    assert (answer.table.num_rows, answer.version) == (2, None)


def test_a_version_of_a_thousand_characters_is_kept():
    assert len(ask("longest_version").version) == 1000


@pytest.mark.parametrize("name", ["failing", "failing_as_ours", "leaving", "nothing"])
def test_nothing_of_what_a_function_raises_is_said(name):
    (problem,) = refusal_of(lambda: ask(name))

    assert problem.kind == "unreadable"


def test_data_without_a_typed_form_is_refused_by_its_field():
    (problem,) = refusal_of(lambda: ask("unreadable_object"))

    assert (problem.kind, problem.names) == ("unsupported_value", ("a", "2"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rows", "answers with a list"),
        ("list_in_frame", "cannot read a list"),
        ("blank_version", "no text of 1 to 1000"),
        ("long_version", "no text of 1 to 1000"),
        ("unprintable_version", "no text of 1 to 1000"),
        ("NO_FUNCTION", "cannot be imported"),
        ("absent", "cannot be imported"),
    ],
)
def test_what_is_no_answer_of_a_function_is_refused_by_its_class_alone(name, sentence):
    with pytest.raises(InvalidArgumentError, match=sentence) as caught:
        ask(name)

    assert caught.value.__context__ is None
    assert told.CANARY not in str(caught.value)


def test_a_module_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"no\.such:function cannot be imported"):
        ask_function(PythonOrigin(function="no.such:function"))
