"""Certify what a retention plan destroyed, and verify such a certificate later.

A certificate is made from records alone. So whoever has one can have it made again, and it must be
the same to the byte.

Source: SPEC section 12.
"""

from collections.abc import Sequence

from datasource_governance.domain.actor import ActorId, Role
from datasource_governance.domain.canonical import Json, load_object
from datasource_governance.domain.disposition import (
    PAYLOAD_TYPE,
    DisposedTarget,
    DispositionCertificate,
    certified_plan,
)
from datasource_governance.domain.envelope import Envelope, read_envelope
from datasource_governance.domain.evidence import TENANT_CHAIN, Entry, datasource_chain
from datasource_governance.domain.plan_admission import unknown_plan
from datasource_governance.domain.retention_plan import RetentionPlan
from datasource_governance.errors import GuardError
from datasource_governance.ports import EnvelopeSigner, UnitOfWork
from datasource_governance.services.sealing import sealed, sealing_key


def certify_disposition(work: UnitOfWork, plan_hash: str, signer: EnvelopeSigner) -> Envelope:
    """Return the certificate of what a plan destroyed, sealed. Nothing is written.

    Whoever signs is administrator or operator over what the plan is about.

    Raises:
        GuardError: `plan_outdated` for an unknown plan, `not_applied`, `purge_unfinished`,
            `not_authorised`, `attestation_invalid`, or `evidence_chain_broken`.
    """
    with work.snapshot():
        certificate = _certificate(work, plan_hash)
        datasource = certificate.plan.datasource
        known = work.authority.key(signer.key)
        role = _role(work, known.actor if known else None, datasource)
        key = sealing_key(work, signer, role, datasource)
    return sealed(signer, key, PAYLOAD_TYPE, certificate.payload())


def verify_certificate(work: UnitOfWork, content: bytes) -> dict[str, Json]:
    """Return the document of a certificate that is signed and is what the records still say.

    A key that was revoked since still signed it.

    Raises:
        GuardError: code `certificate_invalid`, or `evidence_chain_broken` when the records are not
            what evidence says.
    """
    envelope = read_envelope(content)
    plan = certified_plan(envelope.payload) if envelope else None
    if envelope is None or plan is None or envelope.payload_type != PAYLOAD_TYPE:
        raise _invalid("it is no certificate of disposition")
    with work.snapshot():
        key = work.authority.key(envelope.key)
        if key is None or not envelope.is_signed_with(key.public_key):
            raise _invalid("its signature is none of a key that is registered here")
        certificate = _certificate(work, plan)
    if certificate.payload() != envelope.payload:
        raise _invalid("the records say something else")
    return load_object(envelope.payload)


def _certificate(work: UnitOfWork, plan_hash: str) -> DispositionCertificate:
    stored = work.retention.plan(plan_hash)
    if stored is None:
        raise unknown_plan(plan_hash)
    application = work.retention.application(plan_hash)
    if application is None:
        raise GuardError(
            f"plan {plan_hash} was not applied, so there is nothing to certify",
            code="not_applied",
            plan=plan_hash,
        )
    if purging := work.retention.purging(plan_hash):
        named = ", ".join(one.id for one in purging)
        raise GuardError(
            f"objects of artifacts are still there, of: {named}; apply the plan again first",
            code="purge_unfinished",
            plan=plan_hash,
        )
    targets = work.retention.dispositions(plan_hash)
    return DispositionCertificate(
        plan=stored.plan,
        application=application,
        targets=tuple(targets),
        evidence=_evidence(work, stored.plan, targets),
    )


def _evidence(
    work: UnitOfWork, plan: RetentionPlan, targets: Sequence[DisposedTarget]
) -> tuple[Entry, ...]:
    """Return the links about an application, which tell of exactly these targets.

    Raises:
        GuardError: code `evidence_chain_broken`.
    """
    chains = sorted({datasource_chain(one.datasource) for one in plan.targets})
    links = [link for chain in chains for link in work.evidence.segment(chain, plan.hash)]
    told = sorted(name for link in links for name in _told(link))
    altered = any(link.recomputed_hash() != link.entry_hash for link in links)
    if altered or told != sorted(one.subject for one in targets):
        raise GuardError(
            f"evidence does not tell of what plan {plan.hash} destroyed; run: evidence verify",
            code="evidence_chain_broken",
            plan=plan.hash,
        )
    applied = work.evidence.segment(TENANT_CHAIN, plan.hash)
    return (*links, *(link for link in applied if link.kind == "retention.applied"))


def _told(link: Entry) -> list[str]:
    facts = load_object(link.body)["facts"]
    targets = facts["targets"] if isinstance(facts, dict) else None
    listed = targets if isinstance(targets, list) else []
    return [str(one["id"]) for one in listed if isinstance(one, dict)]


def _role(work: UnitOfWork, actor: ActorId | None, datasource: str | None) -> Role:
    """Return as what an actor signs: as administrator, if they are, else as operator."""
    grants = work.authority.grants(actor) if actor is not None else ()
    administers = any(grant.covers(Role.ADMINISTRATOR, datasource) for grant in grants)
    return Role.ADMINISTRATOR if administers else Role.OPERATOR


def _invalid(why: str) -> GuardError:
    return GuardError(f"the certificate is not valid: {why}", code="certificate_invalid")
