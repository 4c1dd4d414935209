"""Unique: which rows share their key with another row.

A key of integers within a narrow range is looked up in a table of that range. Any other is hashed
and the hashes sorted; only rows whose hash occurs again are compared by content.

Source: SPEC section 2.1; acceptance decisions UNIQUE_COUNT, UNIQUE_NULL_SKIP.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]

_SPAN_PER_ROW = 8
"""How much wider than its rows are many a range may be: four bytes a place, as a hash has eight."""
_FEW = 64
"""Of how many rows one may be repeated to be looked up; else all rows are put in order."""


def duplicated(parts: list["pl.Series"]) -> "pa.Array":
    """Return true for every row whose complete key occurs more than once.

    Null parts equal each other here; leaving such rows out is the caller's decision.

    Args:
        parts: The key, one series per field, as `keys.key_of` makes them.
    """
    import polars as pl
    import pyarrow as pa

    found = _in_narrow_range(parts[0]) if len(parts) == 1 else None
    if found is None:
        # Positions as names: a field name never reaches an expression language.
        keys = pl.DataFrame([part.alias(str(place)) for place, part in enumerate(parts)])
        found = _by_hash(keys)
    return pa.array(found)


def _in_narrow_range(key: "pl.Series") -> "Mask | None":
    """Return the rows of an integer key whose range is narrow, else None."""
    import numpy as np

    key = key.to_physical()
    if not key.dtype.is_integer() or key.null_count() == len(key):
        return None
    present = key.drop_nulls()
    least, greatest = present.min(), present.max()
    span = int(greatest) - int(least) + 1  # type: ignore[arg-type]  # of integers, and not empty
    if span > _SPAN_PER_ROW * len(present) or len(key) > np.iinfo(np.int32).max:
        return None
    places = _places(present, int(least))  # type: ignore[arg-type]  # an integer
    found = _repeated_places(places, span)
    if len(present) == len(key):
        return found
    mask = key.is_null().to_numpy() if key.null_count() > 1 else np.zeros(len(key), np.bool_)
    mask = mask.copy()
    mask[key.is_not_null().to_numpy()] = found
    return mask


def _places(present: "pl.Series", least: int) -> "npt.NDArray[np.int64]":
    import polars as pl

    # Narrow types would overflow, and the widest unsigned one does not fit before it is moved.
    if present.dtype != pl.UInt64:
        present = present.cast(pl.Int64)
    return (present - least).cast(pl.Int64).to_numpy()


def _repeated_places(places: "npt.NDArray[np.int64]", span: int) -> "Mask":
    """Return true for every row whose place another row has, too."""
    import numpy as np

    rows = np.arange(len(places), dtype=np.int32)
    last = np.empty(span, dtype=np.int32)
    last[places] = rows
    is_followed: Mask = last[places] != rows
    if not is_followed.any():
        return is_followed
    is_repeated = np.zeros(span, dtype=np.bool_)
    is_repeated[places[is_followed]] = True
    return is_repeated[places]


def _by_hash(keys: "pl.DataFrame") -> "Mask":
    import numpy as np

    hashes = keys.hash_rows()
    repeated = _repeated(hashes)
    if len(repeated) * _FEW > keys.height:
        return _in_order(keys, hashes)
    mask = np.zeros(keys.height, dtype=np.bool_)
    if len(repeated):
        candidates = hashes.is_in(repeated.implode())
        mask[candidates.to_numpy()] = keys.filter(candidates).is_duplicated().to_numpy()
    return mask


def _repeated(hashes: "pl.Series") -> "pl.Series":
    """Return the hashes that occur more than once."""
    ordered = hashes.sort()
    later, earlier = ordered.slice(1), ordered.slice(0, max(len(ordered) - 1, 0))
    return later.filter(later == earlier).unique()


def _in_order(keys: "pl.DataFrame", hashes: "pl.Series") -> "Mask":
    """Return the rows by comparing neighbours in the order of hashes: for many repetitions."""
    import numpy as np

    order = hashes.arg_sort()
    hashes = hashes.gather(order)
    same_hash = (hashes == hashes.shift(1)).fill_null(value=False).to_numpy()
    same_key = np.ones(keys.height, dtype=np.bool_)
    for place in range(keys.width):
        part = keys.to_series(place).gather(order)
        same_key &= part.eq_missing(part.shift(1)).to_numpy()
    if (same_hash & ~same_key).any():
        # Different keys with one hash need not lie side by side.
        return keys.is_duplicated().to_numpy()
    same_hash[:-1] |= same_hash[1:]
    mask = np.empty(keys.height, dtype=np.bool_)
    mask[order.to_numpy()] = same_hash
    return mask
