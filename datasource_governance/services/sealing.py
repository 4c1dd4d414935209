"""Who seals an envelope: a registered actor's own key, under a grant that holds now.

Source: SPEC sections 7, 13 and 17.
"""

from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import ActorKey, KeyKind
from datasource_governance.domain.envelope import Envelope, seal
from datasource_governance.errors import GuardError
from datasource_governance.ports import EnvelopeSigner, UnitOfWork
from datasource_governance.services.attesting import authorise


def sealing_key(
    work: UnitOfWork, signer: EnvelopeSigner, role: Role, datasource: str | None
) -> ActorKey:
    """Return the signer's key if it is an actor's own, not revoked, and its actor has the role.

    Raises:
        GuardError: `attestation_invalid` or `not_authorised`.
    """
    work.authority.hold()
    key = work.authority.key(signer.key)
    if key is None or key.kind is not KeyKind.ACTOR or key.revoked_at is not None:
        raise GuardError(
            f"key {signer.key[:12]} is no registered key of an actor, or it was revoked; "
            "an administrator can register one: key register",
            code="attestation_invalid",
        )
    authorise(work, key.actor, role, datasource)
    return key


def sealed(signer: EnvelopeSigner, key: ActorKey, payload_type: str, payload: bytes) -> Envelope:
    """Return the payload in an envelope that `key` verifies.

    Raises:
        GuardError: code `attestation_invalid` when the signer has not the private half of `key`.
    """
    envelope = seal(payload_type, payload, key=key.id, sign=signer.sign)
    if not envelope.is_signed_with(key.public_key):
        raise GuardError(
            f"the signature is not that of key {key.id[:12]}", code="attestation_invalid"
        )
    return envelope
