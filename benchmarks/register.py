"""A register-like table whose violations are known exactly, because they are put there.

Eight columns: an integer id in random order, a status of eight codes, an amount (2% null), a
customer (four rows each), an instant, a region, a note (60% null) and a quantity (5% null). The
policy has eight rules and names five of the columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Integers = npt.NDArray[np.int64]
    Booleans = npt.NDArray[np.bool_]

CODES: Final = (
    "new",
    "open",
    "held",
    "review",
    "approved",
    "rejected",
    "archived",
    "closed",
)
POLICY: Final[Mapping[str, object]] = {
    "version": "benchmark-register-v1",
    "rules": [
        {"id": "non-empty", "type": "row_count", "minimum": 1},
        {"id": "columns", "type": "required_fields", "fields": ["id", "status"]},
        {
            "id": "id-shape",
            "type": "field",
            "field": "id",
            "data_type": "integer",
            "nullable": False,
        },
        {"id": "id-present", "type": "not_null", "fields": ["id"]},
        {"id": "id-unique", "type": "unique", "fields": ["id"]},
        {
            "id": "amount-range",
            "type": "range",
            "field": "amount",
            "minimum": 0,
            "allow_null": True,
        },
        {
            "id": "known-status",
            "type": "referential",
            "field": "status",
            "allowed_values": list(CODES),
        },
        {
            "id": "customer-time-unique",
            "type": "unique",
            "fields": ["customer_id", "created_at"],
            "ignore_nulls": True,
            "severity": "warning",
        },
    ],
}
RULE_IDS: Final = (
    "non-empty",
    "columns",
    "id-shape",
    "id-present",
    "id-unique",
    "amount-range",
    "known-status",
    "customer-time-unique",
)
_REGIONS = ("north", "south", "east", "west", "centre", "islands")
_UNKNOWN = len(CODES)
_SEED = 20240601
_FIVE_YEARS_US = 5 * 365 * 86_400 * 1_000_000

Truth = Mapping[str, "Integers"]
"""Zero-based positions of the rows that violate a rule; a rule not named is violated by none."""


@dataclass(slots=True)
class _Columns:
    """The columns that rules name, still to be spoilt."""

    ids: "Integers"
    id_is_null: "Booleans"
    status: "Integers"
    amount: "npt.NDArray[np.float64]"
    amount_is_null: "Booleans"
    customer: "Integers"
    created_us: "Integers"


def build(rows: int, variant: str) -> tuple["pa.Table", Truth]:
    """Return the table and the truth about it; the same for the same arguments.

    Variants: `clean`, nothing is violated; `dirty`, 0.1% of the rows violate each rule about rows,
    at least four, no row two of them but for the two about a missing id; `all-failing`, every row
    violates both rules about single values; `duplicated`, every key occurs twice.
    """
    import numpy as np

    random = np.random.default_rng([_SEED, rows])
    columns = _clean(rows, random)
    truth = VARIANTS[variant](columns, random)
    return _table(columns, random), truth


def _clean(rows: int, random: "np.random.Generator") -> _Columns:
    import numpy as np

    start = np.datetime64("2019-01-01", "us").astype(np.int64)
    return _Columns(
        ids=10_000_000 + 3 * random.permutation(rows),
        id_is_null=np.zeros(rows, dtype=np.bool_),
        status=random.integers(0, len(CODES), rows),
        amount=np.round(random.gamma(2.0, 150.0, rows), 2),
        amount_is_null=_some(0.02, rows, random),
        customer=100_000_000 + random.integers(0, max(1, rows // 4), rows),
        # Distinct by construction: two clean rows never share an instant.
        created_us=start + random.permutation(rows) * (_FIVE_YEARS_US // rows),
    )


def _nothing(_columns: _Columns, _random: "np.random.Generator") -> Truth:
    return {}


def _one_in_a_thousand(columns: _Columns, random: "np.random.Generator") -> Truth:
    import numpy as np

    rows = len(columns.ids)
    each = max(4, rows // 1000 // 2 * 2)
    places = random.permutation(rows)[: 5 * each].reshape(5, each)
    missing, negative, unknown, twin_ids, twin_customers = places
    columns.id_is_null[missing] = True
    columns.amount[negative] = -columns.amount[negative] - 0.01
    columns.amount_is_null[negative] = False
    columns.status[unknown] = _UNKNOWN
    first, second = np.split(twin_ids, 2)
    columns.ids[second] = columns.ids[first]
    first, second = np.split(twin_customers, 2)
    columns.customer[second] = columns.customer[first]
    columns.created_us[second] = columns.created_us[first]
    return {
        "id-shape": missing,
        "id-present": missing,
        # Nulls compare equal, because the rule does not ignore them.
        "id-unique": np.concatenate([twin_ids, missing]),
        "amount-range": negative,
        "known-status": unknown,
        "customer-time-unique": twin_customers,
    }


def _every_value(columns: _Columns, _random: "np.random.Generator") -> Truth:
    import numpy as np

    columns.amount[:] = -columns.amount - 0.01
    columns.amount_is_null[:] = False
    columns.status[:] = _UNKNOWN
    everywhere = np.arange(len(columns.ids))
    return {"amount-range": everywhere, "known-status": everywhere}


def _every_key(columns: _Columns, _random: "np.random.Generator") -> Truth:
    import numpy as np

    half = len(columns.ids) // 2
    for keys in (columns.ids, columns.customer, columns.created_us):
        keys[half : 2 * half] = keys[:half]
    paired = np.arange(2 * half)
    return {"id-unique": paired, "customer-time-unique": paired}


VARIANTS: Final[Mapping[str, Callable[[_Columns, "np.random.Generator"], Truth]]] = {
    "clean": _nothing,
    "dirty": _one_in_a_thousand,
    "all-failing": _every_value,
    "duplicated": _every_key,
}


def _table(columns: _Columns, random: "np.random.Generator") -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = len(columns.ids)
    notes = _numbered("note about case ", random.integers(0, 1 << 40, rows))
    return pa.table(
        {
            "id": pa.array(columns.ids, mask=columns.id_is_null),
            "status": _one_of((*CODES, "mislaid"), columns.status),
            "amount": pa.array(columns.amount, mask=columns.amount_is_null),
            "customer_id": _numbered("C", columns.customer),
            "created_at": pa.array(columns.created_us, pa.timestamp("us")),
            "region": _one_of(_REGIONS, random.integers(0, len(_REGIONS), rows)),
            "note": pc.if_else(pa.array(_some(0.6, rows, random)), None, notes),
            "quantity": pa.array(random.integers(0, 500, rows), mask=_some(0.05, rows, random)),
        }
    )


def _some(share: float, rows: int, random: "np.random.Generator") -> "Booleans":
    return random.random(rows) < share


def _one_of(texts: tuple[str, ...], places: "Integers") -> "pa.Array":
    import pyarrow as pa

    return pa.array(texts).take(pa.array(places))


def _numbered(prefix: str, numbers: "Integers") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
