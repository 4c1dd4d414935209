"""Unique: which rows share their key with another row.

Rows are hashed and the hashes sorted, of which the processor sorts several at once; only rows whose
hash occurs again are compared by content, in the order of their hashes.

Source: SPEC section 2.1; acceptance decisions UNIQUE_COUNT, UNIQUE_NULL_SKIP.
"""

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Mask = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.integer]
    Numbers = npt.NDArray[np.uint32]

_ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, by which the hash of each part of a key is spread over all bits."""
_FEW = 64
"""Of how many rows one may have a repeated hash, for these to be looked up one by one."""


def duplicated(parts: list["pl.Series"]) -> "Places":
    """Return the places, from 0 and ascending, of rows whose complete key occurs more than once.

    Null parts equal each other here; leaving such rows out is the caller's decision.

    Args:
        parts: The key, one series per field, as `keys.key_of` makes them; below 2^32 rows.
    """
    import numpy as np
    import polars as pl

    # Positions as names: a field name never reaches an expression language.
    keys = pl.DataFrame([part.alias(str(place)) for place, part in enumerate(parts)])
    # Half of a hash sorts in half of the time, and those that meet are told apart below.
    halves = keys.select(_hash(keys.width).cast(pl.UInt32, wrap_numerical=True)).to_series()
    hashes = halves.to_numpy()
    repeated = _repeated(hashes)
    if not len(repeated):
        return np.empty(0, dtype=np.intp)
    if len(repeated) * _FEW > keys.height:
        return np.flatnonzero(_shared(keys, hashes))
    candidates = halves.is_in(pl.Series(repeated).implode()).arg_true().to_numpy()
    places: Places = candidates[_shared(keys[candidates], hashes[candidates])]
    return places


def _hash(parts: int) -> "pl.Expr":
    import polars as pl

    hashes = (pl.col(str(place)).hash() for place in range(parts))
    return functools.reduce(lambda left, right: left * pl.lit(_ODD, pl.UInt64) + right, hashes)


def _repeated(hashes: "Numbers") -> "Numbers":
    """Return the hashes that occur more than once, once or several times."""
    import numpy as np

    ordered: Numbers = np.sort(hashes)
    repeated: Numbers = ordered[1:][ordered[1:] == ordered[:-1]]
    return repeated


def _shared(keys: "pl.DataFrame", hashes: "Numbers") -> "Mask":
    """Return the rows that share their key, by comparing neighbours in the order of hashes."""
    import numpy as np

    order = _order(hashes)
    hashes = hashes[order]
    same_hash = np.concatenate(([False], hashes[1:] == hashes[:-1]))
    same_key = same_hash.copy()
    for place in range(keys.width):
        part = keys.to_series(place).gather(order)
        same_key &= part.eq_missing(part.shift(1)).to_numpy()
    found = same_key.copy()
    found[:-1] |= same_key[1:]
    differs = same_hash & ~same_key
    if differs.any():
        # Where different keys have one hash, equal ones need not lie side by side.
        run = np.cumsum(~same_hash)
        is_mixed = np.isin(run, run[differs])
        found[is_mixed] = keys[order[is_mixed]].is_duplicated().to_numpy()
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
