"""A provider that does what its option says, in the process that it is given."""

import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.quality.plugin import DataQualityPlugin, PluginConfiguration

TEXT = "zq-canary-7731"


class Misbehaving(DataQualityPlugin):
    """Its options are `does`, the name of a method, and what that one needs."""

    name = "misbehaving"
    dialects: ClassVar[frozenset[str]] = frozenset({"postgresql", "duckdb"})
    environment: ClassVar[dict[str, str]] = {"OF_PROVIDER": "1", "HOME": "/nowhere"}

    def run(self, target, expectations, folder):
        self.asked, self.target, self.folder = expectations, target, folder
        return getattr(self, self.configuration.options["does"])()

    @property
    def cells(self):
        return str(self.target.table.to_pylist())

    def answer(self):
        """Give the answers that the options hold, none other."""
        return [
            Evaluated(id=rule, affected=affected, rows=None if rows is None else tuple(rows))
            for rule, affected, rows in self.configuration.options["answers"]
        ]

    def tell(self):
        """Tell cells in every way there is, and answer."""
        told = self.cells * 2_000
        sys.stdout.write(told)
        sys.stderr.write(told)
        os.write(1, told.encode())
        os.write(2, told.encode())
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("framework").critical(told)
        for place in (self.folder, Path.home(), Path(os.environ["TMPDIR"]), Path.cwd()):
            (place / f"cells-{TEXT}").write_text(told)
        (self.folder / "locked").mkdir()
        (self.folder / "locked" / "cells").write_text(told)
        (self.folder / "locked").chmod(0)
        return [Evaluated(id=one.id, affected=0) for one in self.asked]

    def quote(self):
        """Raise what a framework raises, with cells in it and in what hangs on it."""
        raise ValueError(self.cells) from KeyError(self.cells)

    def quote_late(self):
        yield Evaluated(id=self.asked[0].id, affected=0)
        raise ValueError(self.cells)

    def refuse(self):
        """Refuse the data in the words of this package, and smuggle cells into each of them."""
        cell = self.cells
        names = (cell, self.target.columns.names[0])
        known = Problem(kind="unsupported_value", message=cell, pointer=cell, names=names)
        raise UnreadableSourceError(cell, [known, Problem(kind=cell, message=cell)])

    def exit(self):
        os._exit(self.configuration.options["status"])

    def sleep(self):
        time.sleep(60)

    def leave(self):
        """Start processes that go on, one of them in a session of its own, and answer."""
        for own_session in (False, True):
            run = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"]
            child = subprocess.Popen(run, stdout=subprocess.PIPE, start_new_session=own_session)
            child.stdout.readline()
        return [Evaluated(id=one.id, affected=0) for one in self.asked]

    def ask(self):
        """Ask whoever sits at the terminal."""
        rows = 0 if sys.stdin.read() == "" else 1
        return [Evaluated(id=one.id, affected=rows) for one in self.asked]

    def look(self):
        """Answer with what the process finds around itself, as counts."""
        seen = {
            "folder empty": not list(self.folder.iterdir()),
            "working directory": Path.cwd() == self.folder,
            "home": Path.home() == self.folder,
            "foreign environment": "FOREIGN_SECRET" in os.environ,
            "own environment": os.environ.get("OF_PROVIDER") == "1",
            "columns": len(self.target.columns.names),
            "option": self.configuration.options["number"],
        }
        return [Evaluated(id=name, affected=int(found)) for name, found in seen.items()]

    def reach(self):
        """Connect to a port, here and in a process of its own, write a file, and print cells.

        Answers with the number of connections that were refused.
        """
        sys.stdout.write(self.cells)
        sys.stdout.flush()
        Path(self.configuration.options["place"]).write_text("cells")
        connect = f"import socket; socket.create_connection(('127.0.0.1', {self.port}))"
        refused = subprocess.run([sys.executable, "-c", connect], check=False).returncode
        with socket.socket() as own:
            try:
                own.connect(("127.0.0.1", self.port))
            except PermissionError:
                refused += 1
        return [Evaluated(id=one.id, affected=refused) for one in self.asked]

    @property
    def port(self):
        return self.configuration.options["port"]


class Outer:
    class Nested(Misbehaving):
        name = "nested"


def misbehaving(does, *, timeout_seconds=60, provider=Misbehaving, **options):
    configuration = PluginConfiguration(
        timeout_seconds=timeout_seconds, options={"does": does, **options}
    )
    return provider(configuration)
