"""The border of the command line: exit codes, refusals, and nothing of what was unforeseen."""

import json
import subprocess
import sys

import pytest
import typer

from datasource_governance import errors
from datasource_governance.cli.output import refusal_document, run

BAIT = "zq-canary-7731"


def raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.GuardError("no", code="quorum_not_met"), 1),
        (errors.InvalidArgumentError("no"), 2),
        (errors.NotFoundError("no"), 2),
        (errors.ServiceUnavailableError("no"), 3),
        (errors.EvaluationError("no"), 3),
        (typer.Exit(7), 7),
        (typer.Abort(), 2),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error, code, capsys):
    assert run(raising(error)) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("result", "code"), [(0, 0), (1, 1), (None, 0)])
def test_what_a_command_returns_is_the_exit_code(result, code):
    assert run(lambda: result) == code


def test_the_text_of_anything_unforeseen_is_withheld(capsys):
    code = run(raising(ValueError(BAIT)))

    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err.startswith("unforeseen ValueError; its text is withheld")
    assert BAIT not in err


def test_a_refusal_without_problems_is_a_problem_itself():
    refusal = refusal_document(errors.GuardError("no quorum", code="quorum_not_met"))

    assert refusal == {
        "format": "datasource_governance/refusal/v1",
        "kind": "quorum_not_met",
        "problems": [
            {"kind": "quorum_not_met", "pointer": "", "names": [], "message": "no quorum"}
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["validate"], "Missing argument"),
        (["validate", "x", "--nope"], "No such option: --nope"),
        (["policy", "lint", "x", "--kind", "nope"], "'nope' is not one of"),
        (["actor", "grant", "x", "emperor"], "'emperor' is not one of"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_refused_in_one_line(command, arguments, says):
    answer = command(*arguments)

    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert "--help" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("noun", [(), ("policy",), ("stage",), ("key",), ("actor",)])
def test_a_noun_without_a_verb_shows_its_help(command, noun):
    answer = command(*noun)

    assert "Usage: datasource-governance" in answer.out
    assert (answer.code, answer.err) == (2, "")


@pytest.mark.slow
def test_the_installed_command_answers_like_the_one_in_process(tmp_path):
    (tmp_path / "policy.json").write_text(json.dumps({"version": "v1", "rules": []}))
    (tmp_path / "data.csv").write_text(f"id\n{BAIT}\n")

    done = subprocess.run(
        [
            *(sys.executable, "-c", "from datasource_governance.cli import main; main()"),
            *("validate", "data.csv", "--policy", "policy.json", "--json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["outcome"] == "ready"
    assert BAIT not in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "policy.json"]
