"""`publish`, `publication list | show` and `artifact orphans`, without Dagster."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.evaluation.payload import MAXIMUM_INLINE_ROWS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

BAIT = "zq-canary-7731"
TOTALS = {
    "id": "totals",
    "kind": "published",
    "governance": {
        "quality_policy": {
            "version": "totals-v1",
            "rules": [
                {"id": "id-unique", "type": "unique", "field": "id"},
                {
                    "id": "amount",
                    "type": "range",
                    "field": "amount",
                    "minimum": 0,
                    "severity": "warning",
                },
            ],
        },
    },
}
GOOD = {"id": [1, 2], "amount": [10, 20]}


@pytest.fixture
def desk(office):
    """The office, where `totals` is published by maria and, where nobody is named, by `system`."""
    declare(office)
    office.world.admit("maria", Role.PRODUCER)
    office.world.grant(SYSTEM, Role.PRODUCER)
    return office


def declare(office, approval=None):
    governance = TOTALS["governance"] | ({"approval_policy": approval} if approval else {})
    folder = office.world.application.settings.datasources / "totals"
    folder.mkdir(exist_ok=True)
    (folder / "datasource.json").write_text(json.dumps({**TOTALS, "governance": governance}))
    assert office("datasource", "apply", by="admin").code == 0


def output(office, columns=GOOD, name="totals.parquet"):
    path = office.world.application.settings.state / name
    pq.write_table(pa.table(columns), path)
    return path


def publish(office, path, *options, by=None, key="k1"):
    named = ("publish", "totals", path, "--producer", "nightly", "--key", key)
    return office(*named, *options, by=by)


def test_an_output_that_passes_is_current_and_signed_for_by_its_actor(desk):
    answer = publish(desk, output(desk), "--json", by="maria")

    document = answer.document
    assert answer.code == 0
    assert (document["state"], document["actor"]) == ("published", "maria")
    assert (document["revision"], document["replayed"]) == (1, False)
    with desk.world.application.work() as work:
        assert work.publications.get(document["publication"]).attestation_id is not None
    assert desk.world.verification().holds


def test_the_actor_of_the_environment_signs_and_nobody_is_system(desk, monkeypatch):
    unsigned = publish(desk, output(desk), "--json").document
    monkeypatch.setenv("GOVERNANCE_ACTOR", "maria")
    signed = publish(desk, output(desk), "--json", key="k2").document

    assert (unsigned["actor"], signed["actor"]) == (SYSTEM, "maria")


def test_an_actor_without_a_key_here_is_not_taken_for_system(desk):
    before = desk.world.count_rows()

    answer = publish(desk, output(desk), by="stranger")

    assert (answer.code, answer.out) == (2, "")
    assert desk.world.count_rows() == before


def test_a_retry_is_told_the_first_result_and_has_its_exit_code(desk):
    path = output(desk, {"id": [1], "amount": [-1]})

    first, again = publish(desk, path, "--json"), publish(desk, path, "--json")

    assert (first.code, again.code) == (0, 0)
    assert first.document["state"] == "published_with_warnings"
    assert again.document == {**first.document, "replayed": True}
    assert "nothing was written" in publish(desk, path).out


def test_another_output_under_the_key_is_a_conflict(desk):
    publish(desk, output(desk))

    answer = publish(desk, output(desk, {"id": [3], "amount": [1]}), "--json")

    assert (answer.code, answer.document["kind"]) == (1, "idempotency_conflict")


def test_of_a_rejected_output_whoever_has_it_is_told_the_rows_and_no_value(desk):
    path = output(desk, {"id": [7, 7], "amount": [1, 1], "note": [BAIT, BAIT]})
    before = desk.world.count_rows()

    answer, document = publish(desk, path), publish(desk, path, "--json").document

    assert answer.code == 1
    assert "rules that did not pass: id-unique" in answer.err
    assert document["kind"] == "validation_failed"
    (found,) = [one for one in document["validation"]["rules"] if one["id"] == "id-unique"]
    assert (found["affected"], found["rows"]) == (2, [1, 2])
    assert BAIT not in answer.out + answer.err + str(document)
    assert desk.world.count_rows() == before


def test_where_approval_is_required_it_says_where_it_is_decided(desk, monkeypatch):
    declare(desk, {"version": "one", "required": True})
    monkeypatch.setenv("GOVERNANCE_DAGSTER_URL", "http://governed:3000/")

    answer = publish(desk, output(desk), "--json", by="maria")

    document = answer.document
    assert (answer.code, document["state"]) == (1, "review_required")
    page = f"http://governed:3000/governance/stages/{document['stage']}"
    assert document["decision_page"] == page
    shown = desk("publication", "show", document["publication"])
    assert page in shown.out
    assert "review_required" in shown.out


def test_an_artifact_needs_the_evidence_that_its_producer_sends(desk, tmp_path):
    rows = MAXIMUM_INLINE_ROWS + 1
    path = output(desk, {"id": range(rows), "amount": [1] * rows})
    (tmp_path / "policy.json").write_text(json.dumps(TOTALS["governance"]["quality_policy"]))
    evidence = tmp_path / "evidence.json"
    produced = ("evidence", "produce", path, "--policy", tmp_path / "policy.json")
    assert desk(*produced, "--out", evidence).code == 0

    without = publish(desk, path, by="maria")
    with_it = publish(desk, path, "--evidence", evidence, "--json", by="maria", key="k2")

    assert without.code == 1
    assert "publish it again under a new key, with evidence" in without.out
    assert (with_it.code, with_it.document["state"]) == (0, "published")
    assert with_it.document["actor"] == "maria"
    assert desk("artifact", "orphans", "--older-than", "0", "--json").document == []


def test_partitions_are_published_beside_each_other(desk):
    one = publish(desk, output(desk), "--partition", "2026-11", "--json").document
    other = publish(desk, output(desk), "--partition", "2026-12", "--json", key="k2").document

    assert (one["partition"], other["partition"]) == ("2026-11", "2026-12")
    assert (one["revision"], other["revision"]) == (1, 2)


@pytest.mark.parametrize(
    ("file", "code"),
    [("gone.parquet", 3), ("broken.parquet", 3), ("output.csv", 2)],
)
def test_what_cannot_be_read_is_told_from_what_cannot_be_meant(desk, tmp_path, file, code):
    (tmp_path / "broken.parquet").write_text(BAIT)
    (tmp_path / "output.csv").write_text(f"id\n{BAIT}\n")

    answer = publish(desk, tmp_path / file, "--json")

    assert answer.code == code
    assert answer.document["format"] == "datasource_governance/refusal/v1"
    assert BAIT not in answer.out + answer.err


def test_evidence_that_is_none_is_an_argument(desk, tmp_path):
    (tmp_path / "evidence.json").write_text("{}")

    answer = publish(desk, output(desk), "--evidence", tmp_path / "evidence.json")

    assert (answer.code, answer.out) == (2, "")


def test_publications_are_listed_newest_first_by_datasource_and_state(desk):
    first = publish(desk, output(desk), "--json").document["publication"]
    second = publish(desk, output(desk), "--json", key="k2").document["publication"]

    def listed(*options):
        found = desk("publication", "list", *options, "--json").document
        return [one["publication"] for one in found]

    assert listed() == listed("totals", "--state", "published") == [second, first]
    assert listed("--limit", "1") == [second]
    assert listed("orders") == listed("--state", "review_required") == []
    assert first in desk("publication", "list").out


def test_a_publication_is_shown_without_counts(desk):
    made = publish(desk, output(desk, {"id": [1], "amount": [-1]}), "--json").document

    shown = desk("publication", "show", made["publication"], "--json").document

    assert shown == {name: value for name, value in made.items() if name != "replayed"}
    assert all("affected" not in one for one in shown["validation"]["rules"])
    assert desk("publication", "show", "nowhere").code == 2


def test_an_upload_that_broke_off_is_an_orphan_too(desk):
    with desk.world.application.artifacts().begin("totals") as upload:
        upload.file.write(BAIT.encode())
        checkpoint = upload.suspend()

    (orphan,) = desk("artifact", "orphans", "--older-than", "0", "--json").document

    assert (orphan["locator"], orphan["byte_count"]) == (checkpoint, len(BAIT))


def test_orphans_are_listed_with_size_and_age_and_stay(desk):
    outlet = desk.world.application.outlet()
    kept = outlet.store("totals", lambda file: pq.write_table(pa.table(GOOD), file))
    objects = desk.world.application.settings.state / "artifacts" / "default"
    written = (objects / kept.locator).stat().st_mtime
    os.utime(objects / kept.locator, (written - 26 * 3600, written - 26 * 3600))

    (orphan,) = desk("artifact", "orphans", "--json").document
    told = desk("artifact", "orphans")

    assert (orphan["locator"], orphan["byte_count"]) == (kept.locator, kept.byte_count)
    assert orphan["age_hours"] == 26
    assert "1 orphans of" in told.out
    assert "26 h" in told.out
    assert desk("artifact", "orphans", "--older-than", "27", "--json").document == []
    assert (objects / kept.locator).exists()
