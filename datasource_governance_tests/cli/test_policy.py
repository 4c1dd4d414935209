"""`policy diff` and `policy schema`, run through the whole command line."""

import json
import sys

import jsonschema
import pytest

from datasource_governance.cli import app
from datasource_governance.cli.output import run
from datasource_governance_tests.builders import policy_document, rule


@pytest.fixture
def command(monkeypatch, capsys):
    """Run one command line; return its exit code and what it printed."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["datasource-governance", *map(str, words)])
        code = run(lambda: app(standalone_mode=False))
        return code, capsys.readouterr().out

    return call


def write(path, document):
    path.write_text(json.dumps(document))
    return path


def test_two_spellings_of_one_policy_are_equal_and_exit_0(command, tmp_path):
    old = write(tmp_path / "old.json", policy_document(rule()))
    new = tmp_path / "new.json"
    new.write_text(json.dumps(policy_document(rule()), indent=1))

    code, printed = command("policy", "diff", old, new)

    assert code == 0
    assert printed.startswith("no change")


def test_a_changed_policy_exits_1_and_shows_before_and_after(command, tmp_path):
    old = write(tmp_path / "old.json", policy_document(rule(id="[r]", minimum=1)))
    new = write(tmp_path / "new.json", policy_document(rule(id="[r]", minimum=2)))

    code, printed = command("policy", "diff", old, new)

    assert code == 1
    row = next(line for line in printed.splitlines() if "minimum" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "rules / [r] / minimum",
        "1",
        "2",
        "tightens",
    ]


def test_a_long_value_is_cut_for_people_and_whole_in_json(command, tmp_path):
    codes = [f"code-{place}" for place in range(100)]
    old = write(tmp_path / "old.json", policy_document())
    new = write(
        tmp_path / "new.json",
        policy_document(rule("referential", field="f", allowed_values=codes)),
    )

    _, printed = command("policy", "diff", old, new)
    code, document = command("policy", "diff", old, new, "--json")

    assert "code-99" not in printed
    assert code == 1
    assert json.loads(document)["changes"][0]["after"]["allowed_values"] == codes


def test_a_policy_of_another_kind_is_compared_as_that_kind(command, tmp_path):
    old = write(tmp_path / "old.json", {"version": "v1", "required": True})
    new = write(tmp_path / "new.json", {"version": "v1", "required": False})

    code, document = command("policy", "diff", old, new, "--kind", "approval", "--json")

    assert code == 1
    assert json.loads(document)["kind"] == "approval"
    assert json.loads(document)["changes"][0]["effect"] == "loosens"


def test_a_policy_that_is_refused_is_not_compared(command, tmp_path):
    old = write(tmp_path / "old.json", policy_document())
    new = write(tmp_path / "new.json", {"rules": []})

    code, document = command("policy", "diff", old, new, "--json")

    assert code == 2
    assert json.loads(document)["format"] == "datasource_governance/refusal/v1"


@pytest.mark.parametrize("kind", ["quality", "approval", "retention"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_schema_of_a_kind_is_printed_as_one_json_document(command, kind, form):
    code, printed = command("policy", "schema", "--kind", kind, *form)

    assert code == 0
    schema = json.loads(printed)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"{kind} policy"
