"""The benchmarks run, and the evidence that they compare is exact."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.engines import Engine

ROOT = Path(__file__).parent.parent


@pytest.fixture
def benchmarks(tmp_path):
    """Run `python -m benchmarks`, or one that stands alone, with a cache of its own."""

    def run(*arguments: str, module: str = "benchmarks") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.slow
def test_every_engine_finds_exactly_what_the_generator_put_there(benchmarks):
    ended = benchmarks("check", "--rows", "2000")

    assert ended.returncode == 0, ended.stderr
    answers = [line.split(": ") for line in ended.stdout.splitlines()]
    assert len({engine for _, engine, _ in answers}) >= 17
    about_rows = ["amount-range", "customer-time-unique", "id-present", "id-shape", "id-unique"]
    about_rows.append("known-status")
    inexact = {(engine, answer) for _, engine, answer in answers if answer != "exact"}
    assert inexact == {
        ("ours_fingerprint", "no findings"),
        # Plain Pandera on pandas leaves out repeated nulls.
        ("plain_pandas", "id-unique"),
        ("plain_numpy", "id-unique"),
        # Great Expectations leaves nulls out of a unique column.
        ("plain_gx", "id-unique"),
        # Soda and dbt list no rows.
        ("plain_soda", ", ".join(about_rows)),
        ("plain_dbt", ", ".join(sorted(["columns", *about_rows]))),
    }


def test_an_engine_tells_what_it_needs_that_is_not_installed():
    def engine(*distributions):
        return Engine("any", str, dict, distributions=distributions)

    assert engine("pytest", "no-such-thing").missing() == "not installed: no-such-thing"
    assert engine("pytest").missing() == ""


@pytest.mark.slow
def test_a_run_saves_its_rounds_and_prints_the_tables_that_are_printed_again_later(
    benchmarks, tmp_path
):
    out = tmp_path / "results.json"

    ended = benchmarks(
        *("run", "--rows", "2000", "--rounds", "2", "--out", str(out)),
        *("--engines", "hand_polars,hand_duckdb"),
    )

    assert ended.returncode == 0, ended.stderr
    records = json.loads(out.read_bytes())["records"]
    assert [(record["round"], record["engine"]) for record in records] == [
        *((1, "hand_polars"), (1, "hand_duckdb")),
        *((2, "hand_polars"), (2, "hand_duckdb")),
    ]
    assert all(record["measurement"]["differs"] == [] for record in records)
    assert "| hand-written DuckDB (`hand_duckdb`) |" in ended.stdout
    assert "exact, 2 rounds" in ended.stdout
    assert benchmarks("table", str(out)).stdout == ended.stdout


def test_an_unknown_engine_is_refused_with_the_known_ones(benchmarks):
    ended = benchmarks("run", "--engines", "slow_polars")

    assert ended.returncode == 2
    assert "slow_polars" in ended.stderr
    assert "hand_duckdb" in ended.stderr


@pytest.mark.slow
@pytest.mark.postgres
def test_decisions_are_counted_beside_the_raw_commits_of_a_server_that_waits_for_the_disk(
    benchmarks,
):
    ended = benchmarks(
        *("--clients", "2", "--decisions", "2", "--rounds", "1"), module="benchmarks.approval"
    )

    assert ended.returncode == 0, ended.stderr
    assert "2 clients, 1 rounds, fsync on" in ended.stdout
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if " (" in line]
    assert [row[0].removeprefix("| ") for row in rows] == [
        "raw commits of one row",
        "decisions, each client in a datasource of its own",
        "decisions, all clients in one datasource",
    ]
    assert rows[0][2].startswith("1.00 ")


@pytest.mark.slow
@pytest.mark.postgres
def test_publications_are_counted_beside_what_is_written_by_hand(benchmarks):
    sizes = ("--clients", "1", "--publications", "2", "--rounds", "1")

    ended = benchmarks(*sizes, module="benchmarks.publication")

    assert ended.returncode == 0, ended.stderr
    assert "1 clients, 1 rounds, fsync on" in ended.stdout
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if " (" in line]
    assert [row[0].removeprefix("| ") for row in rows] == [
        "raw commits of one row",
        "written by hand, each client with a chain of its own",
        "publications, each client in a datasource of its own",
        "publications, all clients in one datasource",
    ]


@pytest.mark.slow
@pytest.mark.postgres
def test_what_a_plan_costs_is_measured_among_objects_that_are_not_due(benchmarks):
    ended = benchmarks("--objects", "200", "--due", "40", module="benchmarks.retention")

    assert ended.returncode == 0, ended.stderr
    rows = [line[2:].split(" | ") for line in ended.stdout.splitlines() if line[2:5] == "200"]
    assert {(planned, destroyed) for _, planned, destroyed, *_ in rows} == {("40", "40")}
    assert [row[3] for row in rows] == [
        "plan, whole",
        "of it, read what is due",
        "of it, make the plan",
        "of it, keep the plan",
        "explain one",
        "apply to all",
    ]
    assert "stage, one of 20 datasources:" in ended.stdout


@pytest.mark.slow
@pytest.mark.postgres
def test_what_a_provider_costs_is_measured_over_a_frame_and_a_table_with_exact_counts(benchmarks):
    sizes = ("100", "--rounds", "1", "--providers", "pandera")

    ended = benchmarks(*sizes, module="benchmarks.providers")

    assert ended.returncode == 0, ended.stderr
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if " (" in line]
    assert [row[0] for row in rows] == ["| `pandera`", "| pandas", "| Postgres"]
    assert [row[-1] for row in rows[1:]] == ["exact, with rows |", "exact counts |"]


@pytest.mark.slow
def test_what_an_artifact_costs_is_measured_beside_a_plain_file(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.artifacts", "2000", "--rounds", "1"],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["plain", "frame", "lazy", "asset"]
    assert "asset to plain: " in ended.stdout
