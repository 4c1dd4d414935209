"""Who did it: verify an attestation, keep it, and find the authority it acts under.

Source: SPEC sections 7 and 17.
"""

from collections.abc import Mapping
from datetime import datetime

from datasource_governance.domain.actor import ActorId, Grant, Role, authority
from datasource_governance.domain.attestation import Action, Attestation, check_lifetime, verify
from datasource_governance.domain.canonical import Json
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork


def attest(
    work: UnitOfWork,
    attestation: Attestation,
    *,
    action: Action,
    subject: Mapping[str, Json],
    now: datetime,
) -> ActorId:
    """Return the actor whom an attestation proves, and keep it so that it is never used again.

    Raises:
        GuardError: `attestation_used`, `attestation_invalid`, `attestation_expired` or
            `attestation_mismatch`.
    """
    work.authority.hold()
    actor = verify(
        attestation,
        work.authority.key(attestation.claims.key),
        tenant=work.tenant,
        action=action,
        subject=subject,
    )
    check_lifetime(attestation.claims, now)
    if work.authority.attestation(attestation.id) is not None:
        raise GuardError(
            "the attestation was used already; every action needs one of its own",
            code="attestation_used",
        )
    work.authority.add_attestation(attestation, now)
    return actor


def authorise(work: UnitOfWork, actor: ActorId, role: Role, datasource: str | None) -> Grant:
    """Return the grant under which an actor may act.

    Raises:
        GuardError: code `not_authorised`.
    """
    return authority(work.authority.grants(actor), actor, role, datasource)
