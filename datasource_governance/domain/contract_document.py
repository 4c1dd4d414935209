"""Read a contract from a document of the Open Data Contract Standard.

The standard's documents are open: keys that are not used here are kept and not looked at. What is
used is read strictly, and a promise that cannot be checked is a problem, unless the contract says
that it knows.

Source: SPEC section 14; Open Data Contract Standard 3.1.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from datasource_governance.domain.canonical import Json, canonical_bytes, digest
from datasource_governance.domain.contract import (
    DEFAULT_RHYTHMS,
    CheckKind,
    Contract,
    ContractEnforcement,
    ContractStatus,
    ContractTable,
    Rhythm,
)
from datasource_governance.domain.contract_fields import TABLE, Described
from datasource_governance.domain.contract_levels import (
    LevelEntry,
    check_levels,
    day_of,
    service_levels,
)
from datasource_governance.domain.contract_quality import promised_rules
from datasource_governance.domain.policy_keys import (
    MAXIMUM_ID_CHARACTERS,
    Key,
    Record,
    read_document,
)
from datasource_governance.domain.policy_values import Choice, ListOf, Place, Text, Whole
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.schema import Field, TableSchema
from datasource_governance.errors import InvalidPolicyError, Problem

HASH_DOMAIN: Final = "datasource_governance/contract/v1"
VERSION_PATTERN: Final = r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
_MINUTES_A_WEEK = 10_080
_SECONDS_AN_HOUR = 3_600


def parse_contract(document: Mapping[str, object]) -> Contract:
    """Read a contract from a strictly parsed ODCS document, whose hash covers all of it.

    Raises:
        InvalidPolicyError: with every problem at once, each with its JSON pointer; of kind
            `unsupported` for each promise that cannot be checked, unless the custom property
            `unchecked` is `accept`.
    """
    read: Mapping[str, Any] = read_document(_CONTRACT, document, what="contract")
    custom, described = dict(read["customProperties"]), read["schema"][0]
    rules, refused = promised_rules(described.properties, described.quality)
    if refused and custom.get("unchecked") != "accept":
        raise InvalidPolicyError("contract", refused)
    place = Place(problems=[], unreadable=frozenset())
    _check_life(read, place)
    if place.problems:
        raise InvalidPolicyError("contract", place.problems)
    content = canonical_bytes(document)
    return Contract(
        id=read["id"],
        version=read["version"],
        status=read["status"],
        name=read["name"],
        description=_purpose(read["description"]),
        owners=_owners(read["team"]),
        schema=_schema(described),
        quality_policy=_policy(read["version"], rules),
        service_levels=service_levels(read["slaProperties"]),
        rhythms=_rhythms(custom.get("monitor", {})),
        enforcement=custom.get("enforcement", ContractEnforcement.ALERT_ONLY),
        table=custom.get("table"),
        end_of_support=day_of(read["slaProperties"], "endOfSupport"),
        end_of_life=day_of(read["slaProperties"], "endOfLife"),
        canonical=content,
        hash=digest(HASH_DOMAIN, content),
    )


def unchecked_promises(document: Mapping[str, object]) -> list[Problem]:
    """Return what a contract promises and nothing checks, as it says that it knows.

    Raises:
        InvalidPolicyError: it cannot be read.
    """
    read: Mapping[str, Any] = read_document(_CONTRACT, document, what="contract")
    described = read["schema"][0]
    return promised_rules(described.properties, described.quality)[1]


_TEXT = Text(expected="a text that is not blank", allows_control_characters=True)
_VERSIONS = r"v3\.(0\.[012]|1\.0|2\.0)"
_ENVIRONMENT = Text(
    expected="the name of an environment variable, A-Z 0-9 _", pattern=r"[A-Z][A-Z0-9_]{0,127}"
)
_ENFORCEMENT = Choice(ContractEnforcement)
_ACCEPT = Text(expected="accept", pattern="accept")
_RHYTHM = Record(
    keys=(
        Key("interval_minutes", Whole(minimum=1, maximum=_MINUTES_A_WEEK)),
        Key("timeout_seconds", Whole(minimum=1, maximum=_SECONDS_AN_HOUR)),
    ),
    build=dict[str, int | None],
)
_MONITOR = Record(
    keys=tuple(Key(kind, _RHYTHM) for kind in CheckKind),
    build=lambda **given: {name: one for name, one in given.items() if one is not None},
)
_CONTRACT_TABLE = Record(
    keys=(
        Key("url_variable", _ENVIRONMENT, required=True),
        Key("table", _TEXT, required=True),
        Key("schema", _TEXT),
    ),
    build=ContractTable,
)
_OURS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "enforcement": _ENFORCEMENT,
        "monitor": _MONITOR,
        "table": _CONTRACT_TABLE,
        "unchecked": _ACCEPT,
    }
)


class _CustomProperty:
    """One entry of `customProperties`; one of somebody else is kept and not looked at."""

    expected = "an object with property and value"

    def read(self, value: Json, place: Place) -> tuple[str, object] | None:
        if not isinstance(value, dict) or not isinstance(value.get("property"), str):
            return place.refuse(self, value)
        name = str(value["property"])
        if name not in _OURS:
            return None
        found = place.at("value").read(_OURS[name], value.get("value"))
        return None if found is None else (name, found)


class _Anything:
    """A value of the standard that is looked at leniently."""

    expected = "anything"

    def read(self, value: Json, place: Place) -> Json:
        del place
        return value


_CONTRACT = Record(
    keys=(
        Key("apiVersion", Text(expected="v3.0.0 to v3.2.0", pattern=_VERSIONS), required=True),
        Key("kind", Text(expected="DataContract", pattern="DataContract"), required=True),
        Key(
            "id",
            Text(
                expected=f"a printable text of 1 to {MAXIMUM_ID_CHARACTERS} characters",
                maximum=MAXIMUM_ID_CHARACTERS,
            ),
            required=True,
        ),
        Key(
            "version",
            Text(expected="a semantic version, 1.0.0", pattern=VERSION_PATTERN),
            required=True,
        ),
        Key("status", Choice(ContractStatus), required=True),
        Key("name", _TEXT),
        Key("description", _Anything()),
        Key("team", _Anything()),
        Key(
            "schema",
            ListOf(
                item=TABLE,
                expected="a list of one table: one contract, one table",
                minimum=1,
                maximum=1,
            ),
            required=True,
        ),
        Key(
            "slaProperties",
            ListOf(item=LevelEntry(), expected="a list of service levels"),
            default=(),
        ),
        Key(
            "customProperties",
            ListOf(
                item=_CustomProperty(),
                expected="a list of properties",
                repeated="conflicting_keys",
                distinct_by="property",
            ),
            default=(),
        ),
    ),
    build=dict[str, Any],
    is_open=True,
)


def _check_life(read: Mapping[str, Any], place: Place) -> None:
    levels = read["slaProperties"]
    check_levels(levels, place.at("slaProperties"))
    ends = day_of(levels, "endOfSupport") or day_of(levels, "endOfLife")
    if read["status"] is ContractStatus.DEPRECATED and ends is None:
        place.at("slaProperties").report(
            "missing_key",
            "a deprecated contract says when it ends: endOfSupport or endOfLife is required",
            "endOfSupport",
            "endOfLife",
        )


def _rhythms(given: Mapping[str, Mapping[str, int | None]]) -> Mapping[CheckKind, Rhythm]:
    """Return the default rhythms with what is given of each, key by key."""
    merged = dict(DEFAULT_RHYTHMS)
    for name, one in given.items():
        before = merged[CheckKind(name)]
        minutes, seconds = one["interval_minutes"], one["timeout_seconds"]
        merged[CheckKind(name)] = Rhythm(
            interval=before.interval if minutes is None else timedelta(minutes=minutes),
            timeout_seconds=before.timeout_seconds if seconds is None else seconds,
        )
    return MappingProxyType(merged)


def _policy(version: str, rules: list[dict[str, Json]]) -> QualityPolicy | None:
    return parse_quality_policy({"version": version, "rules": rules}) if rules else None


def _schema(described: Described) -> TableSchema:
    return TableSchema.of(
        Field(name=one.name, type=one.type, nullable=not (one.required or one.primary_key))
        for one in described.properties
    )


def _purpose(description: Json) -> str | None:
    purpose = description.get("purpose") if isinstance(description, dict) else None
    return purpose if isinstance(purpose, str) else None


def _owners(team: Json) -> tuple[str, ...]:
    """Return the user names of the team's owners, or of all if no role says who owns."""
    listed = team.get("members") if isinstance(team, dict) else team
    members = [one for one in _objects(listed) if isinstance(one.get("username"), str)]
    owners = [one for one in members if "owner" in str(one.get("role", "")).lower()]
    return tuple(str(one["username"]) for one in owners or members)


def _objects(value: Json) -> Iterable[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
