"""The declaration of one datasource: what it is, how its deliveries are read, what governs it.

A declaration is a strict JSON document beside the code. It decides nothing by itself: loading reads
it, and applying it records its policies as versions.

Source: SPEC sections 1, 6, 15 and 17.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from datasource_governance.domain.approval_policy import ApprovalPolicy, parse_approval_policy
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.contract import Contract
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import ORIGIN, Origin
from datasource_governance.domain.policy_keys import (
    FIELD_NAME,
    Different,
    ExactlyOne,
    Key,
    Record,
    read_document,
)
from datasource_governance.domain.policy_values import (
    Choice,
    Flag,
    ListOf,
    MapOf,
    Place,
    Text,
)
from datasource_governance.domain.quality_policy import QualityPolicy, parse_quality_policy
from datasource_governance.domain.retention_policy import RetentionPolicy, parse_retention_policy
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError, Problem

T = TypeVar("T")

MAXIMUM_KINDS = 10


class DatasourceKind(StrEnum):
    """How deliveries come: staged by hand, re-read from an origin, published by a producer."""

    STATIC = "static"
    CACHED = "cached"
    PUBLISHED = "published"


class Promote(StrEnum):
    """Who promotes a stage that needs no approval and no review: an operator, or nobody."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"


class ArtifactEvaluation(StrEnum):
    """Who evaluates the rules about rows of an artifact: this package, or whoever made it."""

    HERE = "here"
    EVIDENCE = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Datasource:
    """One declared datasource.

    `folder` is where deliveries are put, relative to the state directory; None: nothing is
    delivered as files. `origin` is what a refresh reads again. A policy that is None is not
    declared. With `allow_supplied_policy` an output may bring the quality policy it is validated
    by. `contracts` are what consumers are promised.
    """

    id: str
    kind: DatasourceKind
    description: str | None
    owners: tuple[str, ...]
    kinds: tuple[str, ...]
    tags: Mapping[str, str]
    folder: str | None
    origin: Origin | None
    csv: CsvOptions
    promote: Promote
    quality_policy: QualityPolicy | None
    approval_policy: ApprovalPolicy | None
    retention_policy: RetentionPolicy | None
    allow_supplied_policy: bool
    artifact_evaluation: ArtifactEvaluation = ArtifactEvaluation.EVIDENCE
    contracts: tuple[Contract, ...] = ()


def parse_datasource(
    document: str | bytes | Mapping[str, object],
    files: Callable[[str], bytes],
    read_contract: Callable[[bytes], Contract] | None = None,
) -> Datasource:
    """Read a declaration, with the policy and contract files that it names.

    Args:
        document: JSON text, bytes or an already strictly parsed object.
        files: returns the bytes of a file beside the declaration, or raises OSError; called with a
            plain name that ends in `.json`, or for a contract in `.yaml`.
        read_contract: reads a contract; without it a declaration may name none.

    Raises:
        InvalidPolicyError: with every problem at once, those of the policies included; the message
            of a problem in a policy file starts with the file's name and the pointer into it.
    """
    declaration = _declaration(files, read_contract or _no_contract)
    return read_document(declaration, document, what="datasource declaration")


def _no_contract(_content: bytes) -> Contract:
    message = "contracts are read from files only; use declarations.read_declaration"
    raise InvalidPolicyError("contract", [Problem(kind="unsupported", message=message)])


_FILE_NAME = Text(
    expected="a policy, or the name of a .json file beside the declaration",
    pattern=r"[^/\\]+\.json",
)


_CONTRACT_NAME = Text(
    expected="the name of a .yaml file beside the declaration", pattern=r"[^/\\]+\.ya?ml"
)


@dataclass(frozen=True, slots=True)
class _FromFile(Generic[T]):
    """What a file beside the declaration says, by its name."""

    name: Text
    parse: Callable[[bytes], T]
    files: Callable[[str], bytes]

    @property
    def expected(self) -> str:
        """What names it."""
        return self.name.expected

    def read(self, value: Json, place: Place) -> T | None:
        name = self.name.read(value, place)
        if name is None:
            return None
        try:
            return self.parse(self.files(name))
        except InvalidPolicyError as error:
            for one in error.problems:
                place.report(one.kind, f"{name}{one.pointer}: {one.message}", *one.names)
        except OSError:
            place.report("invalid_value", f"{name} cannot be read beside the declaration", name)
        return None


@dataclass(frozen=True, slots=True)
class _Policy(Generic[T]):
    """A policy, written out or as the name of a file beside the declaration."""

    parse: Callable[[bytes | Mapping[str, object]], T]
    files: Callable[[str], bytes]
    expected: str = _FILE_NAME.expected

    def read(self, value: Json, place: Place) -> T | None:
        if isinstance(value, dict):
            return self._inline(value, place)
        return _FromFile(_FILE_NAME, self.parse, self.files).read(value, place)

    def _inline(self, value: dict[str, Json], place: Place) -> T | None:
        try:
            return self.parse(value)
        except InvalidPolicyError as error:
            place.adopt(error.problems)
        return None


_ID = Text(
    expected="a lower-case letter, then at most 62 lower-case letters, digits or underscores",
    pattern=r"[a-z][a-z0-9_]{0,62}",
)
_DESCRIPTION = Text(expected="a text that is not blank", allows_control_characters=True)
# What Dagster accepts: a legal declaration never stops a code location from loading.
_OWNER = Text(
    expected="an e-mail address, or team: and a name",
    pattern=r"team:.+|[A-Za-z0-9_][A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}",
)
_TAG_PART = r"[A-Za-z0-9_.-]{1,63}"
_KIND = Text(
    expected="1 to 63 letters, digits, underscores, points or hyphens",
    pattern=_TAG_PART,
)
_TAG_KEY = Text(
    expected="a tag key: 1 to 63 letters, digits or _.- and before them a namespace with a slash",
    pattern=rf"({_TAG_PART}/)?{_TAG_PART}",
)
_TAG_VALUE = Text(
    expected="a tag value: at most 63 letters, digits or _.-", pattern=r"[A-Za-z0-9_.-]{0,63}"
)
_FOLDER = Text(
    expected="a folder below the state directory, with slashes and without ..",
    pattern=r"(?!\.\.(/|$))[^/\\]+(/(?!\.\.(/|$))[^/\\]+)*/?",
)

_SOURCE = Record(
    keys=(Key("folder", _FOLDER), Key("origin", ORIGIN)),
    build=dict[str, object],
    constraints=(ExactlyOne(("folder", "origin")),),
)
_NO_SOURCE: Mapping[str, object] = MappingProxyType({"folder": None, "origin": None})


@dataclass(frozen=True, slots=True)
class _Csv:
    """The object of CSV options; the options themselves say what may be wrong with them."""

    expected: str = "an object of CSV options"

    def read(self, value: Json, place: Place) -> CsvOptions | None:
        given = _CSV_KEYS.read(value, place)
        if given is None:
            return None
        try:
            return CsvOptions(**given)
        except InvalidArgumentError as error:
            problems = error.facts["problems"]
        place.adopt(problems if isinstance(problems, tuple) else ())
        return None


_CSV_TEXT = Text(expected="a text", pattern=r"(?s:.*)", allows_control_characters=True)
_CSV_KEYS = Record(
    keys=(
        Key("delimiter", _CSV_TEXT, default=","),
        Key("decimal", _CSV_TEXT, default="."),
        Key("encoding", _CSV_TEXT, default="utf-8"),
        Key(
            "schema",
            MapOf(key=FIELD_NAME, item=Choice(DataType), expected="an object of field and type"),
            default=MappingProxyType({}),
        ),
    ),
    build=lambda schema, **options: {**options, "types": schema},
    constraints=(Different("delimiter", "decimal"),),
)


@dataclass(frozen=True, slots=True)
class _PublishedOrDelivered:
    """What is published is never delivered, and becomes current when it passes or is approved."""

    def check(self, given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        if values["kind"] is not DatasourceKind.PUBLISHED:
            return
        unfit = {"source": "source" in given, "promote": values["promote"] is Promote.AUTOMATIC}
        for name in (name for name, is_given in unfit.items() if is_given):
            message = (
                f"{name} is about deliveries, which kind {DatasourceKind.PUBLISHED} has none of"
            )
            place.report("conflicting_keys", message, "kind", name)


@dataclass(frozen=True, slots=True)
class _OriginIsCached:
    """Only what is cached is re-read from an origin."""

    def check(self, _given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        source, kind = values["source"], values["kind"]
        has_origin = isinstance(source, Mapping) and source["origin"] is not None
        if has_origin and kind is DatasourceKind.STATIC:
            message = f"an origin is re-read by a refresh: it is for kind {DatasourceKind.CACHED}"
            place.at("source").report("conflicting_keys", message, "kind", "origin")


_UNGOVERNED = {
    "quality_policy": None,
    "approval_policy": None,
    "retention_policy": None,
    "allow_supplied_policy": False,
    "artifact_evaluation": ArtifactEvaluation.EVIDENCE,
    "contracts": (),
}


@dataclass(frozen=True, slots=True)
class _DistinctContracts:
    """A contract is declared once."""

    def check(self, _given: Collection[str], values: Mapping[str, object], place: Place) -> None:
        contracts = values["contracts"]
        ids = [one.id for one in contracts] if isinstance(contracts, tuple) else []
        for repeated in sorted({one for one in ids if ids.count(one) > 1}):
            message = f"contract {repeated!r} is declared twice"
            place.at("contracts").report("invalid_value", message, repeated)


def _declaration(
    files: Callable[[str], bytes], read_contract: Callable[[bytes], Contract]
) -> Record[Datasource]:
    governance = Record(
        keys=(
            Key("quality_policy", _Policy(parse_quality_policy, files)),
            Key("approval_policy", _Policy(parse_approval_policy, files)),
            Key("retention_policy", _Policy(parse_retention_policy, files)),
            Key("allow_supplied_policy", Flag(), default=False),
            Key(
                "artifact_evaluation",
                Choice(ArtifactEvaluation),
                default=ArtifactEvaluation.EVIDENCE,
            ),
            Key(
                "contracts",
                ListOf(
                    item=_FromFile(_CONTRACT_NAME, read_contract, files),
                    expected="a list of contract files",
                    repeated="invalid_value",
                ),
                default=(),
            ),
        ),
        build=dict[str, object],
        constraints=(_DistinctContracts(),),
    )
    return Record(
        keys=(
            Key("id", _ID, required=True),
            Key("kind", Choice(DatasourceKind), required=True),
            Key("description", _DESCRIPTION),
            Key(
                "owners",
                ListOf(item=_OWNER, expected="a list of owners", repeated="invalid_value"),
                default=(),
            ),
            Key(
                "kinds",
                ListOf(
                    item=_KIND,
                    expected=f"a list of at most {MAXIMUM_KINDS} kinds",
                    maximum=MAXIMUM_KINDS,
                    repeated="invalid_value",
                ),
                default=(),
            ),
            Key(
                "tags",
                MapOf(key=_TAG_KEY, item=_TAG_VALUE, expected="an object of texts"),
                default=MappingProxyType({}),
            ),
            Key("source", _SOURCE, default=_NO_SOURCE),
            Key("csv", _Csv(), default=CsvOptions()),
            Key("promote", Choice(Promote), default=Promote.MANUAL),
            Key("governance", governance, default=_UNGOVERNED),
        ),
        build=lambda source, governance, **values: Datasource(**source, **governance, **values),
        constraints=(_PublishedOrDelivered(), _OriginIsCached()),
        named_by="id",
    )
