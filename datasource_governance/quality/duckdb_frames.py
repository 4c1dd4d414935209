"""A table in memory as DuckDB holds it exactly, for frameworks that check databases only.

DuckDB ignores the case of names, so columns are named by their places; of a type that it does not
hold, or does not compare as the typed form does, only nulls are kept.

Source: SPEC sections 3 and 14.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.rules import NotNullRule, RangeRule, ReferentialRule, UniqueRule
from datasource_governance.quality.failed_rows import failed_rows

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDbFrame:
    """A table to give to DuckDB.

    `names` are what its columns are called there, by field; of `opaque` fields only nulls are
    known.
    """

    table: "pa.Table"
    names: Mapping[str, str]
    opaque: frozenset[str]

    def query(self, rule: ContentRule, relation: str) -> str | None:
        """Return the statement for the rows that violate a rule; None where it is not exact."""
        if not isinstance(rule, NotNullRule) and not self.opaque.isdisjoint(rule.fields):
            return None
        return failed_rows(self._renamed(rule), self.table.schema, "duckdb", relation)

    def _renamed(self, rule: ContentRule) -> ContentRule:
        match rule:
            case NotNullRule() | UniqueRule():
                return replace(rule, fields=tuple(self.names[field] for field in rule.fields))
            case RangeRule() | ReferentialRule():
                return replace(rule, field=self.names[rule.field])
        return rule


def duckdb_frame(table: "pa.Table") -> DuckDbFrame:
    """Return a typed table as DuckDB holds it."""
    import pyarrow as pa

    opaque = frozenset(field.name for field in table.schema if not _is_kept(field.type))
    columns = [
        _validity(table.column(name)) if name in opaque else table.column(name)
        for name in table.column_names
    ]
    names = {name: str(place) for place, name in enumerate(table.column_names)}
    return DuckDbFrame(table=pa.table(columns, list(names.values())), names=names, opaque=opaque)


def _is_kept(kind: "pa.DataType") -> bool:
    """Tell whether DuckDB holds every value of a type as it is, and compares it as one."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return bool(types.is_large_string(kind.value_type))
    if types.is_timestamp(kind):
        return kind.tz is None or kind.unit != "ns"
    kept = (types.is_integer, types.is_float32, types.is_float64, types.is_decimal128)
    also = (
        types.is_boolean,
        types.is_large_string,
        types.is_large_binary,
        types.is_date32,
        types.is_null,
    )
    return kind == pa.time64("us") or any(is_of(kind) for is_of in (*kept, *also))


def _validity(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return true where there is a value, and null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    valid = pc.is_valid(column)
    return pc.if_else(valid, valid, pa.scalar(None, pa.bool_()))
