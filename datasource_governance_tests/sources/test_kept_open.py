"""A file that is kept open: read by several at once, whatever becomes of its name."""

import gc
import io
import os
from pathlib import Path

import pytest

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.kept_open import KeptOpen
from datasource_governance_tests.sources.hostile import date_back


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "file"
    made.write_bytes(b"0123456789")
    return made


def kept(path):
    with path.open("rb") as file:
        return KeptOpen(file)


def test_views_have_places_of_their_own(path):
    file = kept(path)
    one, other = file.view(), file.view()

    assert one.read(4) == b"0123"
    assert other.read(2) == b"01"
    assert (one.tell(), other.tell()) == (4, 2)
    assert one.read() == b"456789"
    assert other.seek(-3, io.SEEK_END) == 7
    assert other.seek(1, io.SEEK_CUR) == 8
    assert other.read() == b"89"
    assert other.read() == b""


def test_another_file_of_the_name_is_not_seen(path, tmp_path):
    file = kept(path)
    (tmp_path / "swapped").write_bytes(b"other")
    (tmp_path / "swapped").rename(path)

    assert file.view().read() == b"0123456789"


def test_a_file_that_was_changed_is_not_read_again(path):
    file = kept(path)
    path.write_bytes(b"changed")

    with pytest.raises(UnreadableSourceError) as refused:
        file.view()

    assert [one.kind for one in refused.value.problems] == ["unreadable"]


def test_a_file_that_was_changed_and_dated_back_is_not_read_again(path):
    before = path.stat()
    file = kept(path)
    path.write_bytes(b"9876543210")
    date_back(path, before)

    with pytest.raises(UnreadableSourceError):
        file.view()


def test_a_file_without_a_name_is_still_read(path):
    file = kept(path)
    path.unlink()

    assert file.view().read() == b"0123456789"


def test_it_is_open_for_as_long_as_there_is_a_view(path):
    view = kept(path).view()
    gc.collect()
    assert view.read(1) == b"0"
    assert descriptors_of(path)

    del view
    gc.collect()
    assert not descriptors_of(path)


def descriptors_of(path):
    """Those of this process that are of the file: others may take the number of a closed one."""
    file = path.stat()
    return [one for one in Path("/dev/fd").iterdir() if is_of(int(one.name), file)]


def is_of(descriptor, file):
    try:
        return os.path.samestat(os.fstat(descriptor), file)
    except OSError:
        return False
