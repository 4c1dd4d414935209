"""Hold every row that claims an actor against what that actor signed.

The chains show that nothing was changed since it was written; this shows that it was written by
whom it says. Whoever rewrites a whole chain cannot sign, because private keys are not in the
database. Only the tenant's founding, the first administrator's key and grant, rests on no
signature.

Source: SPEC sections 7, 13 and 17.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Table

from datasource_governance.domain.actor import SYSTEM, UNATTESTED
from datasource_governance.domain.approval import Verdict
from datasource_governance.domain.attestation import (
    Action,
    Claims,
    KeyKind,
    key_id,
    read_claims,
    verify,
)
from datasource_governance.domain.canonical import Json, Sha256, load_canonical
from datasource_governance.domain.evidence import TENANT_CHAIN, Break, BreakKind
from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.launch import RunLaunch
from datasource_governance.domain.policy_version import PolicySource
from datasource_governance.domain.producer_evidence import evidence_hash
from datasource_governance.domain.publication import request_hash
from datasource_governance.domain.subjects import (
    apply_retention_subject,
    delivery_subject,
    freeze_subject,
    hold_subject,
    publication_subject,
    refresh_subject,
    release_subject,
    stated_launch,
    states_decision,
)
from datasource_governance.errors import GuardError
from datasource_governance.persistence import mapping, tables
from datasource_governance.persistence.rows import Row, Rows, row_key


@dataclass(frozen=True, slots=True)
class _Signed:
    """What was signed, and the launch of a run that it is if a gateway's key made it."""

    claims: Claims
    launch: RunLaunch | None


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
    signed = {name: one for name, row in kept.items() if (one := _signed(row, keys)) is not None}
    publishers = _publishers(rows)
    return [
        *forged,
        *_unsigned_rows(rows, signed, publishers),
        *_unsigned_promotions(rows, signed, publishers),
    ]


def _unsigned_rows(
    rows: Rows, signed: Mapping[str, _Signed], publishers: Mapping[str, str]
) -> Iterator[Break]:
    checks: list[tuple[Table, Callable[[Row, _Signed], bool]]] = [
        (tables.decision, _signed_decision),
        (tables.stage, _signed_stage),
        (tables.publication, _signed_publication),
        (tables.role_grant, _signed_grant),
        (tables.actor_key, _signed_key),
        (tables.run_attestation, _signed_run),
        (tables.retention_application, _signed_application),
        (tables.legal_hold, _signed_hold),
        (tables.hold_release, _signed_release),
        (tables.frozen_evidence, _signed_freeze),
    ]
    founding = _founding(rows)
    for table, is_signed in checks:
        for row in rows.all(rows.of(table)):
            if row["attestation_id"] is None:
                accounted = row["id"] in founding or _needs_no_signature(row, publishers)
            else:
                one = signed.get(row["attestation_id"])
                accounted = one is not None and is_signed(row, one)
            if not accounted:
                yield _unsigned(table, row)


def _publishers(rows: Rows) -> Mapping[str, str]:
    """Return who is proved to be behind publications, by these."""
    table = tables.publication
    query = rows.of(table).with_only_columns(table.c.id, table.c.actor, table.c.attestation_id)
    return {
        row["id"]: UNATTESTED if row["attestation_id"] is None else row["actor"]
        for row in rows.all(query)
    }


def _needs_no_signature(row: Row, publishers: Mapping[str, str]) -> bool:
    """Whether a row claims nobody, `system`, or whom a publication of its own accounts for."""
    if row.get("publication") is not None:
        return bool(row["creator"] == publishers.get(row["publication"]))
    is_publication = "idempotency_key" in row
    return row.get("creator") == UNATTESTED or (is_publication and row["actor"] == SYSTEM)


def _unsigned_promotions(
    rows: Rows, signed: Mapping[str, _Signed], publishers: Mapping[str, str]
) -> Iterator[Break]:
    """Yield what was promoted in somebody's name who signed nothing of the kind.

    `system` needs no signature: what it may promote rests on the decisions.
    """
    table, about_stage = tables.materialization, defaultdict[str, list[_Signed]](list)
    for one in signed.values():
        if one.launch is None:
            about_stage[str(one.claims.subject.get("stage"))].append(one)
    for row in rows.all(rows.of(table).where(table.c.created_by != SYSTEM)):
        if row["publication"] is not None:
            if row["created_by"] != publishers.get(row["publication"]):
                yield _unsigned(table, row)
            continue
        named = _object(row["provenance"]).get("promotion_attestation")
        # Before runs were attested, provenance named none, and only signing the stage promoted it.
        found = about_stage[row["stage"]] if named is None else [signed.get(str(named))]
        if not any(one is not None and _signed_promotion(row, one) for one in found):
            yield _unsigned(table, row)


def _founding(rows: Rows) -> frozenset[str]:
    """Return the ids of the key and the grant with which the tenant began."""
    first = rows.first(rows.of(tables.evidence, chain=TENANT_CHAIN, sequence=1))
    facts = _object(first["body"]).get("facts") if first else None
    if not isinstance(facts, dict):
        return frozenset()
    return frozenset(str(facts.get(name)) for name in ("key", "grant"))


def _object(document: bytes) -> Mapping[str, Json]:
    """Return a kept JSON object; a spoiled one is empty."""
    try:
        found = load_canonical(document)
    except (ValueError, ArithmeticError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _signed_decision(row: Row, signed: _Signed) -> bool:
    if row["verdict"] not in set(Verdict):
        return False
    return states_decision(signed.claims, mapping.decision(row))


def _signed_stage(row: Row, signed: _Signed) -> bool:
    if signed.claims.actor != row["creator"]:
        return False
    if signed.launch is not None:
        return signed.launch.stages(row["datasource"])
    if row["origin"] is not None:
        origin = refresh_subject(row["datasource"], row["origin"])
        return _says(signed.claims, Action.STAGE_REFRESH, origin)
    subject = delivery_subject(row["datasource"], row["delivery_sha256"])
    return _says(signed.claims, Action.STAGE_CREATE, subject)


def _signed_publication(row: Row, signed: _Signed) -> bool:
    if signed.claims.actor != row["actor"]:
        return False
    if signed.launch is not None:
        launch = signed.launch
        return bool(launch.publishes(row["datasource"]) and launch.run_id == row["run_id"])
    claimed = signed.claims.subject
    checksum = Sha256(str(claimed.get("payload")))
    # Evidence that was signed and not asked for was not kept.
    evidence = (
        claimed.get("evidence") if row["evidence"] is None else evidence_hash(row["evidence"])
    )
    partition = row["partition"] or ""
    is_supplied = row["policy_source"] == PolicySource.SUPPLIED
    subject = publication_subject(
        datasource=row["datasource"],
        partition=partition,
        producer=row["producer"],
        idempotency_key=row["idempotency_key"],
        checksum=checksum,
        supplied_policy=row["quality_policy_hash"] if is_supplied else None,
        evidence=None if evidence is None else Sha256(str(evidence)),
    )
    is_same = row["request_hash"] == request_hash(row["datasource"], partition, checksum)
    return is_same and _says(signed.claims, Action.PUBLICATION_CREATE, subject)


def _signed_promotion(row: Row, signed: _Signed) -> bool:
    if signed.claims.actor != row["created_by"]:
        return False
    if signed.launch is not None:
        return signed.launch.promotes(row["datasource"])
    about = signed.claims.subject.get("stage") == row["stage"]
    return about and signed.claims.action is Action.STAGE_PROMOTE


def _signed_run(row: Row, signed: _Signed) -> bool:
    return signed.launch is not None and bool(signed.launch.run_id == row["run_id"])


def _signed_application(row: Row, signed: _Signed) -> bool:
    if signed.claims.actor != row["actor"]:
        return False
    if signed.launch is not None:
        return signed.launch.applies_retention() and bool(signed.launch.run_id == row["run_id"])
    said = (
        {**apply_retention_subject(row["plan"], None), "targets": targets}
        for targets in (None, row["targets"])
    )
    return any(_says(signed.claims, Action.RETENTION_APPLY, subject) for subject in said)


def _signed_hold(row: Row, signed: _Signed) -> bool:
    if row["scope"] not in set(HoldScope):
        return False
    scope = HoldScope(row["scope"])
    subject = hold_subject(row["datasource"], scope, row["subject"], row["reason"])
    return signed.claims.actor == row["actor"] and _says(signed.claims, Action.HOLD_PLACE, subject)


def _signed_release(row: Row, signed: _Signed) -> bool:
    subject = release_subject(row["hold"], row["reason"])
    is_own = signed.claims.actor == row["actor"]
    return is_own and _says(signed.claims, Action.HOLD_RELEASE, subject)


def _signed_freeze(row: Row, signed: _Signed) -> bool:
    subject = freeze_subject(row["datasource"], row["materialization"], row["reason"])
    is_own = signed.claims.actor == row["actor"]
    return is_own and _says(signed.claims, Action.MATERIALIZATION_FREEZE, subject)


def _signed_grant(row: Row, signed: _Signed) -> bool:
    subject = {name: row[name] for name in ("actor", "role", "datasource")}
    return _says(signed.claims, Action.ACTOR_GRANT, subject)


def _signed_key(row: Row, signed: _Signed) -> bool:
    claims = signed.claims
    said = {name: claims.subject.get(name) for name in ("actor", "kind", "registered_key")}
    meant = {"actor": row["actor"], "kind": row["kind"], "registered_key": row["id"]}
    return claims.action is Action.KEY_REGISTER and said == meant


def _says(claims: Claims, action: Action, subject: Mapping[str, Json]) -> bool:
    return claims.action is action and dict(claims.subject) == dict(subject)


def _signed(row: Row, keys: Mapping[str, Row]) -> _Signed | None:
    try:
        claims = read_claims(row["claims"])
    except GuardError:
        return None
    key = keys.get(claims.key)
    is_gateways = key is not None and key["kind"] == KeyKind.GATEWAY
    return _Signed(claims, stated_launch(claims) if is_gateways else None)


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


def _unsigned(table: Table, row: Row) -> Break:
    return _broken(BreakKind.UNSIGNED_ROW, table, row, "nobody signed what it says")


def _broken(kind: BreakKind, table: Table, row: Row, message: str) -> Break:
    return Break(kind=kind, table=table.name, key=row_key(table, row), message=message)
