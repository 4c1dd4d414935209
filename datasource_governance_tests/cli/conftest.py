"""The command line in this process, with an environment of its own."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from datasource_governance import cli
from datasource_governance.domain.actor import Role
from datasource_governance_tests.world import World


@dataclass(frozen=True)
class Answer:
    """What a command left behind: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The JSON document that `--json` printed, which is all that was printed."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def command(monkeypatch, capsys, tmp_path) -> Command:
    """A function that runs `datasource-governance` with arguments; the state is in `tmp_path`."""
    for name in os.environ:
        if name.startswith("GOVERNANCE_") or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("GOVERNANCE_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments) -> Answer:
        monkeypatch.setattr(sys, "argv", ["datasource-governance", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return Answer(stop.value.code, *capsys.readouterr())

    return run


@dataclass(frozen=True)
class Office:
    """A governed datasource `orders`, the people around it, and their command line."""

    command: Command
    world: World

    def __call__(self, *arguments, by: str | None = None) -> Answer:
        return self.command(*arguments, *(("--actor", by) if by else ()))

    def deliver(self, text="id,amount\n1,10\n2,20\n", name="delivery.csv"):
        """Write a file that can be staged; return its path."""
        path = self.world.application.settings.state / name
        path.write_text(text)
        return path

    def stage(self, text="id,amount\n1,10\n2,20\n", by="creator") -> str:
        """Stage a delivery in this process; return the stage's id."""
        answer = self(
            "stage", "create", "orders", self.deliver(text), "--in-process", "--json", by=by
        )
        return answer.document["stage"]


@pytest.fixture
def office(command, world, monkeypatch) -> Office:
    """Two approvals are required; casey may both create and approve."""
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", world.database.application_url)
    declarations = world.application.settings.datasources
    (declarations / "orders").mkdir(parents=True)
    (declarations / "orders" / "datasource.json").write_text(json.dumps(ORDERS))
    monkeypatch.setenv("GOVERNANCE_DATASOURCES", str(declarations))
    world.admit("casey", Role.STEWARD, Role.APPROVER)
    made = Office(command, world)
    assert made("datasource", "apply", by="admin").code == 0
    return made


ORDERS = {
    "id": "orders",
    "kind": "static",
    "source": {"folder": "deliveries/orders"},
    "governance": {
        "quality_policy": {
            "version": "orders-v1",
            "rules": [
                {"id": "id-unique", "type": "unique", "field": "id"},
                {"id": "amount", "type": "range", "field": "amount", "minimum": 0},
                {
                    "id": "many",
                    "type": "row_count",
                    "minimum": 2,
                    "severity": "warning",
                },
            ],
        },
        "approval_policy": {"version": "two", "required": True, "required_approvals": 2},
    },
}
