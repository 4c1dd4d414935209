"""The rules of SPEC section 2.1 once more, row by row in plain Python, to compare evaluation with.

Nothing is shared with the product: a column is a name, a logical type, the precision of its numbers
and a list of Python values; a rule is the JSON object of the policy.
"""

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

MOST = 25


@dataclass(frozen=True)
class Column:
    """`precision` of a fraction that meets a number: `decimal`, `double`, `single` or `own`.

    `own` takes the precision of each value: double for a float, decimal for any other.
    """

    name: str
    type: str
    precision: str
    values: list


def evaluate(rules, columns, row_count):
    """Return `(status, reason, affected, rows, fields)` of every rule."""
    named = {column.name: column for column in columns}
    return [outcome(rule, named, row_count) for rule in rules]


def outcome(rule, named, row_count):
    fields = tuple(rule.get("fields") or ([rule["field"]] if "field" in rule else []))
    missing = tuple(name for name in fields if name not in named)
    if missing:
        return "failed", "missing_field", None, None, missing
    if rule["type"] == "row_count":
        enough = rule.get("minimum", 0) <= row_count <= rule.get("maximum", math.inf)
        return verdict(None if enough else "row_count", fields)
    if rule["type"] == "required_fields":
        return verdict(None, fields)
    columns = [named[name] for name in fields]
    if rule["type"] == "field":
        return field_outcome(rule, columns[0], fields)
    violates, reason = ROW_RULES[rule["type"]](rule, columns)
    return about_rows([row for row in range(row_count) if violates(row)], reason, fields)


def field_outcome(rule, column, fields):
    wanted = rule.get("data_type")
    accepted = {wanted, "integer"} if wanted == "number" else {wanted}
    if wanted is not None and (column.type == "unknown" or column.type not in accepted):
        return verdict("type_mismatch", fields)
    if rule.get("nullable") is not False:
        return verdict(None, fields)
    nulls = [row for row, value in enumerate(column.values) if is_null(value)]
    return about_rows(nulls, "nullability", fields)


def verdict(reason, fields):
    return "passed" if reason is None else "failed", reason, None, None, fields


def about_rows(bad, reason, fields):
    rows = tuple(row + 1 for row in bad[:MOST])
    return ("failed" if bad else "passed", reason if bad else None, len(bad), rows, fields)


def not_null(_rule, columns):
    return lambda row: any(is_null(column.values[row]) for column in columns), "null"


def unique(rule, columns):
    keys = [
        tuple("null" if is_null(value) else key(value) for value in row) for row in rows_of(columns)
    ]
    skipped = [
        rule.get("ignore_nulls", False) and any(is_null(value) for value in row)
        for row in rows_of(columns)
    ]
    counts = {}
    for one in keys:
        counts[one] = counts.get(one, 0) + 1
    return lambda row: counts[keys[row]] > 1 and not skipped[row], "duplicate"


def rows_of(columns):
    return list(zip(*(column.values for column in columns), strict=True))


def in_range(rule, columns):
    (column,) = columns

    def violates(row):
        value = column.values[row]
        if is_null(value):
            return not rule.get("allow_null", False)
        if not is_number(value):
            return True
        low, high = rule.get("minimum"), rule.get("maximum")
        number = exact(value)
        return (low is not None and number < placed(low, column, value)) or (
            high is not None and number > placed(high, column, value)
        )

    return violates, "out_of_range"


def referential(rule, columns):
    (column,) = columns

    def violates(row):
        value = column.values[row]
        if is_null(value):
            return not rule.get("allow_null", False)
        return not any(same(code, value, column) for code in rule["allowed_values"])

    return violates, "not_allowed"


def same(code, value, column):
    if is_number(code) and is_number(value):
        return placed(code, column, value) == exact(value)
    return type(code) is type(value) and code == value


def placed(number, column, value):
    """Return the policy's number as it meets this value of this column."""
    if isinstance(number, int) or number.is_integer():
        return Fraction(int(number))
    precision = column.precision
    if precision == "own":
        precision = "double" if isinstance(value, float) else "decimal"
    if precision == "single":
        return Fraction(struct.unpack("f", struct.pack("f", number))[0])
    return Fraction(number) if precision == "double" else Fraction(str(number))


def is_null(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_number(value):
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def exact(value):
    return value if isinstance(value, float) and math.isinf(value) else Fraction(value)


def key(value):
    """Return what two equal values have in common, and no two different ones."""
    if isinstance(value, dict):
        return ("object", tuple((name, key(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(key(item) for item in value))
    if is_number(value):
        return ("number", "nan" if is_null(value) else exact(value))
    return (type(value).__name__, value)


ROW_RULES = {
    "not_null": not_null,
    "unique": unique,
    "range": in_range,
    "referential": referential,
}
