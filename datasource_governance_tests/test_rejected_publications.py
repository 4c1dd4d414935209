"""Whatever an output is rejected for, it leaves no trace, and its key is free for a better one.

Compared is every row of every table of schema `governance`, with the transaction that wrote it, and
every artifact. What is tried is full of bait that no error may tell.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.artifact import (
    ArtifactReference,
    MediaType,
    StoredArtifact,
    datasource_fingerprint,
)
from datasource_governance.domain.attestation import LIFETIME, Action, Attestation
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.subjects import publication_subject
from datasource_governance.errors import GovernanceError
from datasource_governance.evaluation.payload import MAXIMUM_INLINE_ROWS, TypedPayload
from datasource_governance.services.publishing import PublicationRequest, Published
from datasource_governance.signing import Signer, create_key
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.limits import Limits
from datasource_governance_tests.builders import policy_document, rule, schema
from datasource_governance_tests.postgres import admin_connection
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

BAIT = "zq-canary-7731"
UNIQUE = policy_document(rule("unique", id="unique", field="id"))
GOOD = pa.table({"id": [1, 2], "note": [BAIT, BAIT]})
REPEATED = pa.table({"id": [7, 7], "note": [BAIT, BAIT]})
WIDE = pa.table({"id": [1], **{f"n{number}": [1] for number in range(Limits().columns)}})


@dataclass(frozen=True)
class Desk:
    """A producer before a datasource of its own, with a key of its own and files to publish."""

    world: World
    files: Path

    @property
    def key(self) -> str:
        return self.world.datasource

    @property
    def objects(self) -> Path:
        settings = self.world.application.settings
        return settings.state / "artifacts" / settings.tenant

    def publish(self, data: object = GOOD, **request) -> Published:
        return self.world.publish(data, request.pop("key", self.key), **request)

    def declare(self, **settings) -> None:
        self.world.declare(UNIQUE, **{"kind": "published", **settings})

    def store(self, table: pa.Table = GOOD) -> ArtifactReference:
        return self.world.store_artifact(table)

    def signed(self, signer: Signer, table: pa.Table = GOOD, key: str | None = None) -> Attestation:
        checksum = self.world.application.evaluator().fingerprint(TypedPayload(from_data(table)))
        subject = publication_subject(
            datasource=self.world.datasource,
            partition="",
            producer="flow",
            idempotency_key=key or self.key,
            checksum=checksum,
        )
        return signer.attest(Action.PUBLICATION_CREATE, subject)

    def traces(self) -> dict[str, object]:
        """Return every row of every table with who wrote it when, and every artifact."""
        with admin_connection(self.world.database.admin_url) as connection:
            names = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'governance'"
            ).fetchall()
            rows = {
                name: sorted(
                    connection.execute(
                        f"SELECT ctid::text, xmin::text, md5(one::text) FROM governance.{name} one"
                    ).fetchall()
                )
                for (name,) in names
            }
        return {**rows, "artifacts": self.artifacts()}

    def artifacts(self) -> dict[str, tuple[int, int]]:
        """Return every file of the artifact store, with what would change if it were rewritten."""
        return {
            str(path): (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in self.objects.rglob("*")
            if path.is_file()
        }


Attempt = tuple[str, Callable[[], object]]
Cause = Callable[[Desk], Iterator[Attempt]]
"""Prepares, yields the code of a refusal and what is refused, then sets it right and publishes."""


# --- The gate -------------------------------------------------------------------------------------


def a_broken_rule(desk):
    yield "validation_failed", partial(desk.publish, REPEATED)
    desk.publish()


def a_breaking_schema(desk):
    desk.publish(key=f"{desk.key} before")
    yield "validation_failed", partial(desk.publish, GOOD.drop_columns("note"))
    desk.publish()


def a_broken_rule_in_an_artifact(desk):
    desk.declare(artifact_evaluation="here")
    yield "validation_failed", partial(desk.publish, desk.store(REPEATED))
    desk.publish(desk.store())


def a_missing_field_of_an_artifact(desk):
    yield "validation_failed", partial(desk.publish, desk.store(GOOD.drop_columns("id")))
    desk.publish()


def failed_evidence(desk):
    reference = desk.store()
    yield "evidence_failed", partial(desk.publish, reference, evidence=said(reference, "failed"))
    desk.publish(reference, evidence=said(reference, "passed"))


def evidence_of_a_rule_that_could_not_be_evaluated(desk):
    reference = desk.store()
    yield "evidence_failed", partial(desk.publish, reference, evidence=said(reference, "error"))
    desk.publish()


def evidence_that_says_two_things_of_a_rule(desk):
    reference = desk.store()
    results = said(reference, "failed").results + said(reference, "passed").results
    twice = replace(said(reference, "passed"), results=results)
    yield "invalid_document", partial(desk.publish, reference, evidence=twice)
    desk.publish()


def evidence_of_fewer_rows_than_none(desk):
    reference = desk.store()
    result = replace(said(reference, "passed").results[0], affected=-5)
    below = replace(said(reference, "passed"), results=(result,), evaluator=BAIT * 3000)
    yield "invalid_document", partial(desk.publish, reference, evidence=below)
    desk.publish()


def a_reference_that_could_not_be_read_again(desk):
    endless = replace(desk.store(), resume_checkpoint="c" * 5000)
    yield "invalid_document", partial(desk.publish, endless)
    desk.publish()


def a_policy_that_may_not_come_with_an_output(desk):
    supplied = parse_quality_policy(policy_document(rule()))
    yield "supplied_policy_refused", partial(desk.publish, supplied_policy=supplied)
    desk.declare(allow_supplied_policy=True)
    desk.publish(supplied_policy=supplied)


def said(reference: ArtifactReference, status: str) -> ProducerEvidence:
    return ProducerEvidence(
        artifact_sha256=reference.sha256,
        policy_hash=parse_quality_policy(UNIQUE).hash,
        evaluator="the producer's",
        results=(RuleResult(id="unique", status=ResultStatus(status)),),
    )


# --- The artifact ---------------------------------------------------------------------------------


def an_artifact_that_is_gone(desk):
    reference = desk.store()
    desk.world.application.artifacts().delete(reference.locator)
    yield "artifact_missing", partial(desk.publish, reference)
    desk.publish()


def an_altered_artifact(desk):
    reference = desk.store()
    swap(desk, reference, lambda stored: stored[:-1] + bytes([stored[-1] ^ 1]))
    yield "artifact_tampered", partial(desk.publish, reference)
    desk.publish()


def an_artifact_of_another_size(desk):
    reference = desk.store()
    swap(desk, reference, lambda stored: stored + b"\0")
    yield "artifact_tampered", partial(desk.publish, reference)
    desk.publish()


def an_artifact_that_is_a_link(desk):
    reference = desk.store()
    path, elsewhere = desk.objects / reference.locator, desk.files / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    yield "artifact_tampered", partial(desk.publish, reference)
    desk.publish()


def an_artifact_of_another_datasource(desk):
    other = replace(desk.world, datasource=f"{desk.key}_2")
    reference = other.store_artifact(GOOD)
    yield "artifact_foreign", partial(desk.publish, reference)
    desk.publish()


def a_locator_of_another_datasource(desk):
    other = replace(desk.world, datasource=f"{desk.key}_2")
    foreign, own = other.store_artifact(GOOD), desk.store()
    yield "artifact_foreign", partial(desk.publish, replace(own, locator=foreign.locator))
    desk.publish()


def an_artifact_of_another_backend(desk):
    reference = desk.store()
    yield "artifact_foreign", partial(desk.publish, replace(reference, backend="s3"))
    desk.publish()


def an_artifact_of_another_tenant(desk):
    reference = desk.store()
    named = ("other", desk.world.datasource, reference.schema)
    forged = replace(reference, datasource_fingerprint=datasource_fingerprint(*named))
    yield "artifact_foreign", partial(desk.publish, forged)
    desk.publish()


def an_artifact_with_other_rows(desk):
    reference = desk.store()
    yield "artifact_tampered", partial(desk.publish, replace(reference, row_count=3))
    desk.publish()


def an_artifact_with_another_schema(desk):
    reference, claimed = desk.store(), schema(id="string")
    named = (desk.world.application.settings.tenant, desk.world.datasource, claimed)
    forged = replace(
        reference, schema=claimed, datasource_fingerprint=datasource_fingerprint(*named)
    )
    yield "artifact_tampered", partial(desk.publish, forged)
    desk.publish()


def an_artifact_of_another_media_type(desk):
    reference = desk.store()
    forged = replace(reference, media_type=MediaType.ARROW_FILE)
    yield "unreadable_source", partial(desk.publish, forged)
    desk.publish()


def an_artifact_that_is_no_file_of_any_kind(desk):
    whole = desk.store()
    with desk.world.application.artifacts().begin(desk.world.datasource) as upload:
        upload.file.write(b"PAR1" + BAIT.encode() + b"PAR1")
        stored: StoredArtifact = upload.finish()
    named = {name: getattr(stored, name) for name in ("locator", "sha256", "byte_count")}
    yield "unreadable_source", partial(desk.publish, replace(whole, **named))
    desk.publish()


def swap(desk: Desk, reference: ArtifactReference, change: Callable[[bytes], bytes]) -> None:
    """Put other bytes in the place of an object."""
    path = desk.objects / reference.locator
    before = path.read_bytes()
    path.unlink()
    path.write_bytes(change(before))


# --- Key and datasource ---------------------------------------------------------------------------


def a_used_key(desk):
    desk.publish()
    yield "idempotency_conflict", partial(desk.publish, REPEATED)
    assert desk.publish().replayed


def a_used_key_for_an_artifact(desk):
    desk.publish()
    yield "idempotency_conflict", partial(desk.publish, desk.store())
    assert desk.publish().replayed


def a_used_key_for_another_partition(desk):
    desk.publish()
    yield "idempotency_conflict", partial(desk.publish, partition="2026-12")
    assert desk.publish().replayed


def a_key_that_is_too_long(desk):
    yield "invalid_argument", partial(desk.publish, key="k" * 256)
    desk.publish()


def a_key_that_looks_like_another(desk):
    yield "invalid_argument", partial(desk.publish, key=f"{desk.key}\u202e")
    desk.publish()


def a_key_that_is_a_number(desk):
    yield "invalid_argument", partial(desk.publish, key=5)
    desk.publish()


def a_partition_that_is_none(desk):
    yield "invalid_argument", partial(desk.publish, partition=None)
    desk.publish()


def a_producer_with_a_control_character(desk):
    yield "invalid_argument", partial(desk.publish, producer="flow\n")
    desk.publish()


def an_unknown_datasource(desk):
    everywhere = desk.world.grant(SYSTEM, Role.PRODUCER)
    yield "not_found", partial(desk.publish, datasource="nowhere")
    desk.world.withdraw(everywhere)
    desk.publish()


def a_datasource_that_is_somebody_elses_or_unknown(desk):
    yield "not_authorised", partial(desk.publish, datasource="nowhere")
    desk.publish()


def a_datasource_of_another_kind(desk):
    other = f"{desk.key}_static"
    replace(desk.world, datasource=other).declare(UNIQUE)
    desk.world.grant(SYSTEM, Role.PRODUCER, other)
    yield "wrong_kind", partial(desk.publish, datasource=other)
    desk.publish()


# --- Who ------------------------------------------------------------------------------------------


def somebody_without_a_grant(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    yield "not_authorised", lambda: desk.publish(attestation=desk.signed(signer))
    desk.world.grant(signer.actor, Role.PRODUCER)
    desk.publish(attestation=desk.signed(signer))


def somebody_without_a_grant_is_not_told_of_rules(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    attestation = desk.signed(signer, REPEATED)
    yield "not_authorised", partial(desk.publish, REPEATED, attestation=attestation)
    desk.publish()


def somebody_without_a_grant_is_not_told_of_keys(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    desk.publish()
    yield "not_authorised", lambda: desk.publish(REPEATED, attestation=desk.signed(signer))
    desk.publish()


def somebody_without_a_grant_is_not_given_what_is_there(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    desk.publish()
    yield "not_authorised", lambda: desk.publish(attestation=desk.signed(signer))
    desk.publish()


def somebody_without_a_grant_leaves_no_large_output(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    large = pa.table({"id": range(MAXIMUM_INLINE_ROWS + 1)})
    attestation = desk.signed(signer)
    yield "not_authorised", partial(desk.publish, large, attestation=attestation)
    desk.publish()


def somebody_without_a_grant_who_has_yet_to_sign(desk):
    signer = desk.world.admit(f"{desk.key}-viewer", Role.VIEWER)
    large = pa.table({"id": range(MAXIMUM_INLINE_ROWS + 1)})
    outlet = desk.world.application.outlet()
    signing = replace(outlet, sign=lambda *_: desk.signed(signer), signer=signer.actor)
    named = {"producer": "flow", "datasource": desk.world.datasource}
    request = PublicationRequest(idempotency_key=desk.key, **named)
    yield "not_authorised", partial(signing.publish, large, request)
    desk.publish()


def a_signature_over_other_evidence(desk):
    signer, reference = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER), desk.store()
    subject = publication_subject(
        datasource=desk.world.datasource,
        partition="",
        producer="flow",
        idempotency_key=desk.key,
        checksum=reference.sha256,
        evidence=said(reference, "failed").hash,
    )
    named = {
        "evidence": said(reference, "passed"),
        "attestation": signer.attest(Action.PUBLICATION_CREATE, subject),
    }
    yield "attestation_mismatch", partial(desk.publish, reference, **named)
    desk.publish(reference, evidence=said(reference, "passed"))


def somebody_with_a_grant_for_another_datasource(desk):
    signer = desk.world.admit(f"{desk.key}-stranger")
    replace(desk.world, datasource=f"{desk.key}_2").declare(UNIQUE)
    desk.world.grant(signer.actor, Role.PRODUCER, f"{desk.key}_2")
    yield "not_authorised", lambda: desk.publish(attestation=desk.signed(signer))
    desk.world.grant(signer.actor, Role.PRODUCER, desk.key)
    desk.publish(attestation=desk.signed(signer))


def somebody_whose_grant_was_withdrawn(desk):
    signer = desk.world.admit(f"{desk.key}-former")
    desk.world.withdraw(desk.world.grant(signer.actor, Role.PRODUCER))
    yield "not_authorised", lambda: desk.publish(attestation=desk.signed(signer))
    desk.publish()


def a_signature_for_another_key(desk):
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    other = desk.signed(signer, key="another")
    yield "attestation_mismatch", partial(desk.publish, attestation=other)
    desk.publish(attestation=desk.signed(signer))


def a_signature_for_another_output(desk):
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    other = desk.signed(signer, GOOD.slice(0, 1))
    yield "attestation_mismatch", partial(desk.publish, attestation=other)
    desk.publish(attestation=desk.signed(signer))


def a_signature_that_was_used(desk):
    """An attestation names its key, under which it was used: it is a conflict before all else."""
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    attestation = desk.signed(signer)
    desk.publish(attestation=attestation)
    yield "idempotency_conflict", partial(desk.publish, REPEATED, attestation=attestation)
    assert desk.publish(attestation=attestation).replayed


def a_signature_of_an_unknown_key(desk):
    create_key(desk.files, "nobody")
    foreign = Signer(desk.files, "nobody", desk.world.application.settings.tenant)
    yield "attestation_invalid", lambda: desk.publish(attestation=desk.signed(foreign))
    desk.publish()


def a_signature_for_another_tenant(desk):
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    foreign = Signer(desk.world.application.settings.keys, signer.actor, "other")
    yield "attestation_mismatch", lambda: desk.publish(attestation=desk.signed(foreign))
    desk.publish(attestation=desk.signed(signer))


def a_signature_with_a_revoked_key(desk):
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    desk.world.revoke(signer.key)
    yield "attestation_invalid", lambda: desk.publish(attestation=desk.signed(signer))
    desk.publish()


def a_signature_of_long_ago(desk):
    signer = desk.world.admit(f"{desk.key}-maker", Role.PRODUCER)
    attestation = desk.signed(signer)
    desk.world.set_clock(datetime.now(UTC) + LIFETIME)
    yield "attestation_expired", partial(desk.publish, attestation=attestation)
    desk.world.release_clock()
    desk.publish(attestation=desk.signed(signer))


# --- What cannot be read --------------------------------------------------------------------------


def data_of_no_known_class(desk):
    yield "invalid_argument", partial(desk.publish, {"id": [BAIT]})
    desk.publish()


def a_repeated_field(desk):
    frame = pd.DataFrame([[1, BAIT]], columns=["id", "id"])
    yield "unreadable_source", partial(desk.publish, frame)
    desk.publish()


def values_without_a_typed_form(desk):
    frame = pd.DataFrame({"id": [np.array([[BAIT]]), object()]})
    yield "unreadable_source", partial(desk.publish, frame)
    desk.publish()


def a_lazy_frame_that_breaks_off(desk):
    lazy = pl.LazyFrame({"id": ["1", BAIT]}).cast({"id": pl.Int64})
    yield "unreadable_source", partial(desk.publish, lazy)
    desk.publish()


def too_many_fields(desk):
    path = desk.files / "wide.parquet"
    pq.write_table(WIDE, path)
    yield "unreadable_source", partial(desk.publish, path)
    desk.publish()


def too_many_fields_of_an_artifact(desk):
    yield "unreadable_source", partial(desk.store, WIDE)
    desk.publish()


def a_file_that_is_not_there(desk):
    yield "unreadable_source", partial(desk.publish, desk.files / "gone.parquet")
    desk.publish()


def a_file_of_another_kind(desk):
    path = desk.files / "output.csv"
    path.write_text(f"id\n{BAIT}\n")
    yield "invalid_argument", partial(desk.publish, path)
    desk.publish()


def a_hostile_file(desk):
    """Its footer says that it is longer than the file."""
    path = desk.files / "hostile.parquet"
    path.write_bytes(b"PAR1" + BAIT.encode() + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    yield "unreadable_source", partial(desk.publish, path)
    desk.publish()


def a_file_that_is_cut_off(desk):
    path = desk.files / "cut.parquet"
    pq.write_table(GOOD, path)
    os.truncate(path, path.stat().st_size - 9)
    yield "unreadable_source", partial(desk.publish, path)
    desk.publish()


CAUSES: list[Cause] = [one for one in [*globals().values()] if inspect.isgeneratorfunction(one)]


@pytest.fixture
def desk(own_corner, tmp_path):
    made = Desk(own_corner, tmp_path)
    made.declare()
    own_corner.grant(SYSTEM, Role.PRODUCER, own_corner.datasource)
    return made


def refusal_of(attempt: Callable[[], object]) -> GovernanceError:
    with pytest.raises(GovernanceError) as refused:
        attempt()
    return refused.value


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_a_rejected_output_leaves_no_trace_and_its_key_is_free(cause, desk):
    steps = cause(desk)
    code, attempt = next(steps)
    before = desk.traces()

    error = refusal_of(attempt)

    assert error.code == code, error
    assert desk.traces() == before
    assert BAIT not in f"{error!r} {error} {error.facts}"
    assert (error.__cause__, error.__context__) == (None, None)
    assert next(steps, None) is None
    with desk.world.application.work() as work:
        assert work.publications.find("flow", desk.key) is not None


def test_nobody_publishes_for_a_datasource_of_which_system_is_no_producer(own_corner, tmp_path):
    desk = Desk(own_corner, tmp_path)
    desk.declare()
    before = desk.traces()

    assert refusal_of(desk.publish).code == "not_authorised"
    assert desk.traces() == before
    own_corner.grant(SYSTEM, Role.PRODUCER, own_corner.datasource)
    assert not desk.publish().replayed


def test_of_a_large_frame_that_is_rejected_the_artifact_is_left_and_no_row(desk):
    """It was stored before it was judged, and another producer may rely on the same object."""
    desk.declare(artifact_evaluation="here")
    numbers = range(MAXIMUM_INLINE_ROWS + 1)
    repeated = pa.table({"id": [0, *numbers[:-1]], "note": pa.repeat(BAIT, len(numbers))})
    before = desk.traces()

    assert refusal_of(partial(desk.publish, repeated)).code == "validation_failed"

    after = desk.traces()
    assert len(after.pop("artifacts")) == len(before.pop("artifacts")) + 1
    assert after == before
    desk.publish()


@pytest.mark.parametrize(
    "planted",
    [
        "INSERT INTO governance.outbox_position VALUES ('default', 'desk', 'planted', 0, 0, NULL)",
        "UPDATE governance.evidence_head SET sequence = sequence",
    ],
    ids=["row", "the same value written again"],
)
def test_control_the_comparison_sees_what_is_planted(desk, planted):
    before = desk.traces()

    desk.world.as_superuser(planted, triggers=False)

    assert desk.traces() != before


def test_control_the_comparison_sees_an_artifact(desk):
    before = desk.traces()

    desk.store()

    assert desk.traces() != before
