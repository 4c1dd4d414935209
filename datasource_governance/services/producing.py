"""Who is behind an output: who signed for it, or launched the run, or else `system`.

Source: SPEC sections 9 and 17; facts T-22.
"""

from dataclasses import dataclass
from datetime import datetime

from datasource_governance.domain.actor import SYSTEM, ActorId, Role
from datasource_governance.domain.attestation import (
    Action,
    Attestation,
    check_lifetime,
    verify,
)
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.publication import Publication
from datasource_governance.domain.subjects import publication_subject
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise
from datasource_governance.services.launching import AttestedLauncher, proved_launcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Producing:
    """An output but for its content, and what may prove who is behind it.

    `supplied_policy` and `evidence` are the hashes of what comes with it. `signer` will sign for
    it, once its content is known.
    """

    datasource: str
    partition: str
    producer: str
    idempotency_key: str
    supplied_policy: Sha256 | None
    evidence: Sha256 | None
    attestation: Attestation | None
    launch: RunLaunch | None
    signer: ActorId | None = None

    def subject(self, checksum: Sha256) -> dict[str, Json]:
        """Return what is signed for the output with this content."""
        return publication_subject(
            datasource=self.datasource,
            partition=self.partition,
            producer=self.producer,
            idempotency_key=self.idempotency_key,
            checksum=checksum,
            supplied_policy=self.supplied_policy,
            evidence=self.evidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorisedProducer:
    """Who is proved to be behind an output, by what, and under which grant."""

    actor: ActorId
    grant_id: str
    attestation_id: Sha256 | None


def check_producer(work: UnitOfWork, producing: Producing) -> None:
    """Refuse who may not publish, before the content is looked at; write nothing.

    Raises:
        GuardError: as `authorised_producer`, but for what is signed of the content.
    """
    authorise(work, _behind(work, producing), Role.PRODUCER, producing.datasource)


def check_replay(work: UnitOfWork, producing: Producing, first: Publication) -> None:
    """Refuse who may not be told what was published under a key.

    Whoever published it may, whatever changed since; all others need to be able to publish.

    Raises:
        GuardError: as `check_producer`.
    """
    if _has_proof_of(work, producing, first):
        return
    actor = _behind(work, producing, is_first=False)
    if actor != first.actor:
        authorise(work, actor, Role.PRODUCER, producing.datasource)


def authorised_producer(
    work: UnitOfWork, producing: Producing, checksum: Sha256, now: datetime
) -> AuthorisedProducer:
    """Return who is behind an output, and keep the attestation that proves it.

    The datasource is locked: a launch proves one output of it, or one for each partition.

    Raises:
        GuardError: an attestation's codes, also when that of the run's launch proves nothing; or
            `not_authorised` for an actor without a producer's grant.
    """
    actor, attestation_id = SYSTEM, None
    if producing.attestation is not None:
        subject, action = producing.subject(checksum), Action.PUBLICATION_CREATE
        actor = attest(work, producing.attestation, action=action, subject=subject, now=now)
        attestation_id = producing.attestation.id
    elif launcher := _launcher(work, producing, is_first=True):
        actor, attestation_id = launcher.actor, launcher.attestation_id
    grant = authorise(work, actor, Role.PRODUCER, producing.datasource)
    return AuthorisedProducer(actor=actor, grant_id=grant.id, attestation_id=attestation_id)


def _behind(work: UnitOfWork, producing: Producing, *, is_first: bool = True) -> ActorId:
    """Return who is behind an output, as far as its content does not matter."""
    attestation = producing.attestation
    if attestation is not None:
        # Of the content it is believed for now; what it says is looked at with the content.
        checksum = Sha256(str(attestation.claims.subject.get("payload")))
        key = work.authority.key(attestation.claims.key)
        action, subject = Action.PUBLICATION_CREATE, producing.subject(checksum)
        actor = verify(attestation, key, tenant=work.tenant, action=action, subject=subject)
        check_lifetime(attestation.claims, work.now())
        return actor
    if producing.signer is not None:
        return producing.signer
    launcher = _launcher(work, producing, is_first=is_first)
    return launcher.actor if launcher else SYSTEM


def _launcher(work: UnitOfWork, producing: Producing, *, is_first: bool) -> AttestedLauncher | None:
    """Return who is proved to have launched the run in order to publish this, for the first time.

    Raises:
        GuardError: `attestation_invalid` or `attestation_mismatch` when the launch was attested and
            that proves nothing, which is never taken for a run that nobody launched;
            `attestation_used` when the run published another output for the partition before.
    """
    launch, datasource = producing.launch, producing.datasource
    launcher = proved_launcher(work, launch) if launch else None
    if launch is None or launcher is None or not launch.publishes(datasource):
        return None
    named = (launcher.attestation_id, datasource, producing.partition)
    used = work.publications.attested_by(*named) if is_first else None
    # Another attempt under the same key is no other output, and is found when the key is locked.
    key = (producing.producer, producing.idempotency_key)
    if used is not None and (used.producer, used.idempotency_key) != key:
        raise GuardError(
            f"run {launch.run_id} published an output for datasource {datasource!r} already, and "
            "its launch proves one only; launch another run, or sign for this output",
            code="attestation_used",
        )
    return launcher


def _has_proof_of(work: UnitOfWork, producing: Producing, first: Publication) -> bool:
    """Whether the very attestation comes again by which something was published."""
    if first.attestation_id is None:
        return False
    if producing.attestation is not None:
        kept = work.authority.attestation(first.attestation_id)
        return kept == producing.attestation
    launch = producing.launch
    attested = work.authority.launch_attestation(launch.run_id) if launch else None
    return attested is not None and attested.id == first.attestation_id
