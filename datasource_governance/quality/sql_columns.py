"""What rules ask of one column of a SQL table, as expressions of its database.

Each is true or false, never null, and says what the native evaluator says of the column's typed
form; values are compared in the column's own type, so that nothing is rounded on the way.

Source: SPEC sections 2.1 and 3; acceptance decisions FRACTION_BOUND, TYPED_MATCH, REF_NUMBERS,
NAN_IS_NULL, NAMES_EXACT.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from datasource_governance.domain.rules import Code, Number, RangeRule
from datasource_governance.evaluation.number_line import (
    ExactNumbers,
    FloatNumbers,
    NumberLine,
    Point,
    as_written,
    number_line,
    numbers_among,
)
from datasource_governance.quality.literals import POSTGRESQL, number_literal, text_literal

if TYPE_CHECKING:
    import pyarrow as pa

ALWAYS, NEVER = "TRUE", "FALSE"
_HUGE = 1 << 127
"""The integers of DuckDB are smaller than this."""


class SqlColumn(Protocol):
    """One column, by an expression for its value."""

    @property
    def is_null(self) -> str:
        """True where the value is null, or NaN."""
        ...

    @property
    def key(self) -> str | None:
        """A value that is equal, and null, where the column is; None if the database has none."""
        ...

    def outside(self, rule: RangeRule) -> str:
        """True where a value is outside of the bounds, or no number; of a null anything."""
        ...

    def listed(self, codes: tuple[Code, ...]) -> str:
        """True where a value is one of the codes; of a null anything."""
        ...


def sql_column(expression: str, kind: "pa.DataType", dialect: str) -> SqlColumn:
    """Return the column that is read as an Arrow type."""
    import pyarrow as pa

    types = pa.types
    if dialect == POSTGRESQL and types.is_decimal(kind):
        return _Numerics(expression)
    line = number_line(pa.chunked_array([], kind))
    if line is not None:
        if dialect != POSTGRESQL and isinstance(line, ExactNumbers) and not _scale(line):
            # Wide integers are told as others, because only values decide what they become.
            line.least, line.greatest = -_HUGE, _HUGE - 1
        return _Numbers(expression, kind, dialect, line)
    if types.is_boolean(kind):
        return _Booleans(expression)
    if types.is_nested(kind):
        return _Nested(expression)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return _Words(expression) if dialect == POSTGRESQL else _Text(expression)
    return _Values(expression)


class _Values:
    """Values that no policy can spell, such as dates: none is a number, and none is a code."""

    def __init__(self, expression: str) -> None:
        self._value = expression

    @property
    def is_null(self) -> str:
        return f"{self._value} IS NULL"

    @property
    def key(self) -> str | None:
        return self._value

    def outside(self, rule: RangeRule) -> str:  # noqa: ARG002 - no bound permits one
        return ALWAYS

    def listed(self, codes: tuple[Code, ...]) -> str:  # noqa: ARG002 - no code is one
        return NEVER


class _Nested(_Values):
    """Lists, in which databases do not find NaN and -0.0 as equal as this package does."""

    @property
    @override
    def key(self) -> None:
        return None


class _Booleans(_Values):
    @override
    def listed(self, codes: tuple[Code, ...]) -> str:
        return _among(self._value, [str(code).upper() for code in codes if isinstance(code, bool)])


class _Text(_Values):
    """Text of DuckDB, as its bytes: a column can have a collation, and bytes have none."""

    @property
    @override
    def key(self) -> str:
        return f"encode(CAST({self._value} AS VARCHAR))"

    @override
    def listed(self, codes: tuple[Code, ...]) -> str:
        texts = [text_literal(code, "duckdb") for code in codes if isinstance(code, str)]
        return _among(self.key, [f"encode({text})" for text in texts])


class _Numerics(_Values):
    """`numeric` of Postgres, of any precision: it is compared with decimal text."""

    def __init__(self, expression: str) -> None:
        super().__init__(expression)
        self._is_nan = f"{expression} = CAST('NaN' AS numeric)"

    @property
    @override
    def is_null(self) -> str:
        return f"({self._value} IS NULL OR {self._is_nan})"

    @property
    @override
    def key(self) -> str:
        return f"CASE WHEN {self._is_nan} THEN NULL ELSE {self._value} END"

    @override
    def outside(self, rule: RangeRule) -> str:
        return _beyond(self._value, _numeric(rule.minimum), _numeric(rule.maximum))

    @override
    def listed(self, codes: tuple[Code, ...]) -> str:
        return _among(self._value, [_numeric(number) or "" for number in numbers_among(codes)])


class _Words(_Values):
    """Text of Postgres, in no collation.

    `concat` spells a value as it is read: a cast would cut the blanks off a `char`.
    """

    def __init__(self, expression: str) -> None:
        super().__init__(expression)
        self._text = f'concat({expression}) COLLATE "C"'

    @property
    @override
    def key(self) -> str:
        # `concat` makes an empty text of null.
        return f"CASE WHEN {self._value} IS NOT NULL THEN {self._text} END"

    @override
    def listed(self, codes: tuple[Code, ...]) -> str:
        # A text of Postgres has no NUL.
        texts = [code for code in codes if isinstance(code, str) and "\0" not in code]
        return _among(self._text, [text_literal(text, POSTGRESQL) for text in texts])


class _Numbers(_Values):
    """Numbers of one width."""

    def __init__(
        self, expression: str, kind: "pa.DataType", dialect: str, line: NumberLine
    ) -> None:
        super().__init__(expression)
        self._line = line
        self._scale = _scale(line)
        self._is_postgres = dialect == POSTGRESQL
        self._type = _sql_type(kind, dialect)
        self._has_nan = isinstance(line, FloatNumbers)

    @property
    @override
    def is_null(self) -> str:
        if not self._has_nan:
            return super().is_null
        return f"({self._value} IS NULL OR {self._is_nan})"

    @property
    def _is_nan(self) -> str:
        # Postgres, and only that, finds NaN equal to itself.
        nan = f"{self._value} = CAST('NaN' AS {self._type})"
        return nan if self._is_postgres else f"isnan({self._value})"

    @property
    @override
    def key(self) -> str:
        if not self._has_nan:
            return self._value
        return f"CASE WHEN {self._is_nan} THEN NULL ELSE {self._value} END"

    @override
    def outside(self, rule: RangeRule) -> str:
        line = self._line
        low = None if rule.minimum is None else line.ceiling(line.place(rule.minimum))
        high = None if rule.maximum is None else line.floor(line.place(rule.maximum))
        if (low is not None and low > line.greatest) or (high is not None and high < line.least):
            return ALWAYS
        return _beyond(
            self._value,
            None if low is None or low <= line.least else self._literal(low),
            None if high is None or high >= line.greatest else self._literal(high),
        )

    @override
    def listed(self, codes: tuple[Code, ...]) -> str:
        line = self._line
        places = [line.place(number) for number in numbers_among(codes)]
        points = [
            line.floor(place)
            for place in places
            if line.floor(place) == place and line.least <= place <= line.greatest
        ]
        return _among(self._value, [self._literal(point) for point in points])

    def _literal(self, point: Point) -> str:
        if isinstance(point, int) and isinstance(self._line, ExactNumbers):
            return number_literal(_decimal_text(point, self._scale), self._type)
        return number_literal(repr(float(point)), self._type)


def _among(value: str, literals: Iterable[str]) -> str:
    listed = ", ".join(literals)
    return f"{value} IN ({listed})" if listed else NEVER


def _beyond(value: str, low: str | None, high: str | None) -> str:
    sides = [f"{value} < {low}"] if low else []
    sides += [f"{value} > {high}"] if high else []
    return f"({' OR '.join(sides)})" if sides else NEVER


def _numeric(number: Number | None) -> str | None:
    """Return a number as its decimal text says it."""
    if number is None:
        return None
    scale = 0
    units = as_written(number)
    while units.denominator > 1:
        units, scale = units * 10, scale + 1
    return number_literal(_decimal_text(units.numerator, scale), "numeric")


def _decimal_text(units: int, scale: int) -> str:
    """Return a count of units of a scale as digits, with no exponent and none of them lost."""
    digits = str(abs(units)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return f"{'-' * (units < 0)}{whole}{'.' * bool(fraction)}{fraction}"


def _scale(line: NumberLine) -> int:
    return getattr(line.column.type, "scale", 0)


def _sql_type(kind: "pa.DataType", dialect: str) -> str:
    """Return a type that has every value of the column, and is compared with it exactly."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return "float8"
    if dialect == POSTGRESQL:
        return "int8"
    scaled = pa.types.is_decimal(kind) and kind.scale
    return f"decimal({kind.precision}, {kind.scale})" if scaled else "hugeint"
