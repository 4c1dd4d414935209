"""What Dagster shows beside an asset: what people look for, and never a value or a reason."""

from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg
import pytest

from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.stage import StageState
from datasource_governance.orchestration import metadata
from datasource_governance.orchestration.metadata import (
    decision_pages,
    materialization_metadata,
    next_step,
    policy_metadata,
    stage_metadata,
)
from datasource_governance_tests.orchestration.governed import declaration, stage_of
from datasource_governance_tests.world import TWO_APPROVALS

WEBSERVER = "https://dagster.example.org/"
HASHES = [Sha256(digit * 64) for digit in "abcdef"]


def materialization(approval):
    provenance = {
        "policies": {"quality": HASHES[0], "approval": None, "source": "inherited"},
        "approval": approval,
        "validation_hash": HASHES[1],
    }
    return Materialization(
        id="m-1",
        datasource="orders",
        stage="s-1",
        revision=3,
        schema=canonical_bytes([{"name": "id", "type": "integer", "nullable": False}]),
        payload_fingerprint=HASHES[2],
        payload_sha256=HASHES[3],
        row_count=4,
        byte_count=5,
        provenance=canonical_bytes(provenance),
        created_by="system",
        created_at=datetime(2026, 11, 30, tzinfo=UTC),
    )


def shown(made):
    found = materialization_metadata(made, provenance_of(made))
    return {key.removeprefix("datasource_governance/"): value for key, value in found.items()}


def table(value):
    return [record.data for record in value.records]


def test_no_key_of_an_asset_is_written_over_its_neighbour():
    made = materialization("not required")
    shown_beside_a_timestamp = [
        *policy_metadata(declaration()),
        *decision_pages(WEBSERVER),
        *stage_metadata(stage_of(), "default", None, WEBSERVER),
        *materialization_metadata(made, provenance_of(made)),
    ]

    names = {key for key in shown_beside_a_timestamp if not key.startswith("dagster/")}

    assert {key.partition("/")[0] for key in names} == {"datasource_governance"}
    assert max(len(key.partition("/")[2]) for key in names) <= 12


def test_a_definition_shows_the_declared_policies():
    declared = declaration(approval=TWO_APPROVALS)

    found = policy_metadata(declared)

    assert table(found[metadata.POLICIES]) == [
        {"policy": "quality", "version": "v1", "hash": declared.quality_policy.hash},
        {"policy": "approval", "version": "v2", "hash": declared.approval_policy.hash},
    ]


def test_a_definition_without_policies_shows_none():
    assert policy_metadata(declaration(quality=None)) == {}


def test_a_stage_shows_first_what_to_do_next():
    found = stage_metadata(stage_of(), "default", None, WEBSERVER)

    assert [key.split("/")[1] for key in found][:3] == ["next_step", "decide", "state"]
    assert found["dagster/row_count"] == 2


def test_a_stage_links_the_page_on_which_one_decides_about_it():
    stage = replace(stage_of(), state=StageState.AWAITING_APPROVAL)

    found = stage_metadata(stage, "default", None, WEBSERVER)

    page = "https://dagster.example.org/governance/stages/s-1"
    assert found[metadata.DECISION_PAGE] == dg.MetadataValue.url(page)
    assert f"[decide]({page})" in found[metadata.NEXT_STEP].value


def test_a_definition_links_the_page_of_what_waits():
    (link,) = decision_pages(WEBSERVER).values()

    assert link == dg.MetadataValue.url("https://dagster.example.org/governance/decisions")


def test_a_stage_shows_everything_that_it_is_bound_to():
    stage = stage_of()

    found = table(stage_metadata(stage, "default", None, WEBSERVER)[metadata.BOUND_TO])

    assert {one["of"]: one["hash or id"] for one in found} == {
        "stage": stage.fingerprint("default"),
        "payload": stage.payload_fingerprint,
        "validation": stage.validation_hash,
        "quality policy": stage.quality_policy_hash,
        "approval policy": "none",
    }


def test_a_stage_shows_its_columns():
    found = stage_metadata(stage_of(), "default", None, WEBSERVER)["dagster/column_schema"]

    assert found.columns == [
        dg.TableColumn("id", "integer", constraints=dg.TableColumnConstraints(nullable=False))
    ]


@pytest.mark.parametrize("declared", [None, declaration().quality_policy])
def test_another_policy_than_the_declared_one_is_drift(declared):
    assert stage_metadata(stage_of(), "default", declared, WEBSERVER)[metadata.POLICY_DRIFT] is True


def test_the_declared_policy_is_no_drift():
    policy = declaration().quality_policy
    stage = replace(stage_of(), quality_policy_hash=policy.hash)

    assert stage_metadata(stage, "default", policy, WEBSERVER)[metadata.POLICY_DRIFT] is False


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (StageState.FAILED, "**blocked**"),
        (StageState.AWAITING_APPROVAL, "approve s-1 --reason"),
        (StageState.READY, "promote s-1"),
        (StageState.SUPERSEDED, "is superseded"),
        (StageState.REJECTED, "is rejected"),
    ],
)
def test_the_next_step_names_the_command(state, says):
    assert says in next_step(replace(stage_of(), state=state), "https://page")


def test_a_materialization_shows_who_approved_it_and_never_why():
    approvals = [{"actor": "alice", "reason_hash": HASHES[4]}, {"actor": "bob"}]

    found = shown(materialization({"approvals": approvals}))

    assert (found["approved_by"], found["promoted_by"], found["revision"]) == (
        "alice, bob",
        "system",
        3,
    )
    assert "reason" not in repr(found)


def test_a_materialization_that_needed_no_approval_says_so():
    assert shown(materialization("not required"))["approved_by"] == "not required"


def test_a_materialization_shows_its_provenance():
    found = table(shown(materialization("not required"))["provenance"])

    assert {one["of"]: one["hash or id"] for one in found} == {
        "materialization": "m-1",
        "payload": HASHES[2],
        "validation": HASHES[1],
        "quality policy": HASHES[0],
        "approval policy": "none",
    }
