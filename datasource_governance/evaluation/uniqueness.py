"""Unique: which rows share their key with another row.

Rows are hashed and the hashes sorted, of which the processor sorts several at once; only rows whose
hash occurs again are compared by content, in the order of their hashes.

Source: SPEC section 2.1; acceptance decisions UNIQUE_COUNT, UNIQUE_NULL_SKIP.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from datasource_governance.evaluation.columns import Column

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Mask = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.integer]
    Numbers = npt.NDArray[np.uint32]

_ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, by which the hash of each part of a key is spread over all bits."""
_BLOCK = 1 << 20
_FEW = 64
"""Of how many rows one may have a repeated hash, for these to be looked up one by one."""


def duplicated(columns: Sequence[Column], row_count: int, *, ignore_nulls: bool) -> "Places":
    """Return the places, from 0 and ascending, of rows whose complete key occurs more than once.

    Null parts equal each other; with `ignore_nulls` keys that have one are left out.

    Args:
        columns: The parts of the key.
        row_count: How many rows there are; below 2^32.
        ignore_nulls: As the rule says.
    """
    import numpy as np
    import polars as pl

    hashes = _hashes(columns, row_count)
    repeated = _repeated(hashes)
    if not len(repeated):
        return np.empty(0, dtype=np.intp)
    if len(repeated) * _FEW > row_count:
        keys = [column.keys(0, row_count) for column in columns]
        candidates = np.arange(row_count)
    else:
        suspects = pl.Series(hashes).is_in(pl.Series(repeated).implode())
        keys = [column.keys_where(suspects) for column in columns]
        candidates = suspects.arg_true().to_numpy()
    found = _shared(keys, hashes[candidates])
    if ignore_nulls:
        for key in keys:
            found &= key.is_not_null().to_numpy()
    places: Places = candidates[found]
    return places


def _hashes(columns: Sequence[Column], row_count: int) -> "Numbers":
    """Return one hash per row; the keys are made a block at a time and not kept."""
    import numpy as np

    hashes = np.empty(row_count, dtype=np.uint32)
    for start in range(0, row_count, _BLOCK):
        parts = (column.keys(start, _BLOCK).hash().to_numpy() for column in columns)
        block = functools.reduce(lambda left, right: left * np.uint64(_ODD) + right, parts)
        # Half of a hash sorts in half of the time, and those that meet are told apart below.
        hashes[start : start + _BLOCK] = block >> np.uint64(32)
    return hashes


def _repeated(hashes: "Numbers") -> "Numbers":
    """Return the hashes that occur more than once, once or several times."""
    import numpy as np

    ordered: Numbers = np.sort(hashes)
    repeated: Numbers = ordered[1:][ordered[1:] == ordered[:-1]]
    return repeated


def _shared(keys: list["pl.Series"], hashes: "Numbers") -> "Mask":
    """Return the rows that share their key, by comparing neighbours in the order of hashes."""
    import numpy as np
    import polars as pl

    order = _order(hashes)
    hashes = hashes[order]
    same_hash = np.concatenate(([False], hashes[1:] == hashes[:-1]))
    same_key = same_hash.copy()
    for key in keys:
        part = key.gather(order)
        same_key &= part.eq_missing(part.shift(1)).to_numpy()
    found = same_key.copy()
    found[:-1] |= same_key[1:]
    differs = same_hash & ~same_key
    if differs.any():
        # Where different keys have one hash, equal ones need not lie side by side.
        run = np.cumsum(~same_hash)
        is_mixed = np.isin(run, run[differs])
        # Positions as names: a field name never reaches an expression language.
        mixed = [key.gather(order[is_mixed]).alias(str(at)) for at, key in enumerate(keys)]
        found[is_mixed] = pl.DataFrame(mixed).is_duplicated().to_numpy()
    mask = np.empty_like(found)
    mask[order] = found
    return mask


def _order(hashes: "Numbers") -> "Numbers":
    """Return the rows in the order of their hashes: both are sorted as halves of one number."""
    import numpy as np

    halves = hashes.astype(np.uint64) << np.uint64(32)
    halves |= np.arange(len(hashes), dtype=np.uint64)
    halves.sort()
    order: Numbers = halves.astype(np.uint32)
    return order
