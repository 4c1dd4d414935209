"""Nothing but a refusal comes of damaged documents and files, and a target notices if more does.

FUZZ_SECONDS says for how long each target breeds inputs.
"""

import os

import pytest

from datasource_governance_tests.fuzzing import planted
from datasource_governance_tests.fuzzing.campaign import CORPUS, corpus_of, fuzz
from datasource_governance_tests.fuzzing.files import files
from datasource_governance_tests.fuzzing.policies import CANARY, Policies

SECONDS = float(os.environ.get("FUZZ_SECONDS", "5"))
PLANTED_SECONDS = 30


@pytest.mark.slow
def test_a_document_is_read_or_refused_whatever_its_bytes():
    report = fuzz(Policies(), CORPUS / "policies", seconds=SECONDS)

    assert not report.findings, str(report)
    assert report.samples > len(corpus_of(CORPUS / "policies"))


@pytest.mark.slow
def test_a_file_is_read_or_refused_whatever_its_bytes():
    with files() as target:
        report = fuzz(target, CORPUS / "files", seconds=SECONDS)

    assert not report.findings, str(report)
    assert report.samples > len(corpus_of(CORPUS / "files"))


@pytest.mark.parametrize(
    ("reader", "broken"),
    [
        (planted.stumbles_over_a_reserved_key, "raised KeyError"),
        (planted.quotes_what_is_no_json, "quoted a value"),
        (planted.keeps_a_cause, "kept a foreign exception"),
        (planted.says_nothing, "refused for no reason"),
        (planted.takes_its_time, "took more than"),
        (planted.hashes_differently, "in two ways"),
    ],
)
def test_a_defect_of_a_policy_reader_is_found_and_its_input_kept(reader, broken, tmp_path):
    (tmp_path / "seed.json").write_text(f'{{"version": "{CANARY}", "rules": []}}')
    target = Policies(readers={"quality": reader}, seconds=0.04, seeds=[])

    report = until_found(target, tmp_path)

    (message,) = report.findings
    assert broken in message
    again = fuzz(target, tmp_path, seconds=0)
    assert report.findings.items() <= again.findings.items()


@pytest.mark.parametrize(
    ("judge", "broken"),
    [
        (planted.dies_of_damage, "ended the process with status -6"),
        (planted.hangs, "took too long"),
        (planted.fails, "ValueError in fails"),
        (planted.quotes_a_cell, "quoted a value"),
        (planted.keeps_the_context, "kept a foreign exception"),
    ],
)
def test_a_defect_in_reading_a_file_is_found_and_its_input_kept(judge, broken, tmp_path):
    (tmp_path / "seed.csv").write_bytes(planted.UNDAMAGED)

    with files(judge=judge, seconds=2) as target:
        report = until_found(target, tmp_path)

    ((message, path),) = report.findings.items()
    assert broken in message
    assert path in (tmp_path / "crashes").iterdir()


def test_what_is_found_is_explained_with_its_input(tmp_path):
    (tmp_path / "seed.json").write_bytes(b"[]")

    report = fuzz(Policies(readers={"x": planted.says_nothing}, seeds=[]), tmp_path, seconds=0)

    (kept,) = (tmp_path / "crashes").iterdir()
    assert kept.read_bytes() == b"[]"
    assert "the x reader refused for no reason" in str(report)
    assert f"crashes/{kept.name}" in str(report)


def test_the_files_of_the_corpus_are_small_and_few():
    paths = [path for path in CORPUS.rglob("*.*") if path.name != ".gitattributes"]

    assert max(path.stat().st_size for path in paths) < 4096
    assert len(corpus_of(CORPUS / "files")) < 60
    assert {path.suffix for path in paths} == {".arrow", ".csv", ".json", ".parquet"}


def until_found(target, folder):
    return fuzz(target, folder, seconds=PLANTED_SECONDS, findings=1)
