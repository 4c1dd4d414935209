"""Who is behind an output: who signed for it, or launched the run, or else `system`.

Source: SPEC sections 9 and 17; facts T-22.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from datasource_governance.domain.actor import SYSTEM, ActorId, Role
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.subjects import publication_subject
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import launcher_of


@dataclass(frozen=True, kw_only=True)
class Producing:
    """What somebody may sign for: the facts of `publication_subject`."""

    datasource: str
    partition: str
    producer: str
    idempotency_key: str
    checksum: Sha256
    supplied_policy: Sha256 | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorisedProducer:
    """Who is proved to be behind an output, by what, and under which grant."""

    actor: ActorId
    grant_id: str
    attestation_id: Sha256 | None


def authorised_producer(
    work: UnitOfWork,
    producing: Producing,
    attestation: Attestation | None,
    launch: RunLaunch | None,
    now: datetime,
) -> AuthorisedProducer:
    """Return who is behind an output, and keep the attestation that proves it.

    Raises:
        GuardError: an attestation's codes, or `not_authorised` for an actor without a producer's
            grant.
    """
    datasource = producing.datasource
    actor, attestation_id = SYSTEM, None
    if attestation is not None:
        subject = publication_subject(**asdict(producing))
        action = Action.PUBLICATION_CREATE
        actor = attest(work, attestation, action=action, subject=subject, now=now)
        attestation_id = attestation.id
    elif launch and launch.publishes(datasource) and (by := launcher_of(work, launch)):
        actor, attestation_id = by.actor, by.attestation_id
    grant = authorise(work, actor, Role.PRODUCER, datasource)
    return AuthorisedProducer(actor=actor, grant_id=grant.id, attestation_id=attestation_id)
