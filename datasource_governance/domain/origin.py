"""Where a cached datasource is re-read from, as its declaration says.

No secret is in a declaration: the address of a database is in an environment variable that it
names, and other addresses hold no password.

Source: SPEC sections 6 and 11.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum

from datasource_governance.domain.canonical import Sha256, document_digest
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.policy_keys import FIELD_NAME, ExactlyOne, Key, Record
from datasource_governance.domain.policy_values import Choice, ListOf, Text

MAXIMUM_VERSION_CHARACTERS = 1000


class FileFormat(StrEnum):
    """What is at an address whose name does not say so by its suffix."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlOrigin:
    """A query of the database whose SQLAlchemy URL is in the variable `url_variable`.

    `order_by` names columns that tell any two rows apart; without it rows have no numbers.
    """

    url_variable: str
    query: str = field(repr=False)
    order_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOrigin:
    """A file at an address that fsspec reads; `format` None: its suffix says what it is."""

    url: str
    format: FileFormat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonOrigin:
    """A function of one argument, by module, colon and name."""

    function: str


Origin = SqlOrigin | AddressOrigin | PythonOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginVersion:
    """What was read: of which origin, by the hash of its definition, and in which version.

    `token` is what the origin itself calls its version: 1 to 1000 printable characters, which are
    kept and handed back to it, and never shown. None: it does not say.
    """

    origin: Sha256
    token: str | None


def origin_hash(origin: Origin, csv: CsvOptions) -> Sha256:
    """Return the hash of an origin's definition: what is read from where, and how."""
    named = {SqlOrigin: "sql", AddressOrigin: "address", PythonOrigin: "python"}
    signs = {"delimiter": csv.delimiter, "decimal": csv.decimal, "encoding": csv.encoding}
    document = {
        named[type(origin)]: asdict(origin),
        "csv": {**signs, "types": dict(csv.types)},
    }
    return document_digest("datasource_governance/origin/v1", document)


def usable_token(token: str | None) -> str | None:
    """Return a version as an origin calls it, if it is one that can be kept."""
    if token and token.isprintable() and len(token) <= MAXIMUM_VERSION_CHARACTERS:
        return token
    return None


_VARIABLE = Text(
    expected="the name of an environment variable", pattern=r"[A-Za-z_][A-Za-z0-9_]{0,127}"
)
_QUERY = Text(expected="a query that is not blank", allows_control_characters=True)
_ADDRESS = Text(
    expected="an address, scheme://…, without a user or password in it",
    pattern=r"[a-z][a-z0-9+.-]*://(?![^/?#]*@)\S+",
)
_FUNCTION = Text(
    expected="a function, as package.module:name",
    pattern=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*",
)
_KINDS = ("sql", "address", "python")

ORIGIN: Record[Origin] = Record(
    keys=(
        Key(
            "sql",
            Record(
                keys=(
                    Key("url_variable", _VARIABLE, required=True),
                    Key("query", _QUERY, required=True),
                    Key(
                        "order_by",
                        ListOf(
                            item=FIELD_NAME,
                            expected="a list of field names",
                            repeated="invalid_value",
                        ),
                        default=(),
                    ),
                ),
                build=SqlOrigin,
            ),
        ),
        Key(
            "address",
            Record(
                keys=(Key("url", _ADDRESS, required=True), Key("format", Choice(FileFormat))),
                build=AddressOrigin,
            ),
        ),
        Key(
            "python",
            Record(keys=(Key("function", _FUNCTION, required=True),), build=PythonOrigin),
        ),
    ),
    build=lambda sql, address, python: sql or address or python,
    constraints=(ExactlyOne(_KINDS),),
)
"""The object `source.origin` of a declaration."""
