"""What is left of a value of Dagster's GraphQL when its reader may not see counts.

Each function takes what a resolver gave and the need that its reader does not meet. None for the
need means that the value is of something that is not governed.

Source: SPEC sections 5 and 17; threat T-11.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg

from datasource_governance.web.policy import READ_COUNTS, Need
from datasource_governance.web.visibility import (
    PUBLIC_COLUMNS,
    PUBLIC_KEYS,
    RESTRICTED,
    is_public,
    without_numbers,
)

Omit = Callable[[Any, Need | None], object]


def omit_entries(entries: Iterable[Any], need: Need | None) -> list[Any]:
    """Return the metadata entries that every reader sees, and one that stands for all others.

    Of a table under a public key the public columns are left.
    """
    from dagster_graphql.schema.metadata import GrapheneTextMetadataEntry

    whole = list(entries)
    shown = [_shown(entry, need) for entry in whole]
    kept = [entry for entry in shown if entry is not None]
    if any(one is not left for one, left in zip(whole, shown, strict=True)):
        text = f"counts and row numbers need {need or READ_COUNTS}"
        kept.append(GrapheneTextMetadataEntry(label=RESTRICTED, text=text))
    return kept


def omit_tags(tags: Iterable[Any], need: Need | None) -> list[Any]:
    """Return the tags that Dagster gives itself; what else tags an event may count something."""
    return [tag for tag in tags if need is None or tag.key.startswith("dagster/")]


def omit_numbers(text: str, need: Need | None) -> str:
    """Return a text without its numbers."""
    return text if need is None else without_numbers(text)


def omit_numbers_of_error(error: Any, need: Need | None) -> Any:  # noqa: ANN401 - Dagster's, untyped
    """Return an error with its class and its message without numbers; no stack and no cause."""
    from dagster._utils.error import SerializableErrorInfo  # type: ignore[attr-defined]  # re-export
    from dagster_graphql.schema.errors import GraphenePythonError

    if need is None:
        return error
    message = without_numbers(error.resolve_message(None))
    told = SerializableErrorInfo(message, [], error.resolve_className(None))
    return GraphenePythonError(told)  # type: ignore[no-untyped-call]  # Dagster's own


def omit_link(_link: object, _need: Need | None) -> None:
    """Return nothing: a link to compute logs may open them to whoever has it."""


def _shown(entry: Any, need: Need | None) -> Any:  # noqa: ANN401 - an entry has one of many types
    """Return what is left of an entry: itself, a narrower table, or None."""
    if not is_public(entry.label, need):
        return None
    table = getattr(entry, "table", None)
    if table is None or entry.label not in PUBLIC_KEYS:
        return entry
    records = [json.loads(record) for record in table.records]
    named = {column.name for column in table.schema.columns}.union(*records)
    return entry if named <= PUBLIC_COLUMNS else _with_public_columns(entry, records)


def _with_public_columns(entry: Any, records: Iterable[dict[str, object]]) -> Any:  # noqa: ANN401 - as above
    from dagster_graphql.schema.metadata import GrapheneTableMetadataEntry
    from dagster_graphql.schema.table import GrapheneTable

    columns = [one for one in entry.table.schema.columns if one.name in PUBLIC_COLUMNS]
    public = [
        {name: cell for name, cell in record.items() if name in PUBLIC_COLUMNS}
        for record in records
    ]
    table = GrapheneTable(
        schema=dg.TableSchema(columns=columns),
        records=[json.dumps(record) for record in public],  # noqa: TID251 - an answer, not stored
    )
    return GrapheneTableMetadataEntry(label=entry.label, table=table)
