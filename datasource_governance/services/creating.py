"""Who creates a stage: by an attestation that is stored before, or by who launched the run.

A creator signs one file, or what an origin says at the time. Either is used once.

Source: SPEC section 6 ("A creator is attested like a decision").
"""

from collections.abc import Mapping
from typing import Protocol

from datasource_governance.domain.actor import UNATTESTED, ActorId, Role
from datasource_governance.domain.attestation import Action, Attestation, verify
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.evidence import datasource_chain
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import delivery_subject, refresh_subject
from datasource_governance.errors import NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import AttestedLauncher, launcher_of


class Creation(Protocol):
    """What may be created, and by what its creator is proved.

    `attestation_id` names a stored attestation. Without one it is whoever is proved to have
    launched the run `launch`, and without that, too, nobody.
    """

    @property
    def datasource(self) -> str:
        """Id of the datasource."""
        ...

    @property
    def attestation_id(self) -> str | None:
        """Id of the creator's attestation."""
        ...

    @property
    def launch(self) -> RunLaunch | None:
        """The run in which it is created."""
        ...

    @property
    def signed(self) -> tuple[Action, Mapping[str, Json]]:
        """The action and the subject that a creator signs."""
        ...


def store_delivery_attestation(
    work: UnitOfWork, datasource: str, file_sha256: Sha256, attestation: Attestation
) -> Sha256:
    """Keep a creator's attestation for a run that will name it; return its id.

    Storing it again is harmless: it still creates one stage only.

    Raises:
        GuardError: `not_authorised` or an attestation's codes.
    """
    signed = (Action.STAGE_CREATE, delivery_subject(datasource, file_sha256))
    return _store(work, datasource, signed, attestation)


def store_refresh_attestation(
    work: UnitOfWork, datasource: str, origin: Sha256, attestation: Attestation
) -> Sha256:
    """Keep an attestation of whoever has an origin read, as `store_delivery_attestation`."""
    signed = (Action.STAGE_REFRESH, refresh_subject(datasource, origin))
    return _store(work, datasource, signed, attestation)


def _store(
    work: UnitOfWork,
    datasource: str,
    signed: tuple[Action, dict[str, Json]],
    attestation: Attestation,
) -> Sha256:
    action, subject = signed
    with work:
        work.datasources.get_for_update(datasource)
        if work.authority.attestation(attestation.id) is not None:
            return attestation.id
        now = work.now()
        actor = attest(work, attestation, action=action, subject=subject, now=now)
        authorise(work, actor, Role.STEWARD, datasource)
        work.evidence.append(
            datasource_chain(datasource),
            kind="delivery.attested",
            subject=attestation.id,
            facts={**subject, "actor": actor},
            at=now,
        )
        work.commit()
    return attestation.id


def created_before(work: UnitOfWork, request: Creation) -> Stage | None:
    """Return the stage that the same attestation, or run, created before."""
    attestation_id = request.attestation_id
    if attestation_id is None:
        launcher = _launcher(work, request)
        attestation_id = launcher.attestation_id if launcher else None
    if attestation_id is None:
        return None
    return work.stages.attested_by(attestation_id, request.datasource)


def creator_of(work: UnitOfWork, request: Creation) -> tuple[ActorId, str | None]:
    """Return who is proved to be the creator, and the attestation that proves it.

    Raises:
        NotFoundError: for an unknown attestation.
        GuardError: `not_authorised` or an attestation's codes.
    """
    attestation_id = request.attestation_id
    if attestation_id is not None:
        actor = _signer(work, request, attestation_id)
    elif launcher := _launcher(work, request):
        actor, attestation_id = launcher.actor, launcher.attestation_id
    else:
        return UNATTESTED, None
    authorise(work, actor, Role.STEWARD, request.datasource)
    return actor, attestation_id


def _launcher(work: UnitOfWork, request: Creation) -> AttestedLauncher | None:
    """Return who is proved to have launched the run in order to stage this datasource."""
    launch = request.launch
    return launcher_of(work, launch) if launch and launch.stages(request.datasource) else None


def _signer(work: UnitOfWork, request: Creation, attestation_id: str) -> ActorId:
    attestation = work.authority.attestation(attestation_id)
    if attestation is None:
        raise NotFoundError(
            f"there is no attestation {attestation_id[:12]!r} in tenant {work.tenant!r}; "
            "stage create stores one"
        )
    action, subject = request.signed
    return verify(
        attestation,
        work.authority.key(attestation.claims.key),
        tenant=work.tenant,
        action=action,
        subject=subject,
    )
