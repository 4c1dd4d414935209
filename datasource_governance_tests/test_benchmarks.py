"""The benchmarks run, and the evidence that they compare is exact."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert len({engine for _, engine, _ in answers}) >= 14
    inexact = {(engine, answer) for _, engine, answer in answers if answer != "exact"}
    assert inexact == {
        ("ours_fingerprint", "no findings"),
        # Plain Pandera on pandas leaves out repeated nulls.
        ("plain_pandas", "id-unique"),
        ("plain_numpy", "id-unique"),
    }


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
