"""What operators write for a process to be told by: TOML files, and secrets beside them.

Source: SPEC sections 16 and 17.
"""

import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path

from datasource_governance.errors import InvalidArgumentError


def read_toml(path: Path) -> Mapping[str, object]:
    """Return what a TOML file says.

    Raises:
        InvalidArgumentError: when it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not TOML"
    raise InvalidArgumentError(f"{path} cannot be read: {reason}")


def read_secret(path: Path, minimum: int) -> str:
    """Return the text of a private file, without white space around it.

    Raises:
        InvalidArgumentError: when it cannot be read, others may read it, or it is shorter than
            `minimum` characters.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text("ascii").strip()
    except (OSError, ValueError):
        mode, text = 0, ""
    if len(text) < minimum or mode & 0o077:
        raise InvalidArgumentError(
            f"{path} must be a file of mode 0600 with a secret of {minimum} characters or more"
        )
    return text


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address stays on this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
