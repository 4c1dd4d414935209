"""Pandera check and schema classes that carry rules.

A check computes from the frame that Pandera hands it, gives Pandera one boolean, and leaves its
outcome in a recorder, so that Pandera has no failure frame to collect cells from. All checks of one
`validate` call share the frame's typed form; the next call starts anew. The schema classes undo
what would skip checks: environment variables, configuration contexts, lazy frames, samples.

Classes are made on first use, because Pandera and the frame libraries are slow to import.

Source: SPEC section 5.
"""

import functools
import inspect
import os
from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from datasource_governance.domain.quality_policy import ReferentialRule, Rule, UniqueRule
from datasource_governance.domain.validation import RuleOutcome, Status
from datasource_governance.errors import EvaluationError, InvalidArgumentError
from datasource_governance.evaluation.boundary import attempt
from datasource_governance.evaluation.columns import FrameColumns
from datasource_governance.evaluation.kernel import evaluate_rule, not_evaluated

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Recorder = MutableMapping[str, RuleOutcome]
"""Outcomes by rule id, as the checks of the latest `validate` call left them."""


_MANY_ROWS = 250_000
"""From here on a rule takes long enough to be worth a thread."""


class _Pass:
    """What the checks of one `validate` call share: the outcomes of all rules over their frame.

    The first check that is handed the frame evaluates them side by side.
    """

    def __init__(self, rules: Sequence[Rule], typed: "pa.Schema | None") -> None:
        self._rules = rules
        self._typed = typed
        self._frame: object = None
        self._found: dict[str, RuleOutcome] = {}

    def outcome(self, rule: Rule, frame: object) -> RuleOutcome:
        """Return what the rule finds in the frame; an exception is `error`, never `failed`."""
        if self._frame is not frame:
            self._frame = frame
            self._found = self._evaluated(frame)
        return self._found.get(rule.id) or not_evaluated(rule)

    def _evaluated(self, frame: object) -> dict[str, RuleOutcome]:
        columns = attempt(lambda: FrameColumns(_eager(frame), self._typed))
        if columns is None:
            return {}

        def found(rule: Rule) -> RuleOutcome:
            return attempt(lambda: evaluate_rule(rule, columns)) or not_evaluated(rule)

        if columns.row_count < _MANY_ROWS:
            return {rule.id: found(rule) for rule in self._rules}
        # What takes longest comes first, so that no thread is left with it alone.
        ordered = sorted(self._rules, key=_cost, reverse=True)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return {outcome.id: outcome for outcome in threads.map(found, ordered)}


def _cost(rule: Rule) -> int:
    """Return about how long a rule takes, compared with one that looks at bits."""
    if isinstance(rule, UniqueRule):
        return 2 + len(rule.fields)
    return 2 if isinstance(rule, ReferentialRule) else 1


_PASS: ContextVar[_Pass] = ContextVar("pass")


class EveryRow:
    """What a Pandera schema class needs so that all its checks run, over all rows.

    Mixed in before `DataFrameSchema`. `typed` is the Arrow schema of the typed form where it is
    known, for what a frame library cannot carry.
    """

    def __init__(self, typed: "pa.Schema | None", **definition: object) -> None:
        super().__init__(**definition)
        self._rules_typed = typed

    @staticmethod
    def register_default_backends(check_obj_cls: type) -> None:
        """Register nothing: the backend is bound, whatever the environment asks for."""

    def validate(self, check_obj: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - Pandera is untyped
        """Validate as Pandera does, whatever its configuration, and return the frame.

        Raises:
            InvalidArgumentError: for `head`, `tail` or `sample`; a verdict is about all rows.
            EvaluationError: the query of a lazy frame failed.
            pandera.errors.SchemaErrors: naming the rules that do not pass, without the frame.
        """
        frame = self._collected(check_obj)
        pandera_validate = super().validate  # type: ignore[misc]  # the class mixed with has it
        given = inspect.signature(pandera_validate).bind(frame, *args, **options).arguments
        if any(given.get(name) is not None for name in ("head", "tail", "sample")):
            raise InvalidArgumentError("a verdict is about all rows; leave out head, tail, sample")
        with self._whole_pass():
            result = pandera_validate(**given)
        return result if frame is check_obj else result.lazy()

    def _collected(self, frame: Any) -> Any:  # noqa: ANN401 - Pandera is untyped
        """Return a lazy frame collected: Pandera would skip its checks, or run its query for each.

        Only the columns that rules name are read, and one where they name none, for its height.
        """
        if not _is_lazy(frame):
            return frame
        names = {name for check in self.checks for name in check.rule.fields}  # type: ignore[attr-defined]  # Pandera's
        collected = attempt(lambda: _of_columns(frame, names).collect())
        if collected is None:
            raise EvaluationError("the query of the lazy frame failed")
        return collected

    @contextmanager
    def _whole_pass(self) -> Iterator[None]:
        from pandera.config import ValidationDepth, config_context
        from pandera.errors import SchemaError, SchemaErrors

        rules = [check.rule for check in self.checks]  # type: ignore[attr-defined]  # Pandera's
        token = _PASS.set(_Pass(rules, self._rules_typed))
        try:
            with config_context(
                validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA
            ):
                yield
        except (SchemaError, SchemaErrors) as error:
            error.data = None
            raise
        finally:
            _PASS.reset(token)


def _is_lazy(frame: object) -> bool:
    return type(frame).__name__ == "LazyFrame"


def _eager(frame: Any) -> Any:  # noqa: ANN401 - Pandera is untyped
    """Return the frame that Pandera made lazy; its columns are in memory already."""
    return frame.collect() if _is_lazy(frame) else frame


def _of_columns(query: "pl.LazyFrame", names: set[str]) -> "pl.LazyFrame":
    import polars.selectors as cs

    there = query.collect_schema().names()
    wanted = [name for name in there if name in names] or there[:1]
    return query.select(cs.by_name(wanted))


@functools.cache
def check_class() -> Any:  # noqa: ANN401 - Pandera is untyped
    """Return the Pandera check that carries one rule: `RuleCheck(rule, recorder)`."""
    from pandera.api.base.checks import CheckResult
    from pandera.api.checks import Check

    class RuleCheck(Check):
        """One rule, named by its id. It answers Pandera itself, with one boolean and no cells."""

        def __init__(self, rule: Rule, recorder: Recorder) -> None:
            super().__init__(self.passes, name=rule.id, ignore_na=False)
            self.rule = rule
            self.recorder = recorder

        def passes(self, frame: object) -> bool:
            """Evaluate the rule over the frame, record the outcome and tell whether it passed."""
            outcome = (_PASS.get(None) or _Pass([self.rule], None)).outcome(self.rule, frame)
            self.recorder[self.rule.id] = outcome
            return outcome.status is Status.PASSED

        def __call__(self, check_obj: object, column: str | None = None) -> CheckResult:  # type: ignore[explicit-override]  # typing.override is new in 3.12  # noqa: ARG002 - Pandera's signature
            passed = self.passes(check_obj)
            answer = _Known(passed=passed) if _is_lazy(check_obj) else passed
            return CheckResult(answer, answer, None, None)

    return RuleCheck


class _Known:
    """A boolean as Pandera's Polars backend takes its answers: a query, collected to one item."""

    def __init__(self, *, passed: bool) -> None:
        self._passed = passed

    def collect(self) -> "_Known":
        """Return the answer; there is nothing to run."""
        return self

    def item(self) -> bool:
        """Return the boolean."""
        return self._passed


@functools.cache
def pandas_schema_class() -> Any:  # noqa: ANN401 - Pandera is untyped
    """Return the schema class for pandas frames, bound to Pandera's own pandas backend."""
    import pandas as pd
    from pandera.backends.pandas.container import DataFrameSchemaBackend
    from pandera.pandas import DataFrameSchema

    class PandasRules(EveryRow, DataFrameSchema):
        """One check per rule over a pandas frame."""

    PandasRules.register_backend(pd.DataFrame, DataFrameSchemaBackend)
    return PandasRules


@functools.cache
def polars_schema_class() -> Any:  # noqa: ANN401 - Pandera is untyped
    """Return the schema class for Polars frames, bound to Pandera's own Polars backend."""
    import polars as pl
    from pandera.api.base.error_handler import ErrorHandler
    from pandera.backends.polars.container import DataFrameSchemaBackend
    from pandera.errors import FailureCaseMetadata, SchemaError
    from pandera.polars import DataFrameSchema

    class PolarsRules(EveryRow, DataFrameSchema):
        """One check per rule over a Polars frame, lazy or not."""

    class OneTable(DataFrameSchemaBackend):
        """Pandera's backend, which would make a table per rule that does not pass, to join them."""

        def failure_cases_metadata(  # type: ignore[explicit-override]  # typing.override is new in 3.12
            self, schema_name: str, schema_errors: list[SchemaError]
        ) -> FailureCaseMetadata:
            """Return the failures by name; none has a case, so there is no cell to collect."""
            handler = ErrorHandler()
            handler.collect_errors(schema_errors)
            numbers = [error.check_index for error in schema_errors]
            cases = pl.DataFrame(
                {
                    "failure_case": [False] * len(numbers),
                    "schema_context": ["PolarsRules"] * len(numbers),
                    "column": [schema_name] * len(numbers),
                    "check": [error.check.name for error in schema_errors],
                    "check_number": pl.Series(numbers, dtype=pl.Int32),
                    "index": pl.Series([None] * len(numbers), dtype=pl.Int32),
                }
            )
            counts = Counter(error.reason_code.name for error in schema_errors)
            summary: Any = handler.summarize(schema_name)  # type: ignore[no-untyped-call]  # Pandera's
            message = {category: dict(reasons) for category, reasons in summary.items()}
            return FailureCaseMetadata(cases, message, dict(counts))

    PolarsRules.register_backend(pl.DataFrame, OneTable)
    return PolarsRules
