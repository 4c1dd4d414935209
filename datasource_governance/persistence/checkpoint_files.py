"""Checkpoints as files: in a directory, or at an address of fsspec, such as an object store's.

Source: SPEC section 13; facts on checkpoints (6.4).
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from datasource_governance.errors import NotFoundError, ServiceUnavailableError

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Of one file that is read; a checkpoint has about 150 bytes for each chain."""
_SUFFIX = ".json"
_Result = TypeVar("_Result")


class CheckpointFiles:
    """See ports.CheckpointPlace. A text with `://` is an address, any other a local path."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._is_address = "://" in place

    def put(self, name: str, content: bytes) -> None:
        """See ports.CheckpointPlace."""
        write = self._put_remote if self._is_address else self._put_local
        _shielded(lambda: write(name, content), f"checkpoint {name} was not kept")

    def read(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of the one file that the place is, or of all in it, by name.

        Raises:
            NotFoundError: when no checkpoint is there.
            ServiceUnavailableError: when the place or a file cannot be read.
        """
        names = _shielded(self._names, "the checkpoints cannot be read")
        if not names:
            raise NotFoundError("there is no checkpoint at the place that was named")
        for path in names:
            name = PurePosixPath(path).name
            yield name, _shielded(partial(self._content, path), f"{name} cannot be read")

    def _put_local(self, name: str, content: bytes) -> None:
        directory = Path(self._place)
        directory.mkdir(parents=True, exist_ok=True)
        unfinished = directory / f".{name}.unfinished"
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A link appears as a whole and never replaces what has the name already.
        try:
            (directory / name).hardlink_to(unfinished)
        finally:
            unfinished.unlink()

    def _put_remote(self, name: str, content: bytes) -> None:
        filesystem, path = self._filesystem()
        filesystem.makedirs(path, exist_ok=True)
        filesystem.pipe_file(f"{path.rstrip('/')}/{name}", content, mode="create")

    def _names(self) -> list[str]:
        filesystem, path = self._filesystem()
        if filesystem.isfile(path):
            return [path]
        if not filesystem.isdir(path):
            return []
        return sorted(str(name) for name in filesystem.ls(path, detail=False) if _is_kept(name))

    def _content(self, path: str) -> bytes:
        filesystem, _ = self._filesystem()
        with filesystem.open(path, "rb") as file:
            content: bytes = file.read(MAXIMUM_BYTES + 1)
        if len(content) > MAXIMUM_BYTES:
            raise OSError
        return content

    def _filesystem(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # it has no types

        return url_to_fs(self._place)  # type: ignore[no-any-return]  # as above


def _is_kept(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(_SUFFIX) and not name.startswith(".")


def _shielded(step: Callable[[], _Result], refusal: str) -> _Result:
    """Return what a step gives; name a failure by its type, because its text may hold secrets."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - every file system has errors of its own
        why = type(error).__name__
    raise ServiceUnavailableError(f"{refusal}: {why}")
