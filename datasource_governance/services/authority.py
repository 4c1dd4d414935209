"""Actors, keys and grants: the first administrator, and everything that administrators give.

All of it is evidence on the tenant's chain. One change of a tenant's keys and grants waits for the
other, and for whatever is decided under them.

Source: SPEC section 17.
"""

from dataclasses import dataclass

from datasource_governance.domain.actor import (
    SYSTEM,
    Actor,
    ActorId,
    Grant,
    Role,
    admit_grant,
    person,
)
from datasource_governance.domain.attestation import (
    Action,
    ActorKey,
    Attestation,
    KeyKind,
    key_id,
)
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.domain.subjects import (
    grant_subject,
    key_subject,
    revocation_subject,
    withdrawal_subject,
)
from datasource_governance.errors import GuardError, NotFoundError
from datasource_governance.ports import UnitOfWork
from datasource_governance.services.attesting import attest, authorise


def found_tenant(work: UnitOfWork, administrator: str, public_key: bytes) -> bool:
    """Create the first administrator as the tenant's first evidence. Tell whether it was now.

    The same administrator and key again change nothing.

    Raises:
        GuardError: code `tenant_exists` when somebody else administers this tenant already.
    """
    name, key = person(administrator), key_id(public_key)
    with work:
        work.authority.lock()
        known = work.authority.key(key)
        if work.authority.actors():
            if known is not None and known.actor == name:
                return False
            raise GuardError(
                f"tenant {work.tenant!r} has its administrator already; he or she can register "
                "further keys: key register",
                code="tenant_exists",
            )
        now = work.now()
        for actor in (name, SYSTEM):
            work.authority.add_actor(Actor(id=actor, display_name=actor, created_at=now))
        work.authority.add_key(
            ActorKey(
                id=key,
                actor=name,
                kind=KeyKind.ACTOR,
                public_key=public_key,
                attestation_id=None,
                created_at=now,
            )
        )
        grant = Grant(
            id=work.new_id(),
            actor=name,
            role=Role.ADMINISTRATOR,
            datasource=None,
            attestation_id=None,
            granted_at=now,
        )
        work.authority.add_grant(grant)
        facts = {"actor": name, "key": key, "grant": grant.id, "role": str(grant.role)}
        work.evidence.append(TENANT_CHAIN, kind="tenant.founded", subject=name, facts=facts, at=now)
        work.commit()
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRegistration:
    """A public key that is to attest for an actor, who is registered with it if still unknown."""

    actor: ActorId
    display_name: str
    kind: KeyKind
    public_key: bytes
    attestation: Attestation


def register_key(work: UnitOfWork, request: KeyRegistration) -> ActorKey:
    """Let a key attest for an actor. Registering the same key again returns it.

    Raises:
        GuardError: `not_authorised`, an attestation's codes, or `key_taken` when the key is
            registered for somebody else or was revoked.
    """
    name, key = person(request.actor), key_id(request.public_key)
    with work:
        work.authority.lock()
        known = work.authority.key(key)
        if known is not None:
            if known.actor == name and known.kind is request.kind and known.revoked_at is None:
                return known
            raise GuardError(
                f"key {key[:12]} is registered or revoked already; make another: key create",
                code="key_taken",
            )
        now = work.now()
        subject = key_subject(name, request.kind, request.public_key, request.display_name)
        author = attest(
            work, request.attestation, action=Action.KEY_REGISTER, subject=subject, now=now
        )
        authorise(work, author, Role.ADMINISTRATOR, None)
        if work.authority.actor(name) is None:
            work.authority.add_actor(
                Actor(id=name, display_name=request.display_name, created_at=now)
            )
        registered = ActorKey(
            id=key,
            actor=name,
            kind=request.kind,
            public_key=request.public_key,
            attestation_id=request.attestation.id,
            created_at=now,
        )
        work.authority.add_key(registered)
        facts = {"actor": name, "key": key, "kind": str(request.kind), "author": author}
        work.evidence.append(TENANT_CHAIN, kind="key.registered", subject=key, facts=facts, at=now)
        work.commit()
    return registered


def revoke_key(work: UnitOfWork, key: Sha256, attestation: Attestation) -> None:
    """End a key: nothing that it signs from now on is accepted.

    Raises:
        NotFoundError: for an unknown key.
        GuardError: `not_authorised`, an attestation's codes, `key_taken` when already revoked, or
            `last_administrator` when nobody could administer the tenant without it.
    """
    with work:
        work.authority.lock()
        known = work.authority.key(key)
        if known is None:
            raise NotFoundError(f"there is no key {key[:12]!r} in tenant {work.tenant!r}")
        if known.revoked_at is not None:
            raise GuardError(f"key {key[:12]} was revoked already", code="key_taken")
        now = work.now()
        author = attest(
            work, attestation, action=Action.KEY_REVOKE, subject=revocation_subject(key), now=now
        )
        authorise(work, author, Role.ADMINISTRATOR, None)
        work.authority.revoke_key(key, attestation.id, now)
        _check_administered(work)
        facts = {"key": key, "actor": known.actor, "author": author}
        work.evidence.append(TENANT_CHAIN, kind="key.revoked", subject=key, facts=facts, at=now)
        work.commit()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRequest:
    """Authority to be given: one role, over one datasource or (None) over all."""

    actor: ActorId
    role: Role
    datasource: str | None
    attestation: Attestation


def grant_role(work: UnitOfWork, request: GrantRequest) -> Grant:
    """Give authority. A grant that is in force already is returned.

    Raises:
        NotFoundError: for an actor or datasource that does not exist.
        GuardError: `not_authorised` or an attestation's codes.
    """
    admit_grant(request.actor, request.role)
    with work:
        work.authority.lock()
        if request.datasource is not None:
            work.datasources.get(request.datasource)
        if work.authority.actor(request.actor) is None:
            raise NotFoundError(
                f"there is no actor {request.actor!r} in tenant {work.tenant!r}; "
                "register a key first: key register"
            )
        for grant in work.authority.grants(request.actor):
            if grant.role is request.role and grant.datasource == request.datasource:
                return grant
        now = work.now()
        author = attest(
            work,
            request.attestation,
            action=Action.ACTOR_GRANT,
            subject=grant_subject(request.actor, request.role, request.datasource),
            now=now,
        )
        authorise(work, author, Role.ADMINISTRATOR, None)
        grant = Grant(
            id=work.new_id(),
            actor=request.actor,
            role=request.role,
            datasource=request.datasource,
            attestation_id=request.attestation.id,
            granted_at=now,
        )
        work.authority.add_grant(grant)
        facts = {
            "grant": grant.id,
            "actor": grant.actor,
            "role": str(grant.role),
            "datasource": grant.datasource,
            "author": author,
        }
        work.evidence.append(
            TENANT_CHAIN, kind="actor.granted", subject=grant.actor, facts=facts, at=now
        )
        work.commit()
    return grant


def withdraw_grant(work: UnitOfWork, grant_id: str, attestation: Attestation) -> None:
    """Take authority back; decisions already made by the actor no longer count.

    Raises:
        NotFoundError: when no such grant is in force.
        GuardError: `not_authorised`, an attestation's codes, or `last_administrator` when nobody
            could administer the tenant without it.
    """
    with work:
        work.authority.lock()
        given = next((one for one in work.authority.grants() if one.id == grant_id), None)
        if given is None:
            raise NotFoundError(f"no grant {grant_id!r} is in force in tenant {work.tenant!r}")
        now = work.now()
        author = attest(
            work,
            attestation,
            action=Action.ACTOR_WITHDRAW,
            subject=withdrawal_subject(grant_id),
            now=now,
        )
        authorise(work, author, Role.ADMINISTRATOR, None)
        work.authority.withdraw_grant(grant_id, attestation.id, now)
        _check_administered(work)
        facts = {"grant": grant_id, "actor": given.actor, "role": str(given.role), "author": author}
        work.evidence.append(
            TENANT_CHAIN, kind="actor.withdrawn", subject=given.actor, facts=facts, at=now
        )
        work.commit()


def _check_administered(work: UnitOfWork) -> None:
    """Refuse to leave a tenant without anybody who can give authority back."""
    keepers = {
        key.actor
        for key in work.authority.keys(None)
        if key.kind is KeyKind.ACTOR and key.revoked_at is None
    }
    if not any(
        grant.covers(Role.ADMINISTRATOR, None) and grant.actor in keepers
        for grant in work.authority.grants()
    ):
        raise GuardError(
            f"nobody could administer tenant {work.tenant!r} any more; first make somebody else "
            "administrator, or register another key: actor grant, key register",
            code="last_administrator",
        )
