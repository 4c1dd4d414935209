"""Decoders that tell what they can, run in a child process."""

import os
from pathlib import Path

import pyarrow as pa

from datasource_governance.sources.child import Content


def blurt(content: Content) -> pa.Table:
    """Print the file on both streams, and die quoting it."""
    os.write(1, content.stored)
    os.write(2, content.stored)
    raise ValueError(content.stored.decode())


def circumstances(_content: Content) -> pa.Table:
    """Return what every user of the machine may see of the process, and what its children get."""
    return pa.table(
        {
            "arguments": [Path("/proc/self/cmdline").read_text()],
            "environment": [repr(dict(os.environ))],
            "title": [Path("/proc/self/comm").read_text()],
            "directory": [str(Path.cwd())],
        }
    )
