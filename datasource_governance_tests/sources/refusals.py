"""How a source must refuse: by kind and position, with no way from the error to a cell."""

import traceback

import pytest

from datasource_governance.errors import UnreadableSourceError

CANARY = "zq-canary-7"


def refusal_of(read):
    """Return the problems with which `read` is refused, after looking for anything that leaks."""
    with pytest.raises(UnreadableSourceError) as caught:
        read()
    assert_says_nothing(caught.value)
    return caught.value.problems


def kinds_and_names(read):
    return [(problem.kind, problem.names) for problem in refusal_of(read)]


def assert_read_or_refused(read):
    """Let `read` succeed or refuse, but not fail in any other way, and not leak."""
    error = None
    try:
        read()
    except UnreadableSourceError as refusal:
        error = refusal
    if error is not None:
        assert_says_nothing(error)


def assert_says_nothing(error):
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in "".join(traceback.format_exception(error))
    assert CANARY not in repr((error.args, error.problems))
