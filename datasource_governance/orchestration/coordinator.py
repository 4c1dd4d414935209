"""The run coordinator: who launches a run is attested before it is queued, or nobody did.

Every run that Dagster queues passes here: from the webserver with the request that asked for it,
from the daemon and the command line without any. Behind the governed webserver's gate the request
carries who signed in, and the means to attest it; this module holds no key. Every instance loads
it, in every process, so it imports nothing heavy.

Source: SPEC sections 6, 7 and 15; facts on identity; threats T-01 to T-05.
"""

from typing import Any, Protocol

import dagster as dg

# Dagster shows and stores the stack of every other error that stops a launch.
from dagster._core.errors import DagsterUserCodeProcessError  # noqa: TID251
from dagster_shared.error import SerializableErrorInfo
from typing_extensions import override

from datasource_governance.domain.actor import UNATTESTED, ActorId
from datasource_governance.domain.launch import RunLaunch, reads_environment, run_config_hash
from datasource_governance.errors import GovernanceError, GuardError

ACTOR_TAG = "datasource_governance/actor"
"""The tag that shows who launched a run. Anybody can type it in elsewhere: it proves nothing."""
LAUNCHER = "launcher"
"""Under this name the state of a request holds the `Launcher` of whoever signed in."""


class Launcher(Protocol):
    """Whoever signed in, as a request to the governed webserver carries them."""

    @property
    def actor(self) -> ActorId:
        """Who it is."""
        ...

    def attest(self, launch: RunLaunch) -> None:
        """Attest that this actor launches a run.

        Raises:
            GovernanceError: when it cannot be attested; then nothing may run.
        """
        ...


class AttestingRunCoordinator(dg.QueuedRunCoordinator[Any]):
    """Dagster's queue, and its configuration, behind attested launches."""

    @override
    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        """Queue a run, once it is attested if it came through the governed webserver.

        A refusal stops the launch: the run has failed before it began.
        """
        if context.dagster_run.status is dg.DagsterRunStatus.NOT_STARTED:
            refusal, actor = None, UNATTESTED
            try:
                actor = _attested(context)
            except GovernanceError as error:
                refusal = error
            finally:
                # Whatever was typed in is replaced, whoever it was.
                self._instance.add_run_tags(context.dagster_run.run_id, {ACTOR_TAG: actor})
            if refusal is not None:
                raise _plain(refusal)
        return super().submit_run(context)


def launch_of(run: dg.DagsterRun) -> RunLaunch | None:
    """Return what an attestation of who launched a run is about.

    None when its configuration has no canonical form, as only code in the same process can give it.
    """
    checks = run.asset_check_selection or ()
    keys = {*(run.asset_selection or ()), *(check.asset_key for check in checks)}
    try:
        config_hash = run_config_hash(run.run_config)
    except ValueError:
        return None
    return RunLaunch(
        run_id=run.run_id,
        job=run.job_name,
        assets=tuple(sorted(key.to_escaped_user_string() for key in keys)),
        config_hash=config_hash,
    )


def _attested(context: dg.SubmitRunContext) -> ActorId:
    """Return who is attested to launch a run: who signed in at the gate that it came through."""
    run, request = context.dagster_run, getattr(context.workspace, "source", None)
    if request is None:
        return UNATTESTED
    if reads_environment(run.run_config):
        raise GuardError('run configuration may not read environment variables: {"env": …}')
    launcher: Launcher | None = getattr(getattr(request, "state", None), LAUNCHER, None)
    if launcher is None:
        return UNATTESTED
    launcher.attest(_attestable(run))
    return launcher.actor


def _attestable(run: dg.DagsterRun) -> RunLaunch:
    launch = launch_of(run)
    if launch is None:
        raise GuardError("the run configuration holds what JSON cannot say, so nobody can sign it")
    return launch


def _plain(refusal: GovernanceError) -> DagsterUserCodeProcessError:
    """Return an error of which Dagster shows the sentence and nothing else."""
    shown = SerializableErrorInfo(message=str(refusal), stack=[], cls_name=type(refusal).__name__)
    return DagsterUserCodeProcessError(str(refusal), user_code_process_error_infos=[shown])  # type: ignore[no-untyped-call]  # Dagster's own
