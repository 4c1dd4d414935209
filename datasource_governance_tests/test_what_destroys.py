"""Only applying a plan reaches what destroys; anything else would be a way around the plan."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import datasource_governance

PACKAGE = Path(datasource_governance.__file__).parent
DESTROYING = frozenset({"delete", "dispose", "finish_purging", "mark_purged"})
CLOSES_CONNECTIONS = {"self._engine.dispose", "self.engine.dispose", "engine.dispose"}
"""What SQLAlchemy calls closing the connections of an engine."""
SAYS_DELETE = {"domain/retention.py": {"'delete'"}}
"""Where the word is the name of an action that a plan tells of."""


def references(source: str) -> Iterator[str]:
    """Yield every reference to what destroys: called, passed on, imported, or named in a text."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in DESTROYING:
                yield ast.unparse(node)
            case ast.alias(name=name) if name in DESTROYING:
                yield name
            case ast.Constant(value=str(name)) if name in DESTROYING:
                yield repr(name)


def test_only_applying_reaches_what_destroys():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        named = (
            {*references(path.read_text())} - CLOSES_CONNECTIONS - SAYS_DELETE.get(module, set())
        )
        if named:
            found[module] = named

    assert found == {
        "services/retention.py": {"work.retention.dispose", "finish_purging"},
        "services/purging.py": {"artifacts.delete", "work.retention.mark_purged"},
        # Where the ports are implemented.
        "persistence/retention.py": {"dispose"},
        "artifacts/local.py": {"self._files.delete"},
        "artifacts/remote.py": {"self._uploads.delete"},
    }


@pytest.mark.parametrize(
    "source",
    [
        "work.retention.dispose(targets)",
        "destroy = self.artifacts.delete\ndestroy(locator)",
        "from datasource_governance.services.purging import finish_purging as tidy\ntidy()",
        "import operator\noperator.methodcaller('mark_purged', made)(retention)",
        "getattr(retention, 'dispose')(targets)",
        "held = work.retention\nmap(held.dispose, targets)",
    ],
)
def test_a_reference_under_another_name_is_found(source):
    assert list(references(source))


def test_what_does_not_destroy_is_not_taken_for_it():
    assert not list(references("def dispose(): ...\nplan.disposed\nfind('deleted')"))
