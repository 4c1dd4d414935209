"""Actors, their roles and the grants that give authority.

Authority is a grant: one actor, one role, one datasource or all. Grants are never edited; they are
given and withdrawn. `system` is the actor of sensors and schedules: it promotes what a quorum
approved and reads, and can never hold a role that decides about data.

Source: SPEC section 1 ("Actor") and section 17.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from datasource_governance.errors import GuardError, InvalidArgumentError

ActorId = NewType("ActorId", str)
"""A canonical principal. Two spellings of one person are one id."""

SYSTEM = ActorId("system")
UNATTESTED = ActorId("unattested")
"""What stands in place of a creator whom nothing attests."""
_RESERVED = frozenset({SYSTEM, UNATTESTED})
_PRINCIPAL = re.compile(r"[a-z0-9][a-z0-9._@|:+-]{0,127}")


class Role(StrEnum):
    """What an actor may do. Roles do not include each other."""

    VIEWER = "viewer"
    STEWARD = "steward"
    PRODUCER = "producer"
    APPROVER = "approver"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


READERS = frozenset({Role.VIEWER, Role.STEWARD, Role.APPROVER, Role.OPERATOR, Role.ADMINISTRATOR})
"""Roles that see policies, verdicts and states of what they are over."""
SYSTEM_ROLES = frozenset({Role.VIEWER, Role.STEWARD, Role.PRODUCER})


def canonical_principal(text: str) -> ActorId:
    """Return the one id of a principal: NFKC, case folded, trimmed.

    Raises:
        InvalidArgumentError: when characters are left that could make two people look like one.
    """
    principal = unicodedata.normalize("NFKC", text).casefold().strip()
    if not _PRINCIPAL.fullmatch(principal):
        raise InvalidArgumentError(
            f"actor {text!r}: expected 1-128 of a-z 0-9 . _ @ | : + -, first a letter or digit"
        )
    return ActorId(principal)


def person(text: str) -> ActorId:
    """Return the canonical id of somebody who can own a key: not `system`, not `unattested`.

    Raises:
        InvalidArgumentError: for a reserved or malformed name.
    """
    principal = canonical_principal(text)
    if principal in _RESERVED:
        raise InvalidArgumentError(f"actor {principal!r} is reserved and owns no key")
    return principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A registered principal."""

    id: ActorId
    display_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One actor's authority in one role over one datasource, or over all (`datasource` None)."""

    id: str
    actor: ActorId
    role: Role
    datasource: str | None
    attestation_id: str | None
    granted_at: datetime

    def covers(self, role: Role, datasource: str | None) -> bool:
        """Tell whether this grant gives `role` on `datasource` (None: on everything)."""
        return self.role is role and self.datasource in (None, datasource)


def authority(grants: Iterable[Grant], actor: ActorId, role: Role, datasource: str | None) -> Grant:
    """Return the grant under which `actor` may act in `role`; the widest, then the oldest one.

    Raises:
        GuardError: code `not_authorised` when there is none.
    """
    fitting = [grant for grant in grants if grant.actor == actor and grant.covers(role, datasource)]
    if not fitting:
        where = f"datasource {datasource!r}" if datasource else "all datasources"
        raise GuardError(
            f"actor {actor!r} has no grant as {role} on {where}; "
            f"an administrator can give one: actor grant {actor} {role}",
            code="not_authorised",
            actor=actor,
            role=str(role),
        )
    return min(
        fitting, key=lambda grant: (grant.datasource is not None, grant.granted_at, grant.id)
    )


def may_read(grants: Iterable[Grant], actor: ActorId, datasource: str) -> bool:
    """Tell whether an actor has any role that sees a datasource's policies, verdicts and states."""
    return any(
        grant.actor == actor and grant.role in READERS and grant.covers(grant.role, datasource)
        for grant in grants
    )


def admit_grant(actor: ActorId, role: Role) -> None:
    """Refuse grants that would let `system` decide about data.

    Raises:
        GuardError: code `not_authorised`.
    """
    if actor == UNATTESTED or (actor == SYSTEM and role not in SYSTEM_ROLES):
        raise GuardError(
            f"actor {actor!r} can never be {role}: it stands for no person", code="not_authorised"
        )
