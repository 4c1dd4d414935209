"""A producer's output comes in once for each key: all of it, or nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import SYSTEM, UNATTESTED, Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.materialization import provenance_of
from datasource_governance.domain.policy_version import PolicySource
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.publication import PublicationRejectedError, PublicationState
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.subjects import publication_subject
from datasource_governance.errors import GuardError
from datasource_governance.services.exporting import export_promotion
from datasource_governance.services.reviewing import review_stage
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.launches import publication_launch
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

APPROVAL = {"version": "v1", "required": True}
BY_ANYBODY = {**APPROVAL, "separation_of_duties": False}
UNIQUE = {
    "version": "v1",
    "rules": [
        {"id": "columns", "type": "required_fields", "fields": ["id"]},
        {"id": "unique", "type": "unique", "field": "id"},
        {"id": "low", "type": "range", "field": "id", "maximum": 9, "severity": "warning"},
    ],
}
TABLE = pa.table({"id": [1, 2]})
REVIEWED = PublicationState.REVIEW_REQUIRED


@pytest.fixture
def published(world: World) -> World:
    """A world whose datasource takes publications, and whose `system` may make them."""
    world.declare(UNIQUE, kind="published")
    world.grant(SYSTEM, Role.PRODUCER)
    return world


def current(world: World, partition: str = "") -> str | None:
    with world.application.work() as work:
        return work.datasources.get(world.datasource, partition).current


def evidence_about(reference, **statuses: str) -> ProducerEvidence:
    results = [RuleResult(id=name, status=ResultStatus(one)) for name, one in statuses.items()]
    return ProducerEvidence(
        artifact_sha256=reference.sha256,
        policy_hash=parse_quality_policy(UNIQUE).hash,
        evaluator="the producer's",
        results=tuple(results),
    )


def test_an_output_that_passes_becomes_current_with_its_validation_on_both_records(published):
    made = published.publish(TABLE)

    validation = provenance_of(made.materialization)["publication_validation"]
    assert made.publication.state is PublicationState.PUBLISHED
    assert (made.replayed, made.stage) == (False, None)
    assert current(published) == made.materialization.id
    assert made.materialization.revision == 1
    assert canonical_bytes(validation) == made.publication.validation
    assert made.validation == validation
    with published.application.work() as work:
        assert work.publications.get(made.publication.id) == made.publication
        assert work.materializations.get(made.materialization.id) == made.materialization
    assert published.verification().holds


def test_the_same_request_gives_the_first_result_and_writes_nothing(published):
    first = published.publish(TABLE)
    published.declare({"version": "v2", "rules": []}, kind="published")
    before = published.count_rows()

    again = published.publish(pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]))

    assert again == replace(first, replayed=True)
    assert published.count_rows() == before


def test_another_output_under_a_used_key_is_a_conflict(published):
    published.publish(TABLE)

    with published.refuses("idempotency_conflict"):
        published.publish(pa.table({"id": [3]}))
    with published.refuses("idempotency_conflict"):
        published.publish(TABLE, partition="2026-01")


def test_of_attempts_at_once_under_one_key_one_publishes_and_all_get_its_result(published):
    published.publish(TABLE, "first")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: published.publish(TABLE), range(8)))

    assert [one.replayed for one in made].count(False) == 1
    assert len({one.publication.id for one in made}) == 1
    assert published.count_rows()["materialization"] == 2


def test_outputs_at_once_under_keys_of_their_own_all_become_current_in_turn(published):
    published.publish(TABLE, "first")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda key: published.publish(TABLE, f"k{key}"), range(8)))

    assert sorted(one.materialization.revision for one in made) == [*range(2, 10)]
    assert published.verification().holds


def test_a_rejected_output_leaves_nothing_and_its_key_is_free(published):
    before = published.count_rows()

    with pytest.raises(PublicationRejectedError) as rejected:
        published.publish(pa.table({"id": [7, 7]}))

    assert rejected.value.code == "validation_failed"
    assert [one.id for one in rejected.value.validation.rules if one.affected] == ["unique"]
    assert published.count_rows() == before
    assert published.publish(TABLE).publication.state is PublicationState.PUBLISHED


def test_a_breaking_schema_is_rejected_against_what_is_current(published):
    published.publish(pa.table({"id": [1], "note": ["a"]}))

    with published.refuses("validation_failed"):
        published.publish(pa.table({"id": [1]}), "k2")


def test_warnings_are_published_and_never_taken_for_success(published):
    made = published.publish(pa.table({"id": [10]}))

    assert made.publication.state is PublicationState.PUBLISHED_WITH_WARNINGS
    assert current(published) == made.materialization.id


def test_partitions_are_current_beside_each_other_and_count_one_series_of_revisions(published):
    january = published.publish(TABLE, "jan", partition="2026-01")
    february = published.publish(TABLE, "feb", partition="2026-02")
    again = published.publish(pa.table({"id": [3]}), "jan-2", partition="2026-01")

    assert current(published) is None
    assert current(published, "2026-01") == again.materialization.id
    assert current(published, "2026-02") == february.materialization.id
    made = (january, february, again)
    assert [one.materialization.revision for one in made] == [1, 2, 3]
    assert published.verification().holds


def test_only_a_datasource_of_the_kind_takes_publications(world):
    world.declare()
    world.grant(SYSTEM, Role.PRODUCER)

    with world.refuses("wrong_kind"):
        world.publish()


def test_nobody_publishes_without_a_grant_as_producer(world):
    world.declare(kind="published")

    with world.refuses("not_authorised"):
        world.publish()


def test_whoever_signs_is_the_actor_and_may_sign_for_one_output_only(published):
    published.admit("maker", Role.PRODUCER)
    attestation = published.publication_attestation("maker", "k1")

    with published.refuses("attestation_mismatch"):
        published.publish(TABLE, "k2", attestation=attestation)
    made = published.publish(TABLE, attestation=attestation)

    assert (made.publication.actor, made.materialization.created_by) == ("maker", "maker")
    assert published.verification().holds


def test_whoever_launched_the_run_is_the_actor(published, tmp_path):
    published.admit("maker", Role.PRODUCER)
    launch = publication_launch()
    published.launch(published.gateway(tmp_path), "maker", launch)

    made = published.publish(TABLE, launch=launch)

    assert (made.publication.actor, made.publication.run_id) == ("maker", launch.run_id)
    assert published.verification().holds


def test_a_launch_proves_one_output_of_each_partition(published, tmp_path):
    published.admit("maker", Role.PRODUCER)
    launch = published.launch(published.gateway(tmp_path), "maker", publication_launch())
    made = published.publish(TABLE, launch=launch)

    for other in ({"key": "k2"}, {"producer": "other"}):
        with published.refuses("attestation_used"):
            published.publish(TABLE, **other, launch=launch)
    assert published.publish(TABLE, launch=launch) == replace(made, replayed=True)
    other = published.publish(TABLE, "k2", launch=launch, partition="2026-01")
    assert other.publication.attestation_id == made.publication.attestation_id
    with published.refuses("attestation_used"):
        published.publish(TABLE, "k3", launch=launch, partition="2026-01")
    assert published.verification().holds


def test_attempts_at_once_under_one_key_and_launch_are_one(published, tmp_path):
    published.admit("maker", Role.PRODUCER)
    launch = published.launch(published.gateway(tmp_path), "maker", publication_launch())
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: published.publish(TABLE, launch=launch), range(8)))

    assert [one.replayed for one in made].count(False) == 1
    assert {one.publication.actor for one in made} == {"maker"}


def test_of_outputs_at_once_under_one_launch_one_is_published(published, tmp_path):
    published.admit("maker", Role.PRODUCER)
    launch = published.launch(published.gateway(tmp_path), "maker", publication_launch())

    def code(number):
        try:
            published.publish(TABLE, f"k{number}", launch=launch)
        except GuardError as refused:
            return refused.code
        return None

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(code, range(8)))

    assert sorted(codes, key=str) == [None, *["attestation_used"] * 7]


def test_an_attested_launch_that_proves_nothing_is_never_taken_for_system(published, tmp_path):
    published.admit("maker", Role.PRODUCER)
    gateway = published.gateway(tmp_path)
    launch = published.launch(gateway, "maker", publication_launch())

    for changed in ({"config_hash": Sha256("0" * 64)}, {"assets": ("raw",)}, {"job": "report"}):
        with published.refuses("attestation_mismatch"):
            published.publish(TABLE, launch=replace(launch, **changed))
    published.revoke(gateway.key)
    with published.refuses("attestation_invalid"):
        published.publish(TABLE, launch=launch)

    unattested = publication_launch(run_id="run-4")
    assert published.publish(TABLE, launch=unattested).publication.actor == SYSTEM


def test_whoever_published_gets_the_result_again_whatever_changed_since(published, tmp_path):
    signer, gateway = published.admit("maker"), published.gateway(tmp_path)
    grant = published.grant("maker", Role.PRODUCER)
    attestation = published.publication_attestation("maker", "k1")
    launch = published.launch(gateway, "maker", publication_launch())
    signed = published.publish(TABLE, attestation=attestation)
    launched = published.publish(TABLE, "k2", launch=launch)
    published.withdraw(grant)

    anew = published.publication_attestation("maker", "k1")
    assert published.publish(TABLE, attestation=anew) == replace(signed, replayed=True)
    published.revoke(signer.key)
    published.revoke(gateway.key)
    assert published.publish(TABLE, attestation=attestation) == replace(signed, replayed=True)
    assert published.publish(TABLE, "k2", launch=launch) == replace(launched, replayed=True)
    with published.refuses("attestation_invalid"):
        published.publish(TABLE, attestation=anew)


def test_evidence_is_signed_with_the_output_and_kept_where_it_is_judged(published):
    signer, reference = published.admit("maker", Role.PRODUCER), published.store_artifact()
    evidence = evidence_about(reference, unique="passed", low="passed")

    def signed(key, checksum):
        subject = publication_subject(
            datasource="orders",
            partition="",
            producer="flow",
            idempotency_key=key,
            checksum=checksum,
            evidence=evidence.hash,
        )
        attestation = signer.attest(Action.PUBLICATION_CREATE, subject)
        return {"evidence": evidence, "attestation": attestation}

    judged = published.publish(reference, "judged", **signed("judged", reference.sha256))
    fingerprint = published.publish(TABLE).materialization.payload_fingerprint
    inline = published.publish(TABLE, "inline", **signed("inline", fingerprint))

    assert judged.publication.evidence == canonical_bytes(evidence.document())
    assert inline.publication.evidence is None
    assert provenance_of(inline.materialization)["producer_evidence"] is None
    assert published.verification().holds


def test_where_approval_is_required_an_output_waits_for_a_quorum_and_then_becomes_current(world):
    world.declare(UNIQUE, APPROVAL, kind="published")
    world.admit("maker", Role.PRODUCER)
    world.grant("maker", Role.APPROVER)

    made = world.publish(TABLE, attestation=world.publication_attestation("maker", "k1"))
    with world.application.work() as work:
        stage = work.stages.get(made.stage)

    assert (made.publication.state, made.materialization.revision) == (REVIEWED, None)
    assert current(world) is None
    assert (stage.state, stage.creator) == (StageState.AWAITING_APPROVAL, "maker")
    with world.refuses("creator_cannot_approve"):
        world.decide("maker", stage)
    world.decide("approver-1", stage)
    promoted = world.promote(stage).materialization
    assert current(world) == promoted.id != made.materialization.id
    assert (promoted.stage, promoted.publication) == (stage.id, None)
    again = world.publish(TABLE, attestation=world.publication_attestation("maker", "k1"))
    assert again == replace(made, replayed=True)
    assert world.verification().holds


def test_where_duties_are_separated_nobody_decides_about_what_nobody_is_proved_to_have_made(world):
    world.declare(UNIQUE, APPROVAL, kind="published")
    world.grant(SYSTEM, Role.PRODUCER)

    made = world.publish(TABLE)
    with world.application.work() as work:
        stage = work.stages.get(made.stage)

    assert (made.publication.actor, stage.creator) == (SYSTEM, UNATTESTED)
    with world.refuses("creator_unknown"):
        world.decide("approver-1", stage)
    assert world.verification().holds


def test_an_artifact_with_bound_evidence_becomes_current_without_a_copy(published):
    reference = published.store_artifact()
    evidence = evidence_about(reference, unique="passed", low="passed")

    made = published.publish(reference, evidence=evidence)

    assert made.publication.state is PublicationState.PUBLISHED
    assert made.materialization.artifact == canonical_bytes(reference.document())
    assert made.materialization.payload_fingerprint == reference.sha256
    assert published.count_rows()["materialization_payload"] == 0
    assert published.verification().holds


def test_an_artifact_without_evidence_is_kept_for_review_and_a_new_key_resolves_it(published):
    reference = published.store_artifact()

    waiting = published.publish(reference)
    evidence = evidence_about(reference, unique="passed", low="failed")
    replayed = published.publish(reference, evidence=evidence)
    made = published.publish(reference, "k2", evidence=evidence)

    assert (waiting.publication.state, waiting.stage) == (REVIEWED, None)
    assert waiting.validation["outcome"] == "review"
    assert replayed == replace(waiting, replayed=True)
    assert made.publication.state is PublicationState.PUBLISHED_WITH_WARNINGS
    assert published.verification().holds


def test_failed_evidence_rejects_an_artifact(published):
    reference = published.store_artifact()
    evidence = evidence_about(reference, unique="failed", low="passed")

    with published.refuses("evidence_failed"):
        published.publish(reference, evidence=evidence)


def test_the_rows_of_an_artifact_are_evaluated_here_where_that_is_declared(world):
    world.declare(UNIQUE, kind="published", artifact_evaluation="here")
    world.grant(SYSTEM, Role.PRODUCER)

    made = world.publish(world.store_artifact())

    assert made.publication.state is PublicationState.PUBLISHED
    with world.refuses("validation_failed"):
        world.publish(world.store_artifact(pa.table({"id": [1, 1]})), "k2")


def test_a_waiting_artifact_is_verified_again_and_referred_to_when_it_is_promoted(world):
    world.declare(UNIQUE, BY_ANYBODY, kind="published")
    world.grant(SYSTEM, Role.PRODUCER)
    reference = world.store_artifact()
    made = world.publish(reference)
    with world.application.work() as work:
        stage = work.stages.get(made.stage)
    world.decide("approver-1", stage)

    promoted = world.promote(stage).materialization

    assert promoted.artifact == made.materialization.artifact
    assert current(world) == promoted.id
    assert world.verification().holds


def test_a_waiting_artifact_that_is_gone_is_not_promoted(world):
    world.declare(UNIQUE, BY_ANYBODY, kind="published")
    world.grant(SYSTEM, Role.PRODUCER)
    reference = world.store_artifact()
    with world.application.work() as work:
        stage = work.stages.get(world.publish(reference).stage)
    world.decide("approver-1", stage)
    world.application.artifacts().delete(reference.locator)

    with world.refuses("artifact_missing"):
        world.promote(stage)


def test_a_policy_comes_with_an_output_only_where_that_is_allowed(published):
    supplied = parse_quality_policy(policy_document(rule("not_null", fields=["id"])))

    with published.refuses("supplied_policy_refused"):
        published.publish(TABLE, supplied_policy=supplied)
    published.declare(ONE_ROW_AT_LEAST, kind="published", allow_supplied_policy=True)
    made = published.publish(TABLE, supplied_policy=supplied)

    assert made.publication.quality_policy_hash == supplied.hash
    assert made.publication.policy_source == "supplied"
    assert published.verification().holds


def test_a_policy_that_came_with_an_output_hides_nobodys_signature(published):
    supplied = parse_quality_policy(ONE_ROW_AT_LEAST)
    published.declare(UNIQUE, kind="published", allow_supplied_policy=True)
    published.publish(TABLE, supplied_policy=supplied)
    published.declare(ONE_ROW_AT_LEAST, kind="published", allow_supplied_policy=True)
    published.publish(TABLE, "k2", supplied_policy=supplied)

    with published.application.work() as work:
        versions = [one for one in work.datasources.policies("orders") if one.hash == supplied.hash]
    signed_by = {one.source: one.attestation_id for one in versions}
    assert len(versions) == 2
    assert signed_by.pop(PolicySource.SUPPLIED) is None
    assert signed_by.pop(PolicySource.INHERITED) is not None
    assert published.verification().holds


def test_what_waits_under_a_policy_of_its_own_is_reviewed_and_exported(world):
    world.declare(UNIQUE, BY_ANYBODY, kind="published", allow_supplied_policy=True)
    world.grant(SYSTEM, Role.PRODUCER)
    supplied = parse_quality_policy(policy_document(rule()))
    waiting = world.publish(TABLE, supplied_policy=supplied).stage
    with world.application.work() as work:
        stage = work.stages.get(waiting)

    assert review_stage(world.application.work(), waiting).quality_version == supplied.version
    world.decide("approver-1", stage)
    promoted = world.promote(stage).materialization
    exported = export_promotion(world.application.work(), promoted.id, world.signer("creator"))
    assert supplied.hash.encode() in exported.payload


def test_a_datasource_that_takes_publications_takes_no_deliveries(published):
    with published.refuses("wrong_kind"):
        published.stage(None)


def test_nobody_waits_while_the_store_is_asked_for_an_artifact(published, monkeypatch):
    reference, asked = published.store_artifact(), []
    backend = type(published.application.artifacts())
    version = backend.version

    def watched(store, *artifact):
        asked.append(published.query("SELECT * FROM pg_locks WHERE locktype = 'advisory'"))
        return version(store, *artifact)

    monkeypatch.setattr(backend, "version", watched)
    published.publish(reference)

    assert asked == [[], []]
