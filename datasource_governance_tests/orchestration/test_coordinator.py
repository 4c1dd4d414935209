"""Who launched a run is attested before it is queued, and shown; everybody else is nobody."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.errors import DagsterUserCodeProcessError
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.test_utils import create_run_for_test
from starlette.requests import Request

from datasource_governance.domain.launch import RunLaunch, run_config_hash
from datasource_governance.errors import GuardError
from datasource_governance.orchestration.coordinator import (
    ACTOR_TAG,
    LAUNCHER,
    AttestingRunCoordinator,
    launch_of,
)

STAGE = dg.AssetKey(["orders", "stage"])
CURRENT = dg.AssetKey(["orders", "current"])
REPOSITORY = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("orders"), "__repository__")
CONFIG = {"ops": {"orders__stage": {"config": {"delivery": "delivery.csv"}}}}
COORDINATOR = {
    "module": "datasource_governance.orchestration.coordinator",
    "class": "AttestingRunCoordinator",
    "config": {"max_concurrent_runs": 3, "dequeue_interval_seconds": 1},
}


@dataclass
class Remembering:
    """A launcher that remembers what it attested, or refuses to."""

    actor: str = "ann"
    refusal: str = ""
    attested: list[RunLaunch] = field(default_factory=list)

    def attest(self, launch: RunLaunch) -> None:
        if self.refusal:
            raise GuardError(self.refusal, code="attestation_invalid")
        self.attested.append(launch)


@pytest.fixture(scope="module")
def instance():
    with dg.instance_for_test(overrides={"run_coordinator": COORDINATOR}) as made:
        yield made


def request_of(launcher=None) -> Request:
    """Return a request as the webserver hands it on; behind the gate it carries a launcher."""
    state = {} if launcher is None else {LAUNCHER: launcher}
    return Request({"type": "http", "method": "POST", "path": "/", "headers": [], "state": state})


def new_run(instance, **run):
    origin = RemoteJobOrigin(REPOSITORY, "stage_orders")
    given = {"run_config": CONFIG, "remote_job_origin": origin, **run}
    return create_run_for_test(instance, "stage_orders", **given)


def submit(instance, source=None, **run):
    """Submit a new run as the webserver does, or the daemon (no source); return it as kept."""
    new = new_run(instance, **run)
    context = dg.SubmitRunContext(new, SimpleNamespace(source=source))
    return instance.run_coordinator.submit_run(context)


def refused(instance, source, **run):
    """Return the sentence with which a launch is refused, and hold that nothing was queued."""
    new = new_run(instance, **run)
    with pytest.raises(DagsterUserCodeProcessError) as caught:
        instance.run_coordinator.submit_run(
            dg.SubmitRunContext(new, SimpleNamespace(source=source))
        )
    kept = instance.get_run_by_id(new.run_id)
    assert kept.status is dg.DagsterRunStatus.NOT_STARTED
    assert kept.tags[ACTOR_TAG] == "unattested"
    (shown,) = caught.value.user_code_process_error_infos
    assert (shown.stack, shown.cause, shown.context) == ([], None, None)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    return shown.message


def test_it_takes_the_configuration_of_dagsters_queue(instance):
    coordinator = instance.run_coordinator

    assert isinstance(coordinator, AttestingRunCoordinator)
    assert coordinator.get_run_queue_config().max_concurrent_runs == 3
    assert coordinator.dequeue_interval_seconds == 1
    assert coordinator.config_type().keys() == dg.QueuedRunCoordinator.config_type().keys()


def test_a_launch_behind_the_gate_is_attested_queued_and_shown(instance):
    launcher = Remembering()

    run = submit(instance, request_of(launcher))

    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.tags[ACTOR_TAG] == "ann"
    assert launcher.attested == [launch_of(run)]
    assert launcher.attested[0].run_id == run.run_id


@pytest.mark.parametrize("source", [None, request_of(), object()])
def test_any_other_launch_is_queued_as_nobodys(instance, source):
    run = submit(instance, source)

    assert run.status is dg.DagsterRunStatus.QUEUED
    assert run.tags[ACTOR_TAG] == "unattested"


@pytest.mark.parametrize(
    ("source", "shown"), [(None, "unattested"), (request_of(Remembering()), "ann")]
)
def test_a_tag_that_was_typed_in_is_overwritten(instance, source, shown):
    run = submit(instance, source, tags={ACTOR_TAG: "boss"})

    assert run.tags[ACTOR_TAG] == shown


def test_what_cannot_be_attested_is_not_queued_and_told_in_one_sentence(instance):
    launcher = Remembering(refusal="the gateway's key was revoked")

    sentence = refused(instance, request_of(launcher), tags={ACTOR_TAG: "boss"})

    assert sentence == "the gateway's key was revoked"


@pytest.mark.parametrize("source", [request_of(), request_of(Remembering())])
def test_configuration_that_reads_the_environment_is_refused_to_every_request(instance, source):
    config = {"ops": {"a": {"config": {"list": [{"env": "DAGSTER_PG_PASSWORD"}]}}}}

    sentence = refused(instance, source, run_config=config)

    assert sentence == 'run configuration may not read environment variables: {"env": …}'


def test_what_the_daemon_launches_may_read_the_environment_as_dagster_lets_it(instance):
    config = {"ops": {"a": {"config": {"folder": {"env": "HOME"}}}}}

    assert submit(instance, run_config=config).status is dg.DagsterRunStatus.QUEUED


def test_configuration_that_nobody_can_sign_is_refused(instance):
    config = {"ops": {"a": {"config": {"ratio": float("nan")}}}}

    assert "nobody can sign it" in refused(instance, request_of(Remembering()), run_config=config)
    assert submit(instance, request_of(), run_config=config).tags[ACTOR_TAG] == "unattested"


def test_a_run_that_was_submitted_before_stays_whose_it_is(instance, caplog):
    run = submit(instance, request_of(Remembering()))
    other = Remembering("bob")

    instance.run_coordinator.submit_run(
        dg.SubmitRunContext(run, SimpleNamespace(source=request_of(other)))
    )

    assert other.attested == []
    assert instance.get_run_by_id(run.run_id).tags[ACTOR_TAG] == "ann"


def test_a_launch_names_the_run_its_job_its_selection_and_its_configuration(instance):
    selection = {CURRENT, STAGE}
    check = dg.AssetCheckKey(dg.AssetKey(["countries", "stage"]), "quality_policy")
    run = create_run_for_test(
        instance,
        "__ASSET_JOB",
        run_config=CONFIG,
        asset_selection=frozenset(selection),
        asset_check_selection=frozenset({check}),
    )

    assert launch_of(run) == RunLaunch(
        run_id=run.run_id,
        job="__ASSET_JOB",
        assets=("countries/stage", "orders/current", "orders/stage"),
        config_hash=run_config_hash(CONFIG),
    )


def test_a_slash_inside_a_part_of_a_key_is_not_one_between_parts(instance):
    run = create_run_for_test(instance, asset_selection=frozenset({dg.AssetKey(["orders/stage"])}))

    assert not launch_of(run).stages("orders")


def test_configuration_without_canonical_form_makes_no_launch(instance):
    run = create_run_for_test(instance, run_config={"a": float("inf")})

    assert launch_of(run) is None
