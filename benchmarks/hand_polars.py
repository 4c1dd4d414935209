"""The limits: programs written by hand for exactly the rules of the register.

A missing or wrong value is one bit per row; counting bits is cheap, and the first rows are looked
for block by block. A repeated key is found by sorting 32 bits of a hash; rows whose bits occur
again are compared by content. The limit that the goals name is Polars alone; the faster one sorts
with NumPy, which uses the processor's vectors, and takes rules side by side.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.evidence import PASSED, ROWS_LISTED, Finding, Findings
from benchmarks.register import CODES
from datasource_governance.domain.quality_policy import QualityPolicy

if TYPE_CHECKING:
    import polars as pl

    Sort = Callable[[pl.Series], pl.Series]

_NAMED = ("id", "status", "amount", "customer_id", "created_at")
_BLOCK = 1 << 16
_ODD = 0x9E3779B97F4A7C15


def load(path: Path) -> "pl.DataFrame":
    """Return the whole file as a frame."""
    import polars as pl

    return pl.read_parquet(path)


def evaluate(frame: "pl.DataFrame", _policy: QualityPolicy) -> Findings:
    """Return the findings of the register's rules, which the program knows without reading them.

    It is Polars alone, which keeps all processors busy within each of its operations.
    """
    return _findings(frame, {name: task() for name, task in _tasks(frame, _sorted).items()})


def evaluate_file(path: Path, policy: QualityPolicy) -> Findings:
    """Read the columns that rules name and evaluate them."""
    import polars as pl

    return evaluate(pl.scan_parquet(path).select(_NAMED).collect(), policy)


def evaluate_faster(frame: "pl.DataFrame", _policy: QualityPolicy) -> Findings:
    """Do the same with NumPy's vectorised sort, rules side by side in threads."""
    tasks = _tasks(frame, _sorted_by_numpy)
    with ThreadPoolExecutor() as threads:
        found = dict(zip(tasks, threads.map(lambda task: task(), tasks.values()), strict=True))
    return _findings(frame, found)


def _tasks(frame: "pl.DataFrame", in_order: "Sort") -> dict[str, Callable[[], Finding]]:
    return {
        "customer-time-unique": lambda: _repeated(frame, in_order, "customer_id", "created_at"),
        "id-unique": lambda: _repeated(frame, in_order, "id"),
        "known-status": lambda: _unknown_status(frame),
        "amount-range": lambda: _marked(frame["amount"] < 0),
        "id-present": lambda: _marked(frame["id"].is_null()),
    }


def _findings(frame: "pl.DataFrame", found: dict[str, Finding]) -> Findings:
    whole = frame["id"].dtype.is_integer()
    return found | {
        "non-empty": Finding(passed=frame.height >= 1),
        "columns": Finding(passed={"id", "status"} <= set(frame.columns)),
        "id-shape": found["id-present"] if whole else Finding(passed=False),
    }


def _sorted(bits: "pl.Series") -> "pl.Series":
    return bits.sort()


def _sorted_by_numpy(bits: "pl.Series") -> "pl.Series":
    import numpy as np
    import polars as pl

    return pl.Series(np.sort(bits.to_numpy()))


def _unknown_status(frame: "pl.DataFrame") -> Finding:
    import polars as pl

    # Eight comparisons of short texts cost less than one look-up in a set.
    known = functools.reduce(operator.or_, (pl.col("status") == code for code in CODES))
    return _marked(frame.select((~known).fill_null(value=True)).to_series())


def _marked(mask: "pl.Series") -> Finding:
    affected = int(mask.sum() or 0)
    rows: list[int] = []
    start = 0
    while len(rows) < min(affected, ROWS_LISTED):
        found = mask.slice(start, _BLOCK).arg_true().head(ROWS_LISTED - len(rows))
        rows += [start + place + 1 for place in found]
        start += _BLOCK
    return Finding(passed=not affected, affected=affected, rows=tuple(rows))


def _repeated(frame: "pl.DataFrame", in_order: "Sort", *names: str) -> Finding:
    """Find rows that share their key. Nulls equal each other, but for keys of several columns."""
    import polars as pl

    bits = frame.select(_hash(names).cast(pl.UInt32, wrap_numerical=True)).to_series()
    ordered = in_order(bits)
    later, earlier = ordered.slice(1), ordered.slice(0, max(len(ordered) - 1, 0))
    again = later.filter(later == earlier)
    if not len(again):
        return PASSED
    suspects = bits.is_in(again.implode()).arg_true()
    keys = frame.select(names)[suspects]
    repeated = _equal_to_another(keys)
    if len(names) > 1:
        repeated &= keys.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    rows = suspects.filter(repeated)
    first = tuple(place + 1 for place in rows.head(ROWS_LISTED))
    return Finding(passed=not len(rows), affected=len(rows), rows=first)


def _equal_to_another(keys: "pl.DataFrame") -> "pl.Series":
    """Tell of each row whether another has the same content: sorted by 64 bits, a neighbour has."""
    import polars as pl

    hashes = keys.select(_hash(keys.columns)).to_series()
    order = hashes.arg_sort()
    near = keys.select(pl.all().gather(order)).select(pl.all().eq_missing(pl.all().shift()))
    ordered = hashes.gather(order)
    same = (ordered == ordered.shift()).fill_null(value=False)
    if not (near.select(pl.all_horizontal(pl.all())).to_series() | ~same).all():
        # Different keys with the same 64 bits.
        return keys.is_duplicated()
    repeated = same | same.shift(-1, fill_value=False)
    answer = pl.zeros(len(keys), pl.Boolean, eager=True)
    return answer.scatter(order.filter(repeated), values=True)


def _hash(names: Sequence[str]) -> "pl.Expr":
    import polars as pl

    hashes = (pl.col(name).hash() for name in names)
    return functools.reduce(lambda left, right: left * pl.lit(_ODD, pl.UInt64) + right, hashes)
