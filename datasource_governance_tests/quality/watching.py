"""Watch what a provider's process does: its connections, its files, and what it prints.

An audit hook sees every connection that Python code makes and every file that it opens; libraries
in C, such as that of Postgres, are beyond it. Processes of the same Python inherit the watch; `dbt`
drops the environment and is run by an executable that begins the watch anew.
"""

import json
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from datasource_governance.quality import execution

WATCH = """
import json, os, sys

FOLDER = {folder!r}
RECORD = os.open(os.path.join(FOLDER, "record"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
PRINTED = os.open(os.path.join(FOLDER, "printed"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
OWN = os.path.dirname(os.environ.get("HOME", "/"))
CONNECTING = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def record(word, what):
    os.write(RECORD, json.dumps([word, what]).encode() + b"\\n")


def is_foreign(path):
    if not isinstance(path, (str, bytes)):
        return False
    place = os.path.abspath(os.fsdecode(path))
    return not place.startswith((OWN + os.sep, "/dev/", "/proc/")) and "__pycache__" not in place


def watch(event, arguments):
    if event in CONNECTING:
        record("connected", event)
        raise PermissionError("watched")
    if event == "open" and arguments[2] & WRITING and is_foreign(arguments[0]):
        record("wrote", os.fsdecode(arguments[0]))


if OWN.startswith({temporary!r}):
    record("began", os.path.basename(sys.orig_argv[1]))
    os.dup2(PRINTED, 1)
    os.dup2(PRINTED, 2)
    sys.addaudithook(watch)
"""
DBT = """#!{python}
import runpy, sys

runpy.run_path({watch!r})
from dbt.cli.main import cli

sys.exit(cli())
"""


@dataclass(frozen=True)
class Watch:
    """Everything seen so far."""

    folder: Path

    def recorded(self, kind):
        """Return what was recorded under a word: `began`, `connected`, `wrote`."""
        lines = (self.folder / "record").read_text().splitlines()
        return [what for found, what in map(json.loads, lines) if found == kind]

    def kept(self):
        """Return all that a run printed, and all files that it had before they were deleted."""
        files = [path for path in (self.folder / "kept").rglob("*") if path.is_file()]
        return b"".join(path.read_bytes() for path in [self.folder / "printed", *files])

    @property
    def dbt(self):
        """A `dbt` that is watched."""
        return str(self.folder / "dbt")


def watched(folder, temporary, monkeypatch):
    """Watch every run in the folder for temporary files, and keep a copy of what it has there."""
    watch = folder / "sitecustomize.py"
    watch.write_text(WATCH.format(folder=str(folder), temporary=str(temporary)))
    dbt = folder / "dbt"
    dbt.write_text(DBT.format(python=sys.executable, watch=str(watch)))
    dbt.chmod(dbt.stat().st_mode | stat.S_IXUSR)
    monkeypatch.syspath_prepend(folder)
    status = execution._status

    def kept(provider, request, frame, work):
        found = status(provider, request, frame, work)
        shutil.copytree(work.parent, folder / "kept" / work.parent.name)
        return found

    monkeypatch.setattr(execution, "_status", kept)
    return Watch(folder)
