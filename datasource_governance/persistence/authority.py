"""Actors, keys, grants and attestations in Postgres.

Source: ports.authority, which says what each method promises; SPEC section 17.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, select

from datasource_governance.domain.actor import Actor, ActorId, Grant
from datasource_governance.domain.attestation import ActorKey, Attestation
from datasource_governance.domain.canonical import Sha256
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Rows

_KEYS = (
    select(tables.actor_key, tables.key_revocation.c.revoked_at)
    .outerjoin(
        tables.key_revocation,
        and_(
            tables.key_revocation.c.tenant == tables.actor_key.c.tenant,
            tables.key_revocation.c.key_id == tables.actor_key.c.id,
        ),
    )
    .where(tables.actor_key.c.tenant == bindparam("tenant"))
    .order_by(tables.actor_key.c.created_at, tables.actor_key.c.id)
)
_KEYS_OF = _KEYS.where(tables.actor_key.c.actor == bindparam("actor"))
_KEY = _KEYS.where(tables.actor_key.c.id == bindparam("id"))
_GRANTS = (
    select(tables.role_grant)
    .outerjoin(
        tables.grant_withdrawal,
        and_(
            tables.grant_withdrawal.c.tenant == tables.role_grant.c.tenant,
            tables.grant_withdrawal.c.grant_id == tables.role_grant.c.id,
        ),
    )
    .where(tables.role_grant.c.tenant == bindparam("tenant"))
    .where(tables.grant_withdrawal.c.grant_id.is_(None))
    .order_by(tables.role_grant.c.granted_at, tables.role_grant.c.id)
)
_GRANTS_OF = _GRANTS.where(tables.role_grant.c.actor == bindparam("actor"))


class PostgresAuthority:
    """See ports.authority.Authority."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def hold(self) -> None:
        self._rows.locks.hold_authority()

    def lock(self) -> None:
        self._rows.locks.change_authority()

    def actor(self, actor: ActorId) -> Actor | None:
        row = self._rows.find(tables.actor, id=actor)
        return mapping.actor(row) if row else None

    def actors(self) -> Sequence[Actor]:
        rows = self._rows.all(self._rows.of(tables.actor).order_by(tables.actor.c.id))
        return [mapping.actor(row) for row in rows]

    def add_actor(self, actor: Actor) -> None:
        self._rows.insert(tables.actor, mapping.flat_row(actor))

    def key(self, key: Sha256) -> ActorKey | None:
        row = self._rows.first(_KEY, {"tenant": self._rows.tenant, "id": key})
        return mapping.actor_key(row) if row else None

    def keys(self, actor: ActorId | None) -> Sequence[ActorKey]:
        asked = {"tenant": self._rows.tenant}
        if actor is None:
            rows = self._rows.all(_KEYS, asked)
        else:
            rows = self._rows.all(_KEYS_OF, asked | {"actor": actor})
        return [mapping.actor_key(row) for row in rows]

    def add_key(self, key: ActorKey) -> None:
        self._rows.insert(tables.actor_key, mapping.actor_key_row(key))

    def revoke_key(self, key: Sha256, attestation_id: str, now: datetime) -> None:
        row = {"key_id": key, "attestation_id": attestation_id, "revoked_at": now}
        self._rows.insert(tables.key_revocation, row)

    def grants(self, actor: ActorId | None = None) -> Sequence[Grant]:
        asked = {"tenant": self._rows.tenant}
        if actor is None:
            rows = self._rows.all(_GRANTS, asked)
        else:
            rows = self._rows.all(_GRANTS_OF, asked | {"actor": actor})
        return [mapping.grant(row) for row in rows]

    def add_grant(self, grant: Grant) -> None:
        self._rows.insert(tables.role_grant, mapping.flat_row(grant))

    def withdraw_grant(self, grant_id: str, attestation_id: str, now: datetime) -> None:
        row = {"grant_id": grant_id, "attestation_id": attestation_id, "withdrawn_at": now}
        self._rows.insert(tables.grant_withdrawal, row)

    def attestation(self, attestation_id: str) -> Attestation | None:
        row = self._rows.find(tables.attestation, id=attestation_id)
        return mapping.attestation(row) if row else None

    def attestations(self, ids: Collection[str]) -> Mapping[str, Attestation]:
        query = self._rows.of(tables.attestation).where(tables.attestation.c.id.in_(sorted(ids)))
        return {row["id"]: mapping.attestation(row) for row in self._rows.all(query)}

    def attested_with(self, key: Sha256) -> Sequence[tuple[datetime, Attestation]]:
        table = tables.attestation
        query = self._rows.of(table, key_id=key).order_by(table.c.stored_at.desc(), table.c.id)
        return [(row["stored_at"], mapping.attestation(row)) for row in self._rows.all(query)]

    def add_attestation(self, attestation: Attestation, now: datetime) -> None:
        row = mapping.attestation_row(attestation) | {"stored_at": now}
        self._rows.insert(tables.attestation, row)

    def launch_attestation(self, run_id: str) -> Attestation | None:
        row = self._rows.find(tables.run_attestation, run_id=run_id)
        return self.attestation(row["attestation_id"]) if row else None

    def add_launch_attestation(self, run_id: str, attestation_id: str) -> None:
        row = {"run_id": run_id, "attestation_id": attestation_id}
        self._rows.insert(tables.run_attestation, row)
