"""Who launched a run: keep what the governed webserver attests, and prove it to the run later.

Only a gateway key may attest a launch: the webserver signs for whoever signed in, and a run that
came any other way has no launcher, whatever its tags say.

Source: SPEC sections 6, 7 and 15.
"""

from dataclasses import dataclass

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.attestation import (
    Action,
    ActorKey,
    Attestation,
    KeyKind,
    verify,
)
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.subjects import launch_subject
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedLauncher:
    """Who is proved to have launched a run, and the attestation that proves it."""

    actor: ActorId
    attestation_id: Sha256


def attest_launch(work: UnitOfWork, launch: RunLaunch, attestation: Attestation) -> ActorId:
    """Keep a gateway's attestation of who launches a run; return that actor.

    Attesting the same launch by the same actor again keeps the first attestation and writes
    nothing.

    Raises:
        GuardError: an attestation's codes; `attestation_invalid` when no gateway key made it, and
            `attestation_used` when the run has another launcher or was launched otherwise.
    """
    with work:
        _check_gateway(work.authority.key(attestation.claims.key))
        first = work.authority.launch_attestation(launch.run_id)
        if first is not None:
            return _same_launcher(first, launch, attestation)
        now, subject = work.now(), launch_subject(launch)
        actor = attest(work, attestation, action=Action.RUN_LAUNCH, subject=subject, now=now)
        work.authority.add_launch_attestation(launch.run_id, attestation.id)
        work.evidence.append(
            TENANT_CHAIN,
            kind="run.launched",
            subject=launch.run_id,
            facts={**subject, "actor": actor, "attestation": attestation.id},
            at=now,
        )
        work.commit()
    return actor


def launcher_of(work: UnitOfWork, launch: RunLaunch) -> AttestedLauncher | None:
    """Return who is proved to have launched a run, inside a transaction that has begun.

    Nobody, if nothing was attested, if the run is not the very one that was, with its job,
    selection and configuration, or if the gateway's key was revoked meanwhile.
    """
    try:
        return proved_launcher(work, launch)
    except GuardError:
        return None


def proved_launcher(work: UnitOfWork, launch: RunLaunch) -> AttestedLauncher | None:
    """Return who is proved to have launched a run; None only if nobody attested that.

    Raises:
        GuardError: `attestation_mismatch` when the run is not the very one that was attested, with
            its job, selection and configuration; `attestation_invalid` when the key that attested
            it was revoked or is no gateway's.
    """
    attestation = work.authority.launch_attestation(launch.run_id)
    if attestation is None:
        return None
    key = work.authority.key(attestation.claims.key)
    actor = verify(
        attestation,
        key if key and key.kind is KeyKind.GATEWAY else None,
        tenant=work.tenant,
        action=Action.RUN_LAUNCH,
        subject=launch_subject(launch),
    )
    return AttestedLauncher(actor=actor, attestation_id=attestation.id)


def _check_gateway(key: ActorKey | None) -> None:
    if key is None or key.kind is not KeyKind.GATEWAY or key.revoked_at is not None:
        raise GuardError(
            "the governed webserver's key is not registered as a gateway key or was revoked, so "
            "nothing can be launched; an administrator registers it: "
            "key register gateway --public-key FILE --kind gateway",
            code="attestation_invalid",
        )


def _same_launcher(first: Attestation, launch: RunLaunch, again: Attestation) -> ActorId:
    launched = (first.claims.actor, dict(first.claims.subject))
    if launched != (again.claims.actor, launch_subject(launch)):
        raise GuardError(
            f"run {launch.run_id} was launched already, by somebody else or otherwise",
            code="attestation_used",
        )
    return first.claims.actor
