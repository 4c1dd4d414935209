"""Find the acceptance cases of an operation: `<folder>/<topic>/<id>.json`, format 1.

A test module declares which argument takes the cases of which operation, and runs once per case:

    def pytest_generate_tests(metafunc):
        case_files.parametrise(metafunc, hash_case="policy_hash")

    def test_hash_case(hash_case): ...

The cases are those of `--cases DIR`, else the copy in this package.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

PACKAGED = Path(__file__).parent / "cases"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case as it is written; whole numbers are exact, other numbers are doubles."""

    id: str
    topic: str
    operation: str
    input: dict
    expected: dict
    also_acceptable: list = field(default_factory=list)
    decisions: list = field(default_factory=list)

    @property
    def answers(self):
        """Every result that is right."""
        return [self.expected, *self.also_acceptable]


def load_case(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["format"] != FORMAT:
        raise ValueError(f"{path.name} has format {document['format']}, known is {FORMAT}")
    known = Case.__dataclass_fields__
    return Case(**{key: value for key, value in document.items() if key in known})


def load_cases(folder, operation):
    """Return the cases of one operation, of whatever topic, ordered by id."""
    cases = [load_case(path) for path in Path(folder).glob("*/*.json")]
    return sorted((one for one in cases if one.operation == operation), key=lambda one: one.id)


def parametrise(metafunc, **operations):
    """Run a test that has one of these arguments once per case of that argument's operation."""
    for argument, operation in operations.items():
        if argument in metafunc.fixturenames:
            cases = load_cases(metafunc.config.getoption("cases"), operation)
            metafunc.parametrize(argument, cases, ids=[case.id for case in cases])
