"""The two addresses that everything else connects with, and the private file that keeps them.

Source: SPEC section 17.
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from datasource_governance import private_files
from datasource_governance.errors import InvalidArgumentError, NotFoundError

GOVERNANCE_DATABASE = "governance"
DAGSTER_DATABASE = "dagster"
"""The names of the two databases, unless others are asked for."""

GOVERNANCE_VARIABLE = "GOVERNANCE_DATABASE_URL"
DAGSTER_VARIABLE = "DAGSTER_DATABASE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The application's and Dagster's URL, each with its password, which `repr` leaves out.

    `governance_url` is for psycopg 3. `dagster_url` names psycopg2, because Dagster sends a NOTIFY
    with parameters, which psycopg 3 refuses.
    """

    governance_url: str = field(repr=False)
    dagster_url: str = field(repr=False)

    def environment(self) -> dict[str, str]:
        """Return the environment variables that the application and Dagster read."""
        return {GOVERNANCE_VARIABLE: self.governance_url, DAGSTER_VARIABLE: self.dagster_url}


def write_connections(path: Path, connections: Connections) -> None:
    """Write the `KEY=value` lines that a shell, or an environment-file reader, takes.

    The file has mode 0600 from its first byte and is replaced as a whole.
    """
    lines = [f"{key}={shlex.quote(url)}\n" for key, url in connections.environment().items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    private_files.replace(path, "".join(lines).encode())


def read_connections(path: Path) -> Connections:
    """Read what `write_connections` wrote; blank lines, comments and other keys are ignored.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it lacks an address; all that are missing are named.
    """
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; run `datasource-governance db upgrade`")
    words = shlex.split(path.read_text(), comments=True)
    values = dict(word.split("=", 1) for word in words if "=" in word)
    missing = [key for key in (GOVERNANCE_VARIABLE, DAGSTER_VARIABLE) if not values.get(key)]
    if missing:
        raise InvalidArgumentError(f"{path} does not say {', '.join(missing)}", missing=missing)
    return Connections(
        governance_url=values[GOVERNANCE_VARIABLE], dagster_url=values[DAGSTER_VARIABLE]
    )
