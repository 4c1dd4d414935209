import pytest

from datasource_governance.errors import InvalidArgumentError, UnreadableSourceError
from datasource_governance.sources.refusal import first_positions, refused, shielded

OTHERWISE = refused("a file", "malformed_csv", "the records could not be read")


def raising(error):
    def read():
        raise error

    return read


def test_what_is_read_is_returned():
    assert shielded(lambda: 7, OTHERWISE) == 7


def test_a_foreign_exception_is_replaced_and_nothing_of_it_can_be_reached():
    with pytest.raises(UnreadableSourceError) as caught:
        shielded(raising(ValueError("zq-canary")), OTHERWISE)

    assert caught.value is OTHERWISE
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_source_that_does_not_fit_into_memory_is_too_large():
    with pytest.raises(UnreadableSourceError) as caught:
        shielded(raising(MemoryError("zq-canary")), OTHERWISE)

    assert [problem.kind for problem in caught.value.problems] == ["too_large"]
    assert caught.value.__context__ is None


def test_a_refusal_of_this_package_passes_unchanged():
    refusal = InvalidArgumentError("no such encoding")

    with pytest.raises(InvalidArgumentError) as caught:
        shielded(raising(refusal), OTHERWISE)

    assert caught.value is refusal


def test_the_lowest_25_positions_are_listed():
    assert first_positions(list(range(30, 0, -1))) == tuple(str(row) for row in range(1, 26))
