"""Names and values as SQL of Postgres and DuckDB, in plain ASCII without special characters.

What is generated passes through other languages on its way: templates of Soda and dbt, parameters
of drivers. So nothing in a name or a code is spelled as it is unless it is a letter, a digit, an
underscore or a space, and no caller has to escape anything again.

Source: PostgreSQL, "Lexical Structure"; DuckDB, "Text Functions" and "Struct Functions".
"""

import re
from itertools import groupby

from datasource_governance.sources.sql.selection import quoted

POSTGRESQL = "postgresql"
_PLAIN = re.compile(r"[A-Za-z0-9_ ]*")


def text_literal(text: str, dialect: str) -> str:
    """Return a text, exactly. Postgres refuses one that has a NUL; no text of its own has."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    if dialect == POSTGRESQL:
        return f"U&'{_escaped(text)}' UESCAPE '!'"
    return f"({' || '.join(_pieces(text))})"


def number_literal(number: float | str, sql_type: str) -> str:
    """Return a number, or the decimal text of one, as a value of a SQL type that holds it."""
    return f"CAST('{number}' AS {sql_type})"


def column_reference(name: str, dialect: str, alias: str) -> str:
    """Return what names a column of the relation with an alias."""
    if dialect == POSTGRESQL or _PLAIN.fullmatch(name):
        return f"{alias}.{_identifier(name, dialect)}"
    # DuckDB has no escapes in names. A row is a struct, whose members are named by text.
    return f"struct_extract({alias}, {text_literal(name, dialect)})"


def relation_name(schema: str | None, table: str, dialect: str | None = None) -> str:
    """Return how a table or view, in a schema or where the database looks, is named after FROM.

    With the dialect `postgresql` special characters are escaped. DuckDB cannot, nor is the result
    without a dialect: in a template take a view that has a plain name.
    """
    return ".".join(_identifier(name, dialect) for name in (schema, table) if name)


def _identifier(name: str, dialect: str | None) -> str:
    if dialect != POSTGRESQL or _PLAIN.fullmatch(name):
        return quoted(name)
    return f"U&\"{_escaped(name)}\" UESCAPE '!'"


def _escaped(text: str) -> str:
    return "".join(one if _PLAIN.fullmatch(one) else f"!+{ord(one):06X}" for one in text)


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for is_plain, run in groupby(text, lambda one: bool(_PLAIN.fullmatch(one))):
        characters = "".join(run)
        pieces += [f"'{characters}'"] if is_plain else [f"chr({ord(one)})" for one in characters]
    return pieces
