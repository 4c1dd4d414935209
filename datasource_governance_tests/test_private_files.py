"""Files that only their owner reads are created once, or replaced as a whole."""

import stat

import pytest

from datasource_governance.private_files import create, replace


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_its_owners_alone(tmp_path):
    assert create(tmp_path / "key", b"one")
    assert ((tmp_path / "key").read_bytes(), mode(tmp_path / "key")) == (b"one", 0o600)


def test_a_file_that_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "key").write_bytes(b"one")

    assert not create(tmp_path / "key", b"two")
    assert (tmp_path / "key").read_bytes() == b"one"


@pytest.mark.parametrize("there", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path, there):
    path = tmp_path / "accounts"
    if there:
        path.write_bytes(b"one, and longer")

    replace(path, b"two")

    assert (path.read_bytes(), mode(path)) == (b"two", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_take_its_place_leaves_nothing_behind(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()

    with pytest.raises(OSError, match="folder"):
        replace(path, b"two")

    assert list(tmp_path.iterdir()) == [path]
