"""How a CSV file is written: what a declaration or a command says of it.

Source: SPEC section 3 ("CSV reading is strict and declared").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from datasource_governance.domain.schema import DataType
from datasource_governance.domain.strict_json import pointer
from datasource_governance.errors import InvalidArgumentError, Problem

DECLARABLE = frozenset(DataType) - {
    DataType.BINARY,
    DataType.LIST,
    DataType.OBJECT,
    DataType.UNKNOWN,
}
"""The types a CSV cell can spell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How a CSV file is written. Nothing of it is guessed.

    `delimiter` is one ASCII character, `decimal` a point or a comma, `encoding` a text encoding
    that Python knows. `types` declares the logical types of some columns; the others are inferred
    over all rows. A declared `string` is taken literally.

    Raises:
        InvalidArgumentError: listing every option that is not of this form.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    types: Mapping[str, DataType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [*_sign_problems(self), *_encoding_problems(self), *_type_problems(self)]
        if problems:
            message = "CSV options: " + "; ".join(problem.message for problem in problems)
            raise InvalidArgumentError(message, problems=tuple(problems))
        types = {name: DataType(data_type) for name, data_type in self.types.items()}
        object.__setattr__(self, "types", MappingProxyType(types))


def _option_problem(message: str, *path: str) -> Problem:
    """Return a problem with an option of a declaration, `path` being where it is written there."""
    return Problem(kind="invalid_value", pointer=pointer(*path), message=message, names=path[-1:])


def _sign_problems(options: CsvOptions) -> list[Problem]:
    problems = []
    delimiter = options.delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        message = "delimiter must be one ASCII character, no quote and no line end"
        problems.append(_option_problem(message, "delimiter"))
    if options.decimal not in {".", ","}:
        problems.append(_option_problem("decimal must be '.' or ','", "decimal"))
    return problems


def _encoding_problems(options: CsvOptions) -> list[Problem]:
    try:
        "".encode(options.encoding)
    except (LookupError, ValueError):
        pass
    else:
        return []
    message = f"{options.encoding!r} is not a text encoding"
    return [_option_problem(message, "encoding")]


def _type_problems(options: CsvOptions) -> list[Problem]:
    allowed = ", ".join(sorted(DECLARABLE))
    return [
        _option_problem(f"the type of {name!r} must be one of {allowed}", "schema", name)
        for name, data_type in options.types.items()
        if data_type not in DECLARABLE
    ]
