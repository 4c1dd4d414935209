"""Hold every row that claims an actor against what that actor signed.

The chains show that nothing was changed since it was written; this shows that it was written by
whom it says. Whoever rewrites a whole chain cannot sign, because private keys are not in the
database. Only the tenant's founding, the first administrator's key and grant, rests on no
signature.

Source: SPEC sections 7, 13 and 17.
"""

from collections.abc import Callable, Iterator, Mapping

from sqlalchemy import Table

from datasource_governance.domain.actor import UNATTESTED
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.attestation import Action, Claims, key_id, read_claims, verify
from datasource_governance.domain.canonical import Json, load_canonical
from datasource_governance.domain.evidence import TENANT_CHAIN, Break, BreakKind
from datasource_governance.domain.subjects import delivery_subject, states_decision
from datasource_governance.errors import GuardError
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Row, Rows, row_key


def find_unsigned(rows: Rows) -> list[Break]:
    """Return the attestations that no key may have made, and the rows that nobody signed."""
    kept = {row["id"]: row for row in rows.all(rows.of(tables.attestation))}
    keys = {row["id"]: row for row in rows.all(rows.of(tables.actor_key))}
    forged = [
        _broken(
            BreakKind.FORGED_ATTESTATION, tables.attestation, row, "no key of its actor signed it"
        )
        for row in kept.values()
        if not _is_genuine(row, keys.get(row["key_id"]))
    ]
    claims = {name: found for name, row in kept.items() if (found := _claims(row)) is not None}
    return [*forged, *_unsigned_rows(rows, claims)]


def _unsigned_rows(rows: Rows, claims: Mapping[str, Claims]) -> Iterator[Break]:
    checks: list[tuple[Table, Callable[[Row, Claims], bool]]] = [
        (tables.decision, _signed_decision),
        (tables.stage, _signed_stage),
        (tables.role_grant, _signed_grant),
        (tables.actor_key, _signed_key),
    ]
    founding = _founding(rows)
    for table, is_signed in checks:
        for row in rows.all(rows.of(table)):
            if row["attestation_id"] is None:
                accounted = row["id"] in founding or row.get("creator") == UNATTESTED
            else:
                claim = claims.get(row["attestation_id"])
                accounted = claim is not None and is_signed(row, claim)
            if not accounted:
                yield _broken(BreakKind.UNSIGNED_ROW, table, row, "nobody signed what it says")


def _founding(rows: Rows) -> frozenset[str]:
    """Return the ids of the key and the grant with which the tenant began."""
    first = rows.first(rows.of(tables.evidence, chain=TENANT_CHAIN, sequence=1))
    try:
        body = load_canonical(first["body"]) if first else None
    except (ValueError, ArithmeticError, RecursionError):
        body = None
    facts = body.get("facts") if isinstance(body, dict) else None
    if not isinstance(facts, dict):
        return frozenset()
    return frozenset(str(facts.get(name)) for name in ("key", "grant"))


def _signed_decision(row: Row, claims: Claims) -> bool:
    if row["verdict"] not in set(Verdict):
        return False
    return states_decision(claims, mapping.decision(row))


def _signed_stage(row: Row, claims: Claims) -> bool:
    subject = delivery_subject(row["datasource"], row["delivery_sha256"])
    return claims.actor == row["creator"] and _says(claims, Action.STAGE_CREATE, subject)


def _signed_grant(row: Row, claims: Claims) -> bool:
    subject = {name: row[name] for name in ("actor", "role", "datasource")}
    return _says(claims, Action.ACTOR_GRANT, subject)


def _signed_key(row: Row, claims: Claims) -> bool:
    said = {name: claims.subject.get(name) for name in ("actor", "kind", "registered_key")}
    meant = {"actor": row["actor"], "kind": row["kind"], "registered_key": row["id"]}
    return claims.action is Action.KEY_REGISTER and said == meant


def _says(claims: Claims, action: Action, subject: Mapping[str, Json]) -> bool:
    return claims.action is action and dict(claims.subject) == dict(subject)


def _claims(row: Row) -> Claims | None:
    try:
        return read_claims(row["claims"])
    except GuardError:
        return None


def _is_genuine(row: Row, key_row: Row | None) -> bool:
    """Whether a key that may speak for the actor signed, and the row says what was signed."""
    try:
        attestation = mapping.attestation(row)
        key = mapping.actor_key(key_row) if key_row and _is_named_after_itself(key_row) else None
        verify(
            attestation,
            key,
            tenant=row["tenant"],
            action=attestation.claims.action,
            subject=attestation.claims.subject,
        )
    except (GuardError, ValueError):
        return False
    signed = mapping.attestation_row(attestation)
    return all(row[name] == value for name, value in signed.items())


def _is_named_after_itself(key_row: Row) -> bool:
    """Whether no other public key was put in the place of the one that was registered."""
    return bool(key_id(key_row["public_key"]) == key_row["id"])


def _broken(kind: BreakKind, table: Table, row: Row, message: str) -> Break:
    return Break(kind=kind, table=table.name, key=row_key(table, row), message=message)
