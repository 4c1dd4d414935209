"""A table of 500 columns, to see what one more rule costs: rule n is about column n alone.

Of five columns two are floats, one integers with nulls, one codes and one integers without a
repetition. Rules about the first four kinds fail at about 0.1% of the rows, codes at one in eight.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

COLUMNS = 500
_KINDS = 5
_CODES = ("a", "b", "c", "d", "e", "f", "g", "h")
_RARELY = 0.001
_UNIQUE_EVERY = 50
_SEED = 7


def policy(rules: int) -> Mapping[str, object]:
    """Return the policy about the first columns, at most 500."""
    return {
        "version": f"benchmark-wide-{rules}",
        "rules": [{"id": _name(place), **_rule(place)} for place in range(rules)],
    }


def build(rows: int) -> tuple["pa.Table", Mapping[str, "npt.NDArray[np.int64]"]]:
    """Return the table, and by rule the positions of the rows that violate it."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng([_SEED, rows])
    columns: dict[str, pa.Array] = {}
    truth = {}
    for place in range(COLUMNS):
        columns[_name(place)], violated = _column(place % _KINDS, rows, random)
        truth[_name(place)] = np.flatnonzero(violated)
    return pa.table(columns), truth


def _name(place: int) -> str:
    return f"c{place:03d}"


def _rule(place: int) -> Mapping[str, object]:
    name = _name(place)
    match place % _KINDS:
        case 0 | 1:
            return {"type": "range", "field": name, "minimum": 0}
        case 2:
            return {"type": "not_null", "fields": [name]}
        case 3:
            return {"type": "referential", "field": name, "allowed_values": list(_CODES[:-1])}
        case _ if place % _UNIQUE_EVERY < _KINDS:
            return {"type": "unique", "fields": [name]}
        case _:
            return {"type": "range", "field": name, "minimum": 0, "maximum": 2**40}


def _column(
    kind: int, rows: int, random: "np.random.Generator"
) -> tuple["pa.Array", "npt.NDArray[np.bool_]"]:
    import numpy as np
    import pyarrow as pa

    rare = random.random(rows) < _RARELY
    match kind:
        case 0 | 1:
            values = random.random(rows) * 100 + 0.01
            return pa.array(np.where(rare, -values, values)), rare
        case 2:
            return pa.array(random.integers(0, 1000, rows), mask=rare), rare
        case 3:
            places = random.integers(0, len(_CODES), rows)
            return pa.array(_CODES).take(pa.array(places)), places == len(_CODES) - 1
        case _:
            return pa.array(random.permutation(rows)), np.zeros(rows, dtype=np.bool_)
