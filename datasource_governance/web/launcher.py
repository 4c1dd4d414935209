"""Whoever signed in, as a request carries them to the run that it launches.

Source: SPEC section 7 ("gateway key"); section 15.
"""

from collections.abc import Callable
from dataclasses import dataclass

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.subjects import launch_subject
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.launching import attest_launch
from datasource_governance.web.gateway import Gateway


@dataclass(frozen=True, slots=True)
class RequestLauncher:
    """An actor whom the gate authenticated, with the gateway that signs for them."""

    actor: ActorId
    gateway: Gateway
    work: Callable[[], UnitOfWork]

    def attest(self, launch: RunLaunch) -> None:
        """Sign that the actor launches a run, and keep it for the run to find.

        Raises:
            GuardError: with the codes of `attest_launch`.
            ServiceUnavailableError: when Postgres cannot be used.
        """
        attestation = self.gateway.attest(self.actor, Action.RUN_LAUNCH, launch_subject(launch))
        attest_launch(self.work(), launch, attestation)
