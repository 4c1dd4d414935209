"""Unique, for a payload in batches: which rows share their key with any other row of the payload.

Source: SPEC sections 2.1 and 18.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import QualityPolicy, UniqueRule
from datasource_governance.domain.validation import MAXIMUM_ROWS_LISTED, RuleOutcome
from datasource_governance.evaluation import outcomes
from datasource_governance.evaluation.keys import key_of
from datasource_governance.evaluation.spill import ROW, KeyStore

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_ENOUGH = MAXIMUM_ROWS_LISTED + 1
"""So many rows of one key in one batch fail, and no further one can be among those listed."""


class KeysOnDisk:
    """The keys of one rule, kept until all rows have been seen."""

    def __init__(self, policy: QualityPolicy, rule: UniqueRule, store: KeyStore) -> None:
        self._policy = outcomes.only(policy, [rule])
        self._rule = rule
        self._store = store
        self._surplus = 0
        """Rows that fail and are not kept: a batch of one key takes no more room than a few."""

    def add(self, batch: "pa.Table", rows_before: int) -> None:
        """Keep the keys of the next rows."""
        import polars as pl

        # Positions as names: a field name never reaches an expression language.
        columns = [batch.column(batch.column_names.index(name)) for name in self._rule.fields]
        keys = pl.DataFrame(
            [key_of(column).alias(str(place)) for place, column in enumerate(columns)]
        )
        kept = _enough_of_each(keys)
        if kept is not None:
            left_out = keys.filter(~kept)
            failing = left_out.drop_nulls() if self._rule.ignore_nulls else left_out
            self._surplus += failing.height
        first = rows_before + 1
        rows = pl.int_range(first, first + keys.height, dtype=pl.Int64)
        numbered = keys.with_columns(rows.alias(ROW))
        self._store.add(numbered if kept is None else numbered.filter(kept))

    def outcome(self) -> RuleOutcome:
        """Return what the rule finds in all rows; a partition has all rows of its keys."""
        import polars as pl

        names = {str(place): name for place, name in enumerate(self._rule.fields)}
        none = pl.DataFrame(schema=dict.fromkeys(self._rule.fields, pl.Int64))
        (total,) = outcomes.of_frame(self._policy, none, "polars")
        for frame in self._store.partitions():
            keys, numbers = frame.drop(ROW).rename(names), frame[ROW]
            (found,) = outcomes.of_frame(self._policy, keys, "polars")
            rows = tuple(int(numbers[row - 1]) for row in found.rows or ())
            total = outcomes.joined(total, replace(found, rows=found.rows and rows))
        if total.affected is None:
            return total
        return replace(total, affected=total.affected + self._surplus)


def _enough_of_each(keys: "pl.DataFrame") -> "pl.Series | None":
    """Return which rows to keep where a key has more than enough of them, else None."""
    import numpy as np
    import polars as pl

    hashes = keys.hash_rows()
    ordered = np.sort(hashes.to_numpy())
    frequent = ordered[_ENOUGH:][ordered[_ENOUGH:] == ordered[:-_ENOUGH]]
    if not len(frequent):
        return None
    is_frequent = hashes.is_in(pl.Series(frequent).implode())
    places = keys.filter(is_frequent).select(pl.int_range(pl.len()).over(keys.columns))
    kept = (~is_frequent).to_numpy().copy()
    kept[is_frequent.to_numpy()] = places.to_series().to_numpy() < _ENOUGH
    return pl.Series(kept)
