"""Rules about rows as expectations of Great Expectations, and what they find in a batch.

A batch holds just the columns that a rule names, and calls them by their places: a field name
never reaches an expression language, and filtering copies no column that the rule is not about.
Results come back in another order than they were asked for, so each is found by its meta; they are
asked for without values.

Source: SPEC sections 2.1 and 14; facts on the quality plugin, 8.3, 8.6, 8.8, and 9 number 2.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from datasource_governance.domain.quality_expectation import ContentRule
from datasource_governance.domain.rules import (
    NotNullRule,
    RangeRule,
    ReferentialRule,
    RowCountRule,
    UniqueRule,
)
from datasource_governance.quality.providers.gx_columns import GxColumn, Interval, Permitted

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.datasource.fluent.interfaces import Batch

Found = Mapping[str, Any]
"""What an expectation found: whether it holds, counts and places of rows."""

_RESULT_FORMAT: Final = MappingProxyType(
    {
        "result_format": "COMPLETE",
        "exclude_unexpected_values": True,
        # It would spell out the places of all rows once more.
        "return_unexpected_index_query": False,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One expectation of those that make up a rule; the rows that they find are united.

    Attributes:
        type: The name of its class.
        arguments: What the class takes.
        least: From how many rows on these are violations: one null repeats no other.
    """

    type: str
    arguments: Mapping[str, object]
    least: int = 1


def parts_of(rule: ContentRule, columns: Sequence[GxColumn]) -> list[Part]:
    """Return the expectations of a rule over a batch of the columns that it names, in order."""
    return list(_parts(rule, columns))


def no_rows_of(query: str) -> Part:
    """Return the expectation that a query gives no rows; `observed_value` is how many it gives."""
    # A word in braces or behind a colon would be taken for a parameter.
    exact = query.replace("{", "{{").replace("}", "}}").replace(":", r"\:")
    return Part(type="ExpectNoFailedRows", arguments={"unexpected_rows_query": exact})


def validated(batch: "Batch", rules: Sequence[Sequence[Part]]) -> list[list[Found | None]]:
    """Return what the parts of rules found, None for one that was not evaluated once.

    Raises:
        Exception: of any class, with cells in its text.
    """
    import great_expectations as gx

    expectations = [
        _classes()[part.type](**part.arguments, meta={"rule": place, "part": number})
        for place, parts in enumerate(rules)
        for number, part in enumerate(parts)
    ]
    suite = gx.ExpectationSuite(name="rules", expectations=expectations)
    answered: dict[tuple[int, int], list[Found | None]] = defaultdict(list)
    for result in batch.validate(suite, result_format=dict(_RESULT_FORMAT)).results:
        meta = result.expectation_config.meta
        answered[meta["rule"], meta["part"]].append(_found(result))
    once = {place: found[0] for place, found in answered.items() if len(found) == 1}
    return [
        [once.get((place, number)) for number in range(len(parts))]
        for place, parts in enumerate(rules)
    ]


def _found(result: "ExpectationValidationResult") -> Found | None:
    info = result.exception_info or {}
    # One report, or one for each metric that failed.
    reports = [info] if "raised_exception" in info else list(info.values())
    if any(report["raised_exception"] for report in reports):
        return None
    return {**result.result, "success": result.success}


def _parts(rule: ContentRule, columns: Sequence[GxColumn]) -> Iterator[Part]:
    match rule:
        case RowCountRule():
            bounds = {"min_value": rule.minimum, "max_value": rule.maximum}
            yield Part(type="ExpectTableRowCountToBeBetween", arguments=bounds)
        case NotNullRule():
            yield from (_not_null(place) for place in range(len(rule.fields)))
        case UniqueRule():
            yield from _unique(rule)
        case RangeRule() | ReferentialRule():
            if not rule.allow_null:
                yield _not_null(0)
            yield _within(columns[0].permitted(rule))


def _not_null(place: int, least: int = 1) -> Part:
    arguments = {"column": str(place)}
    return Part(type="ExpectColumnValuesToNotBeNull", arguments=arguments, least=least)


def _unique(rule: UniqueRule) -> Iterator[Part]:
    places = [str(place) for place in range(len(rule.fields))]
    if len(places) > 1:
        ignored = "any_value_is_missing" if rule.ignore_nulls else "never"
        arguments = {"column_list": places, "ignore_row_if": ignored}
        yield Part(type="ExpectCompoundColumnsToBeUnique", arguments=arguments)
        return
    yield Part(type="ExpectColumnValuesToBeUnique", arguments={"column": places[0]})
    if not rule.ignore_nulls:
        yield _not_null(0, least=2)


def _within(permitted: Permitted) -> Part:
    if isinstance(permitted, Interval):
        bounds = {"min_value": permitted.low, "max_value": permitted.high}
        return Part(type="ExpectColumnNumbersToBeBetween", arguments={"column": "0", **bounds})
    if not permitted:
        return Part(type="ExpectColumnValuesToBeNull", arguments={"column": "0"})
    arguments = {"column": "0", "value_set": permitted}
    return Part(type="ExpectColumnValuesToBeInSet", arguments=arguments)


@functools.cache
def _classes() -> Mapping[str, Any]:
    import great_expectations.expectations as gxe

    class ExpectColumnNumbersToBeBetween(gxe.ExpectColumnValuesToBeBetween):  # type: ignore[misc]  # it is untyped
        """Like its base, but bounds stay what they are; there they become doubles."""

        min_value: Any = None
        max_value: Any = None

    class ExpectNoFailedRows(gxe.UnexpectedRowsExpectation):  # type: ignore[misc]  # it is untyped
        """Like its base, but the database counts; there all rows are fetched, too."""

        metric_dependencies = ("unexpected_rows_query.row_count",)

        def _validate(self, metrics: Mapping[str, int], *_: object, **__: object) -> Found:
            count = metrics["unexpected_rows_query.row_count"]
            return {"success": count == 0, "result": {"observed_value": count}}

    own = (ExpectColumnNumbersToBeBetween, ExpectNoFailedRows)
    return {**vars(gxe), **{one.__name__: one for one in own}}
