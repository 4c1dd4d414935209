from dataclasses import replace
from datetime import UTC, datetime

import pytest

from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.domain.approval import Quorum, Verdict
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.disposition import DisposedTarget
from datasource_governance.domain.evidence import Head, genesis, link
from datasource_governance.domain.materialization import (
    Disposition,
    Promoter,
    check_promotable,
    materialize,
    promotes_by_itself,
    provenance_of,
)
from datasource_governance.domain.retention import Action, RetentionClass, TargetKind
from datasource_governance.domain.stage import StageState
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import MIDDAY, TENANT, decision, stage, target

OPERATOR = ActorId("operator")
MET = Quorum(required=1, approvals=(decision(),), rejections=(), not_counted=())
UNMET = replace(MET, required=2)
REJECTED = replace(MET, rejections=(decision("approver-2", verdict=Verdict.REJECT),))
READY = stage(state=StageState.READY, approval_required=False)
WARNED = replace(READY, outcome=Outcome.REVIEW)
AUTOMATIC = target(promotion="automatic")


@pytest.mark.parametrize(
    ("about", "where", "quorum", "actor", "code"),
    [
        (stage(), target(), MET, OPERATOR, None),
        (stage(), target(), MET, SYSTEM, None),
        (READY, target(), None, OPERATOR, None),
        (WARNED, target(), None, OPERATOR, None),
        (READY, AUTOMATIC, None, SYSTEM, None),
        (stage(), target(), None, OPERATOR, "quorum_not_met"),
        (stage(), target(), UNMET, OPERATOR, "quorum_not_met"),
        (stage(), target(), REJECTED, OPERATOR, "quorum_not_met"),
        (stage(), AUTOMATIC, UNMET, SYSTEM, "quorum_not_met"),
        (READY, target(), None, SYSTEM, "not_authorised"),
        (WARNED, AUTOMATIC, None, SYSTEM, "not_authorised"),
        (stage(state=StageState.FAILED), target(), MET, OPERATOR, "stage_blocked"),
        (stage(state=StageState.DELETED), target(), MET, OPERATOR, "stage_blocked"),
        (stage(state=StageState.REJECTED), target(), MET, OPERATOR, "stage_rejected"),
        (stage(state=StageState.SUPERSEDED), target(), MET, OPERATOR, "stage_outdated"),
        (stage(), target(current="m"), MET, OPERATOR, "stage_outdated"),
        (stage(), target(quality_policy_hash="0"), MET, OPERATOR, "stage_outdated"),
        (stage(), target(approval_policy_hash=None), MET, OPERATOR, "stage_outdated"),
    ],
)
def test_a_promotion_needs_every_guard(about, where, quorum, actor, code):
    def check():
        check_promotable(about, where, quorum=quorum, actor=actor)

    if code is None:
        check()
        return
    with pytest.raises(GuardError) as caught:
        check()
    assert caught.value.code == code


def test_a_stage_that_retention_deleted_is_refused_with_the_plan_and_what_to_do():
    deleted = stage(state=StageState.DELETED)
    disposed = DisposedTarget(
        plan=Sha256("a" * 64),
        kind=TargetKind.STAGE,
        subject=deleted.id,
        datasource=deleted.datasource,
        retention_class=RetentionClass.STAGE,
        action=Action.DELETE,
        state_before="ready",
        disposed_at=datetime(2026, 3, 1, tzinfo=UTC),
    )

    with pytest.raises(GuardError, match="deliver the data again") as caught:
        check_promotable(deleted, target(), quorum=MET, actor=OPERATOR, disposed=disposed)

    assert f"was deleted at 2026-03-01T00:00:00+00:00 under plan {'a' * 64}" in str(caught.value)
    assert "correct" not in str(caught.value)


@pytest.mark.parametrize(("quorum", "missing"), [(None, 1), (UNMET, 1), (REJECTED, 0)])
def test_a_missing_quorum_says_how_many_approvals_are_missing(quorum, missing):
    with pytest.raises(GuardError) as caught:
        check_promotable(stage(), target(), quorum=quorum, actor=OPERATOR)

    assert caught.value.facts["missing"] == missing


@pytest.mark.parametrize(
    ("about", "where", "by_itself"),
    [
        (READY, AUTOMATIC, True),
        (READY, target(), False),
        (WARNED, AUTOMATIC, False),
        (replace(READY, approval_required=True), AUTOMATIC, False),
        (replace(READY, state=StageState.SUPERSEDED), AUTOMATIC, False),
    ],
)
def test_only_what_is_declared_automatic_and_needs_no_review_promotes_by_itself(
    about, where, by_itself
):
    assert promotes_by_itself(about, where) is by_itself


def entry():
    head = Head(tenant=TENANT, chain="c", sequence=0, entry_hash=genesis(TENANT, "c"))
    return link(head, kind="stage.created", subject="stage-1", facts={}, rows=[], at=MIDDAY)


def materialized(quorum=MET):
    return materialize(
        "m-8",
        stage(base="m-7"),
        target=target(current="m-7", revision=7),
        tenant=TENANT,
        quorum=quorum,
        segment=[entry()],
        promoter=Promoter(OPERATOR, "0" * 64),
        now=MIDDAY,
    )


def test_a_materialization_is_the_next_revision_with_the_stage_s_content():
    made, origin = materialized(), stage()

    assert (made.id, made.revision, made.stage) == ("m-8", 8, origin.id)
    for name in ("schema", "payload_fingerprint", "payload_sha256", "row_count", "byte_count"):
        assert getattr(made, name) == getattr(origin, name)
    assert made.disposition is Disposition.RETAINED


def test_provenance_tells_how_it_came_to_be():
    origin = stage(base="m-7")

    assert provenance_of(materialized()) == {
        "format": "datasource_governance/provenance/v1",
        "datasource": "orders",
        "base": "m-7",
        "stage": {
            "id": "stage-1",
            "fingerprint": origin.fingerprint(TENANT),
            "creator": "creator",
            "attestation": origin.attestation_id,
            "delivery_sha256": origin.delivery_sha256,
            "created_at": "2026-03-01T12:00:00+00:00",
        },
        "policies": {
            "quality": origin.quality_policy_hash,
            "approval": origin.approval_policy_hash,
            "source": "inherited",
        },
        "validation": {"outcome": "ready"},
        "validation_hash": origin.validation_hash,
        "approval": MET.document(),
        "evidence": [entry().document()],
        "promoted_by": "operator",
        "promotion_attestation": "0" * 64,
        "promoted_at": "2026-03-01T12:00:00+00:00",
    }


def test_provenance_says_when_no_approval_was_required():
    assert provenance_of(materialized(quorum=None))["approval"] == "not required"


def test_provenance_keeps_the_bytes_of_the_validation():
    kept = provenance_of(materialized())["validation"]

    assert canonical_bytes(kept) == stage().validation


def test_provenance_that_is_no_object_is_refused():
    with pytest.raises(TypeError):
        provenance_of(replace(materialized(), provenance=b"[]"))
