"""Every id of another tenant, handed to every service and job, is answered like one of nobody's.

Two tenants of one database, with the same names in both. What is asked of a foreign id is asked of
an id that exists nowhere, too; code and sentence have to be the same, and no row may change.
"""

import importlib
import inspect
import pkgutil
import typing
from dataclasses import dataclass, replace

import dagster as dg
import pytest

from datasource_governance import services
from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.disposition import FORMAT as CERTIFICATE_FORMAT
from datasource_governance.domain.disposition import PAYLOAD_TYPE as CERTIFICATE_TYPE
from datasource_governance.domain.envelope import seal
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.outbox import DeadLetter
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import (
    delivery_subject,
    grant_subject,
    promotion_subject,
)
from datasource_governance.errors import GovernanceError
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.persistence.unit_of_work import PostgresUnitOfWork
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.approval import subject_of
from datasource_governance.services.certifying import certify_disposition, verify_certificate
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.delivering import backlogs, dead_letters, retry
from datasource_governance.services.expiring import tell_of_expiring
from datasource_governance.services.exporting import export_promotion
from datasource_governance.services.launching import launcher_of
from datasource_governance.services.plan_review import review_plan
from datasource_governance.services.promotion import PromotionRequest, promote_stage
from datasource_governance.services.reading import Wanted, read_current
from datasource_governance.services.retention import PlanRequest, explain, plan_retention
from datasource_governance.services.reviewing import list_waiting, review_stage
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.services.waiting import WaitingStages, supersede_stage
from datasource_governance_tests.contents import contents
from datasource_governance_tests.launches import promotion_launch
from datasource_governance_tests.orchestration.governed import (
    FOLDER,
    GOOD,
    GOOD_TABLE,
    POLICY,
    code_of,
    declaration,
    deliver,
    failure_of,
)
from datasource_governance_tests.refreshing import (
    ToldOrigin,
    attest_refresh,
    refreshed,
    refreshed_stage,
)
from datasource_governance_tests.retiring import (
    apply_plan,
    freeze_as_evidence,
    hold,
    release,
)
from datasource_governance_tests.world import TWO_APPROVALS, World, new_world

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SHA256 = Sha256("0" * 64)
ABROAD = "abroad"
"""A datasource that only the other tenant has; `orders` both have."""
FEEDS = "feeds"
"""One that is cached, at home."""


@dataclass(frozen=True)
class Ids:
    """Ids of everything that another tenant has, or of nothing."""

    stage: str
    materialization: str
    datasource: str
    actor: ActorId
    key: Sha256
    grant: str
    attestation: str
    run: str
    event: str
    plan: str
    hold: str

    def hidden_in(self, sentence: str) -> str:
        """Return a sentence with the ids left out, as far as it names them."""
        for value in vars(self).values():
            sentence = sentence.replace(value, "…").replace(value[:12], "…")
        return sentence


NOBODYS = Ids(
    stage="00000001-0000-4000-8000-000000000000",
    materialization="00000002-0000-4000-8000-000000000000",
    datasource="nowhere",
    actor=ActorId("no-one"),
    key=Sha256("1" * 64),
    grant="00000003-0000-4000-8000-000000000000",
    attestation="2" * 64,
    run="00000004-0000-4000-8000-000000000000",
    event="00000005-0000-4000-8000-000000000000",
    plan="3" * 64,
    hold="00000006-0000-4000-8000-000000000000",
)


class Receiver:
    """Takes whatever it is handed."""

    name = "desk"

    def deliver(self, event):
        raise AssertionError(f"{event.id} is another tenant's")


@dataclass(frozen=True)
class Tenants:
    """The one who asks, a stage of whom waits, and what the other one has."""

    home: World
    stage: Stage
    foreign: Ids

    def work(self) -> PostgresUnitOfWork:
        return self.home.application.work()


def settle(world: World) -> Stage:
    """Let a tenant have one of everything; return the stage that waits."""
    world.declare(POLICY, TWO_APPROVALS)
    promoted = world.stage(table=GOOD_TABLE)
    for approver in ("approver-1", "approver-2"):
        world.decide(approver, promoted)
    world.promote(promoted)
    waiting = world.stage(table=GOOD_TABLE)
    world.decide("approver-1", waiting)
    return waiting


def ids_of(world: World, waiting: Stage, run: str) -> Ids:
    world.admit("alien", Role.APPROVER)
    replace(world, datasource=ABROAD).declare(POLICY)
    with world.application.work() as work:
        (grant,) = work.authority.grants(ActorId("alien"))
        event = work.outbox.at("orders", 1)
        letter = DeadLetter(
            receiver="desk", event=event, attempts=12, problem="refused", at=work.now()
        )
        work.deliveries.set_aside(letter)
        current = work.datasources.get("orders").current
        work.commit()
    plan = plan_retention(world.application.work(), PlanRequest(actor=ActorId("operator")))
    return Ids(
        stage=waiting.id,
        materialization=current,
        datasource=ABROAD,
        actor=ActorId("alien"),
        key=world.signer("alien").key,
        grant=grant.id,
        attestation=waiting.attestation_id,
        run=run,
        event=event.id,
        plan=plan.hash,
        hold=hold(world).id,
    )


@pytest.fixture(scope="module")
def tenants(shared_world, tmp_path_factory):
    """Nothing that is asked here changes a row, so all tests ask the same two."""
    directory = tmp_path_factory.mktemp("abroad")
    other = new_world(shared_world.database, directory, tenant="other")
    launch = promotion_launch("any", run_id="11111111-1111-4111-8111-111111111111")
    other.launch(other.gateway(directory / "webserver"), "operator", launch)
    foreign = ids_of(other, settle(other), launch.run_id)
    shared_world.admit("reader", Role.STEWARD, Role.VIEWER)
    replace(shared_world, datasource=FEEDS).declare(kind="cached")
    yield Tenants(shared_world, settle(shared_world), foreign)
    other.application.close()


# --- Services -------------------------------------------------------------------------------------


def named(tenants, ids, **changes):
    """Return the stage at home as if it had another's ids, as a request would claim."""
    return replace(tenants.stage, id=ids.stage, **changes)


def decide_about_its_stage(tenants, ids):
    tenants.home.decide("approver-1", named(tenants, ids))


def decide_about_its_datasource(tenants, ids):
    tenants.home.decide("approver-1", replace(tenants.stage, datasource=ids.datasource))


def promote_its_stage_as_system(tenants, ids):
    promote_stage(
        tenants.work(), tenants.home.application.artifacts(), PromotionRequest(stage=ids.stage)
    )


def promote_its_stage_as_operator(tenants, ids):
    tenants.home.promote(named(tenants, ids))


def promote_under_its_launch(tenants, ids):
    launch = promotion_launch("any", run_id=ids.run)
    promote_stage(
        tenants.work(),
        tenants.home.application.artifacts(),
        PromotionRequest(stage=tenants.stage.id, launch=launch),
    )


def promote_with_its_attestation(tenants, ids):
    attestation = tenants.home.signer("operator").attest(
        Action.STAGE_PROMOTE, promotion_subject(subject_of(tenants.stage, "other"))
    )
    claims = replace(attestation.claims, key=ids.key)
    request = PromotionRequest(
        stage=tenants.stage.id, attestation=replace(attestation, claims=claims)
    )
    promote_stage(tenants.work(), tenants.home.application.artifacts(), request)


def create_a_stage_with_its_attestation(tenants, ids):
    application, payload = tenants.home.application, TypedPayload(GOOD_TABLE)
    request = StageRequest(
        datasource="orders",
        delivery="delivery.csv",
        file_sha256=SHA256,
        attestation_id=ids.attestation,
    )
    create_stage(application.work(), application.evaluator(), payload, request)


def create_a_stage_of_its_datasource(tenants, ids):
    replace(tenants.home, datasource=ids.datasource).stage(None, GOOD_TABLE)


def attest_a_delivery_to_its_datasource(tenants, ids):
    attestation = tenants.home.signer("creator").attest(
        Action.STAGE_CREATE, delivery_subject(ids.datasource, SHA256)
    )
    store_delivery_attestation(tenants.work(), ids.datasource, SHA256, attestation)


def attest_a_refresh_of_its_datasource(tenants, ids):
    attest_refresh(replace(tenants.home, datasource=ids.datasource), ToldOrigin())


def refresh_a_stage_of_its_datasource(tenants, ids):
    refreshed_stage(replace(tenants.home, datasource=ids.datasource), ToldOrigin())


def refresh_with_its_attestation(tenants, ids):
    feeds = replace(tenants.home, datasource=FEEDS)
    refreshed_stage(feeds, ToldOrigin(), attestation_id=ids.attestation)


def refresh_its_datasource(tenants, ids):
    refreshed(replace(tenants.home, datasource=ids.datasource), ToldOrigin())


def read_its_datasource(tenants, ids):
    read_current(tenants.work(), ids.datasource, ActorId("reader"))


def read_its_materialization(tenants, ids):
    wanted = Wanted(materialization=ids.materialization)
    read_current(tenants.work(), "orders", ActorId("reader"), wanted)


def review_its_stage(tenants, ids):
    review_stage(tenants.work(), ids.stage, ActorId("reader"))


def list_what_waits_behind_its_stage(tenants, ids):
    list_waiting(tenants.work(), ActorId("reader"), before=ids.stage)


def publish_for_its_datasource(tenants, ids):
    replace(tenants.home, datasource=ids.datasource).publish()


def publish_an_artifact_for_its_datasource(tenants, ids):
    reference = tenants.home.store_artifact()
    replace(tenants.home, datasource=ids.datasource).publish(reference)


def supersede_its_stage(tenants, ids):
    supersede_stage(tenants.work(), ids.stage)


def tell_of_its_stage(tenants, ids):
    tell_of_expiring(tenants.work(), ids.stage)


def export_its_materialization(tenants, ids):
    export_promotion(tenants.work(), ids.materialization, tenants.home.signer("reader"))


def grant_to_its_actor(tenants, ids):
    tenants.home.grant(ids.actor, Role.APPROVER)


def grant_over_its_datasource(tenants, ids):
    tenants.home.grant("approver-1", Role.APPROVER, ids.datasource)


def withdraw_its_grant(tenants, ids):
    tenants.home.withdraw(ids.grant)


def revoke_its_key(tenants, ids):
    tenants.home.revoke(ids.key)


def act_as_its_actor_with_its_key(tenants, ids):
    """Sign as an administrator at home, and claim another's key."""
    subject = grant_subject("approver-1", Role.OPERATOR, None)
    attestation = tenants.home.signer("admin").attest(Action.ACTOR_GRANT, subject)
    claims = replace(attestation.claims, actor=ids.actor, key=ids.key)
    authority = importlib.import_module("datasource_governance.services.authority")
    authority.grant_role(
        tenants.work(),
        authority.GrantRequest(
            actor=ActorId("approver-1"),
            role=Role.OPERATOR,
            datasource=None,
            attestation=replace(attestation, claims=claims),
        ),
    )


def retry_its_dead_letter(tenants, ids):
    retry(tenants.work(), Receiver(), ids.event)


def plan_for_its_datasource(tenants, ids):
    plan_retention(
        tenants.work(), PlanRequest(actor=ActorId("operator"), datasource=ids.datasource)
    )


def apply_its_plan(tenants, ids):
    apply_plan(tenants.home, ids.plan, actor="admin")


def review_its_plan(tenants, ids):
    review_plan(tenants.work(), ids.plan, ActorId("reader"))


def explain_its_stage(tenants, ids):
    explain(tenants.work(), ids.stage, ActorId("reader"))


def explain_its_materialization(tenants, ids):
    explain(tenants.work(), ids.materialization, ActorId("reader"))


def certify_its_plan(tenants, ids):
    certify_disposition(tenants.work(), ids.plan, tenants.home.signer("operator"))


def verify_a_certificate_of_its_plan(tenants, ids):
    signer = tenants.home.signer("operator")
    payload = canonical_bytes({"format": CERTIFICATE_FORMAT, "plan": ids.plan})
    content = seal(CERTIFICATE_TYPE, payload, key=signer.key, sign=signer.sign).encoded()
    verify_certificate(tenants.work(), content)


def hold_its_datasource(tenants, ids):
    hold(replace(tenants.home, datasource=ids.datasource))


def hold_its_stage(tenants, ids):
    hold(tenants.home, ids.stage, HoldScope.STAGE)


def hold_its_materialization(tenants, ids):
    hold(tenants.home, ids.materialization, HoldScope.MATERIALIZATION)


def release_its_hold(tenants, ids):
    release(tenants.home, ids.hold, actor="admin")


def freeze_its_materialization(tenants, ids):
    freeze_as_evidence(tenants.home, ids.materialization)


# What each service that takes an id is asked; under one name, all that is asked of it.
ASKED = {
    "decide_stage": (decide_about_its_stage, decide_about_its_datasource),
    "promote_stage": (
        promote_its_stage_as_system,
        promote_its_stage_as_operator,
        promote_under_its_launch,
        promote_with_its_attestation,
    ),
    "create_stage": (create_a_stage_with_its_attestation, create_a_stage_of_its_datasource),
    "store_delivery_attestation": (attest_a_delivery_to_its_datasource,),
    "store_refresh_attestation": (attest_a_refresh_of_its_datasource,),
    "refresh_stage": (refresh_a_stage_of_its_datasource, refresh_with_its_attestation),
    "refresh": (refresh_its_datasource,),
    "read_current": (read_its_datasource, read_its_materialization),
    "review_stage": (review_its_stage,),
    "list_waiting": (list_what_waits_behind_its_stage,),
    "publish": (publish_for_its_datasource,),
    "publish_artifact": (publish_an_artifact_for_its_datasource,),
    "supersede_stage": (supersede_its_stage,),
    "tell_of_expiring": (tell_of_its_stage,),
    "export_promotion": (export_its_materialization,),
    "grant_role": (grant_to_its_actor, grant_over_its_datasource, act_as_its_actor_with_its_key),
    "withdraw_grant": (withdraw_its_grant,),
    "revoke_key": (revoke_its_key,),
    "retry": (retry_its_dead_letter,),
    "plan_retention": (plan_for_its_datasource,),
    "apply_retention": (apply_its_plan,),
    "review_plan": (review_its_plan,),
    "explain": (explain_its_stage, explain_its_materialization),
    "certify_disposition": (certify_its_plan,),
    "verify_certificate": (verify_a_certificate_of_its_plan,),
    "place_hold": (hold_its_datasource, hold_its_stage, hold_its_materialization),
    "release_hold": (release_its_hold,),
    "freeze": (freeze_its_materialization,),
}
# Services that take no id of what is there already, with the reason.
NOT_ASKED = {
    "apply_datasource": "whatever it names is made",
    "attest_launch": "whatever run it names is attested anew",
    "backlogs": "lists what there is",
    "dead_letters": "lists what there is",
    "found_tenant": "makes a tenant",
    "list_holds": "lists what there is",
    "list_plans": "lists what there is",
    "orphaned_artifacts": "lists what there is",
    "register_key": "whatever it names is made",
    "write_checkpoint": "of the whole tenant",
    **dict.fromkeys(
        ("approval_policy_of", "quorum_of", "quorum_at", "tally_at"), "of a stage that was loaded"
    ),
    **dict.fromkeys(("attest", "authorise", "record", "sealing_key"), "a part"),
    **dict.fromkeys(("launcher_of", "proved_launcher", "created_before", "creator_of"), "a part"),
    "check_refreshable": "a part of refreshing",
    **dict.fromkeys(("at_present", "authorised_producer", "judging_facts"), "a part of publishing"),
    **dict.fromkeys(
        ("check_producer", "check_publishable", "check_replay"), "a part of publishing"
    ),
    **dict.fromkeys(("record_created", "supersede_open"), "a part, of what was loaded"),
    **dict.fromkeys(
        (
            "check_contract_versions",
            "contract_in_force",
            "keep_observation",
            "pass_over",
            "watch_contracts",
        ),
        "a part of watching, of what was loaded",
    ),
    **dict.fromkeys(("claim_due", "is_due", "report_contracts"), "lists what there is"),
    **dict.fromkeys(("check_separated", "finish_purging", "times_purged"), "a part of retention"),
}


def services_with_a_unit_of_work():
    for module in pkgutil.iter_modules(services.__path__, f"{services.__name__}."):
        for name, one in vars(importlib.import_module(module.name)).items():
            if not inspect.isfunction(one) or one.__module__ != module.name or name[0] == "_":
                continue
            if UnitOfWork in typing.get_type_hints(one).values():
                yield name


def test_every_service_is_asked_or_has_a_reason_not_to_be():
    assert set(services_with_a_unit_of_work()) == ASKED.keys() | NOT_ASKED.keys()


def answer(ask, tenants, ids):
    """Return the code and the sentence with which something is refused."""
    with pytest.raises(GovernanceError) as refused:
        ask(tenants, ids)
    return refused.value.code, ids.hidden_in(str(refused.value))


def test_a_service_answers_a_foreign_id_like_nobodys(tenants, subtests):
    before = contents(tenants.home)

    for ask in (one for asked in ASKED.values() for one in asked):
        with subtests.test(ask.__name__.replace("_", " ")):
            foreign = answer(ask, tenants, tenants.foreign)
            assert foreign == answer(ask, tenants, NOBODYS)
            assert contents(tenants.home) == before


def test_what_is_listed_is_the_tenants_own(tenants):
    work = tenants.work()

    assert [one.stage.id for one in list_waiting(work, ActorId("reader")).stages] == [
        tenants.stage.id
    ]
    assert WaitingStages().overview(work).standings.keys() == {"orders", FEEDS}
    assert dead_letters(work) == []
    assert {one.position.datasource for one in backlogs(work, [Receiver()])} == {"orders", FEEDS}
    with work:
        assert launcher_of(work, promotion_launch("any", run_id=tenants.foreign.run)) is None
        assert work.authority.keys(tenants.foreign.actor) == []
        assert tenants.foreign.actor not in {one.id for one in work.authority.actors()}
        assert [one.datasource for one in work.datasources.list()] == [FEEDS, "orders"]


# --- Jobs -----------------------------------------------------------------------------------------


def stage_with_its_attestation(ids, delivery):
    return {"delivery": delivery, "attestation": ids.attestation}


def refresh_it(ids, _):
    return {"attestation": ids.attestation, "force": True}


def promote_it(ids, _):
    return {"stage_id": ids.stage}


def destroy_by_its_plan(ids, _):
    return {"plan_hash": ids.plan, "targets": [ids.stage]}


CONFIGURED = {
    "orders__stage": stage_with_its_attestation,
    "feeds__stage": refresh_it,
    "orders__current": promote_it,
    "feeds__current": promote_it,
    "apply_plan": destroy_by_its_plan,
}
"""The configuration of every op that has one, with another's ids in it."""
JOBS = {
    "stage_orders": "orders__stage",
    "refresh_stage_feeds": "feeds__stage",
    "promote_orders": "orders__current",
    "promote_feeds": "feeds__current",
    "apply_retention_plan": "apply_plan",
}


def definitions_of(world) -> dg.Definitions:
    """Return a code location of what is staged, and of what is re-read from a delivered file."""
    delivered = world.application.settings.state / FOLDER / "delivery.csv"
    origin = {"origin": {"address": {"url": delivered.as_uri()}}}
    cached = declaration(id=FEEDS, kind="cached", source=origin)
    return governed_definitions([declaration(POLICY, TWO_APPROVALS), cached], world.application)


def fields_of(op) -> set[str]:
    fields = getattr(op.config_schema.config_type, "fields", None)
    return set(fields) if fields else set()


def test_every_op_with_a_configuration_is_given_foreign_ids(tenants):
    found = {
        op.name: fields_of(op)
        for job in definitions_of(tenants.home).resolve_all_job_defs()
        for op in (node.definition for node in job.nodes)
        if fields_of(op)
    }

    assert found == {
        name: set(given(NOBODYS, "delivery.csv")) for name, given in CONFIGURED.items()
    }


@pytest.mark.parametrize("job", JOBS)
def test_a_job_answers_a_foreign_id_like_nobodys(tenants, job):
    definition = definitions_of(tenants.home).resolve_job_def(job)
    delivery = deliver(tenants.home, GOOD)
    before = contents(tenants.home)

    def found(ids):
        config = {"ops": {JOBS[job]: {"config": CONFIGURED[JOBS[job]](ids, delivery)}}}
        with dg.DagsterInstance.ephemeral() as instance:
            run = definition.execute_in_process(config, instance=instance, raise_on_error=False)
            description = failure_of(run).user_failure_data.description
        return code_of(run), ids.hidden_in(description)

    assert found(tenants.foreign) == found(NOBODYS)
    # A plan is asked for by its hash, and of one that is not there it cannot be told why.
    unknown = "plan_outdated" if job == "apply_retention_plan" else "not_found"
    assert found(NOBODYS)[0] == unknown
    assert contents(tenants.home) == before
