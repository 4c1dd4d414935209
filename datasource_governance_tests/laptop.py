"""A whole system as `dev` runs it, on a state of its own, and the people who sign in to it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from datasource_governance.cli.founding import ADMINISTRATOR, signer_of
from datasource_governance.cli.supervisor import System, SystemOptions
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance_tests.postgres import (
    drop_provisioned,
    reachable_directory,
    unique_name,
)

_OURS = ("GOVERNANCE_", "DAGSTER_", "DATABASE_URL")


@contextmanager
def laptop_system(server: str | None = None) -> Iterator[System]:
    """Run the governed webserver, the daemon and the packaged code location.

    Their databases are of a server that runs, by its administrative URL, or of one of their own.
    """
    state = reachable_directory()
    governance, dagster = unique_name("governance"), unique_name("dagster")
    options = SystemOptions(
        state=state,
        port=0,
        database_url=server,
        governance_database=governance,
        dagster_database=dagster,
    )
    try:
        with pytest.MonkeyPatch.context() as environment:
            for name in [name for name in os.environ if name.startswith(_OURS)]:
                environment.delenv(name)
            environment.setenv("GOVERNANCE_STATE", str(state))
            with System(options) as system:
                yield system
    finally:
        if server is not None:
            drop_provisioned(server, governance, dagster)
        shutil.rmtree(state)


def client_of(system: System) -> DagsterClient:
    """Return what asks the system's Dagster as its administrator."""
    return DagsterClient(system.url, signer_of(system.application, ADMINISTRATOR))


def password_of(system: System, name: str) -> str:
    """Return the password of a demo account."""
    (password,) = (one.password for one in system.accounts if one.name == name)
    return password
