"""`kill -9` at every point of a publication: it happened whole or not at all; a retry completes it.

The points are every trip to the server, and every step by which an artifact comes to its place.
"""

import signal
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.artifact import ArtifactReference, orphans
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.persistence.connection import Connection
from datasource_governance.services.publishing import PublicationRequest
from datasource_governance_tests.contents import contents
from datasource_governance_tests.services.dying import assert_whole_or_not_at_all, die_after
from datasource_governance_tests.world import ONE_ROW_AT_LEAST

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROWS = pa.table({"id": [1, 2]})
FAR_AHEAD = datetime(9999, 1, 1, tzinfo=UTC)
APPROVAL = {"version": "v1", "required": True}
PARTITION = "2026-01"
EVERYWHERE = ("publication", "materialization", "outbox", "evidence")
# All bytes are written before them; a file appears by a link, and then loses its first name.
STEPS_OF_AN_UPLOAD = {
    "os": ("fsync",),
    "datasource_governance.artifacts.local": ("_link",),
    "datasource_governance.artifacts.files": ("_remove",),
}
# To look into an artifact takes as long as forty statements, so there is one point for each step.
STEPS_OF_A_PUBLICATION = {
    "datasource_governance.services.outputs:ArtifactOutput": ("examine", "check_unchanged"),
    "datasource_governance.persistence.publications:PostgresPublications": (
        *("find", "lock_key", "add"),
    ),
    "datasource_governance.persistence.repositories:PostgresDatasources": (
        *("get_for_update", "move"),
    ),
    "datasource_governance.persistence.outbox:PostgresOutbox": ("add",),
    "datasource_governance.persistence.chains:PostgresEvidence": ("append",),
    "datasource_governance.persistence.connection:Connection": ("commit",),
}


@dataclass(frozen=True)
class Publishing:
    """An output is published to a partition."""

    request: PublicationRequest

    @classmethod
    def prepare(cls, world, **declared):
        world.declare(kind="published", **declared)
        world.grant(SYSTEM, Role.PRODUCER)
        named = {"producer": "flow", "datasource": world.datasource, "partition": PARTITION}
        return cls(PublicationRequest(idempotency_key="k", **named))

    def run(self, application):
        return application.publish(ROWS, self.request).publication.id

    def found(self, work):
        publication = work.publications.find(self.request.producer, self.request.idempotency_key)
        return [publication.id] if publication else []


@dataclass(frozen=True)
class PublishingAnArtifact(Publishing):
    """An artifact that is kept already is verified and published."""

    reference: ArtifactReference

    @classmethod
    def prepare(cls, world, **declared):
        publishing = Publishing.prepare(world, **declared)
        reference = world.store_artifact(ROWS)
        evidence = ProducerEvidence(
            artifact_sha256=reference.sha256,
            policy_hash=parse_quality_policy(ONE_ROW_AT_LEAST).hash,
            evaluator="the producer's",
            results=(RuleResult(id="r", status=ResultStatus.PASSED),),
        )
        return cls(replace(publishing.request, evidence=evidence), reference)

    def run(self, application):
        return application.publish(self.reference, self.request).publication.id


@dataclass(frozen=True)
class Storing:
    """An artifact is written to where it is kept; no table knows of it."""

    datasource: str

    def run(self, application):
        return application.outlet().store(self.datasource, lambda file: pq.write_table(ROWS, file))


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_publication_whose_commit_was_not_answered_is_there_once_when_it_was_tried_again(
    world, monkeypatch, is_durable
):
    publishing = Publishing.prepare(world)
    commit = Connection.commit

    def unanswered(self):
        if is_durable:
            commit(self)
        backend = self.execute(text("SELECT pg_backend_pid()")).scalar_one()
        world.as_superuser(f"SELECT pg_terminate_backend({backend}, 5000)")
        commit(self)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "commit", unanswered)
        with pytest.raises(ServiceUnavailableError) as refused:
            publishing.run(world.application)

    assert refused.value.code == "outcome_unknown"
    again = world.application.publish(ROWS, publishing.request)
    assert again.replayed is is_durable
    assert world.count_rows()["publication"] == 1
    assert world.verification().holds


def added_rows(world, before):
    """Return how many rows each table has more than before, where it has."""
    after = world.count_rows()
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def test_a_killed_publication_is_current_whole_or_not_at_all(world):
    publishing = Publishing.prepare(world)
    before = world.count_rows()

    assert_whole_or_not_at_all(world, publishing)

    names = (*EVERYWHERE, "materialization_payload", "current_partition")
    assert added_rows(world, before) == dict.fromkeys(names, 1)


def test_a_killed_publication_that_needs_approval_waits_in_one_stage_or_not_at_all(world):
    publishing = Publishing.prepare(world, approval=APPROVAL)
    before = world.count_rows()

    assert_whole_or_not_at_all(world, publishing)

    names = (*EVERYWHERE, "materialization_payload", "stage", "stage_payload")
    # A stage is told of by an event of its own.
    assert added_rows(world, before) == {**dict.fromkeys(names, 1), "outbox": 2, "evidence": 2}
    with world.application.work() as work:
        assert work.datasources.get(world.datasource, PARTITION).current is None


def test_a_killed_publication_of_an_artifact_happened_whole_or_not_at_all(world):
    publishing = PublishingAnArtifact.prepare(world)
    before = world.count_rows()

    assert_whole_or_not_at_all(world, publishing, STEPS_OF_A_PUBLICATION)

    assert added_rows(world, before) == dict.fromkeys((*EVERYWHERE, "current_partition"), 1)
    kept = world.application.artifacts().kept()
    assert [one.locator for one in kept] == [publishing.reference.locator]


def test_a_killed_upload_leaves_no_half_of_an_object_and_nothing_that_orphans_does_not_list(world):
    storing, backend = Storing(world.datasource), world.application.artifacts()
    reference = storing.run(world.application)
    before, codes, appeared = contents(world), [], []

    while not codes or codes[-1] == -signal.SIGKILL:
        backend.delete(reference.locator)
        codes.append(die_after(world, storing, len(codes), STEPS_OF_AN_UPLOAD))
        appeared.append(reference.locator in {one.locator for one in backend.kept()})

    # Before and after the file was flushed it is not there, and after its link it always is.
    assert codes == [-signal.SIGKILL] * 6 + [0]
    assert appeared == [False] * 2 + [True] * 5
    left = orphans(backend.kept(), {reference.locator}, before=FAR_AHEAD)
    assert len(left) == 3  # of those who were killed while the first name was there
    assert all("/partial-" in one.locator for one in left)
    files = world.application.settings.state.rglob(f"artifacts/*/{world.datasource}/*")
    assert len(list(files)) == len(left) + 1
    assert contents(world) == before
    with backend.open(world.datasource, reference) as file:
        assert pq.read_table(file).equals(ROWS)
