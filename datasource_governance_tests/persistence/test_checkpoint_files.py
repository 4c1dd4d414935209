"""Where checkpoints are kept: never overwritten, never half there, read in order."""

from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from datasource_governance.errors import NotFoundError, ServiceUnavailableError
from datasource_governance.persistence import checkpoint_files
from datasource_governance.persistence.checkpoint_files import CheckpointFiles
from datasource_governance_tests.postgres import unique_name


@pytest.fixture(params=["directory", "address", "address of a directory"])
def place(request, tmp_path):
    if request.param == "directory":
        yield str(tmp_path / "kept" / "here")
    elif request.param == "address":
        name = unique_name("place")
        yield f"memory://{name}"
        MemoryFileSystem().rm(f"/{name}", recursive=True)
    else:
        yield f"file://{tmp_path}/kept"


def test_what_was_put_is_read_in_order_of_names(place):
    files = CheckpointFiles(place)
    files.put("2.json", b"two")
    files.put("1.json", b"one")

    assert list(CheckpointFiles(place).read()) == [("1.json", b"one"), ("2.json", b"two")]


def test_one_file_is_read_alone(place):
    files = CheckpointFiles(place)
    files.put("1.json", b"one")
    files.put("2.json", b"two")

    assert list(CheckpointFiles(f"{place}/2.json").read()) == [("2.json", b"two")]


def test_nothing_is_ever_overwritten(place):
    files = CheckpointFiles(place)
    files.put("1.json", b"one")

    with pytest.raises(ServiceUnavailableError):
        files.put("1.json", b"another")

    assert list(files.read()) == [("1.json", b"one")]


def test_a_directory_holds_nothing_but_whole_checkpoints(tmp_path):
    files = CheckpointFiles(str(tmp_path))
    (tmp_path / ".0.json.unfinished").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("not ours")
    (tmp_path / ".hidden.json").write_text("not ours")
    files.put("1.json", b"one")

    assert list(files.read()) == [("1.json", b"one")]
    assert not (tmp_path / ".1.json.unfinished").exists()


@pytest.mark.parametrize("place", ["nowhere", "memory://nowhere-at-all"])
def test_a_place_without_a_checkpoint_is_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NotFoundError):
        list(CheckpointFiles(place).read())


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_files, "MAXIMUM_BYTES", 3)
    files = CheckpointFiles(str(tmp_path))
    files.put("1.json", b"one")
    assert list(files.read()) == [("1.json", b"one")]
    files.put("2.json", b"four")

    with pytest.raises(ServiceUnavailableError, match=r"2\.json"):
        list(files.read())


def test_a_refusal_names_no_address_and_chains_nothing(tmp_path):
    (tmp_path / "file").touch()

    for place in (f"{tmp_path}/file/below", "unknown-protocol://user:secret@host/path"):
        with pytest.raises(ServiceUnavailableError) as refused:
            CheckpointFiles(place).put("1.json", b"one")

        assert "secret" not in str(refused.value)
        assert str(Path(tmp_path)) not in str(refused.value)
        assert refused.value.__context__ is None
