"""Validate a payload against a quality policy; the only thing that looks inside one.

Source: SPEC section 5.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasource_governance.domain.quality_policy import QualityPolicy, Rule
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.validation import RuleOutcome, Status, Validation, assemble
from datasource_governance.errors import EvaluationError
from datasource_governance.evaluation.boundary import attempt
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.detect import detect_schema
from datasource_governance.evaluation.fingerprint import fingerprint
from datasource_governance.evaluation.frames import Engine, frame_of
from datasource_governance.evaluation.kernel import not_evaluated
from datasource_governance.evaluation.payload import TypedPayload, decode_payload
from datasource_governance.ports import Payload
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.typed import similar_names

if TYPE_CHECKING:
    import pyarrow as pa

UNNUMBERED = "rows are not numbered: the source has no order"


class PanderaEvaluator:
    """Runs the compiled Pandera schema over the payload; implements `ports.Evaluator`.

    The engine is the library whose Pandera backend runs the checks; verdict, counts and hashed
    bytes are the same on each. pandas is the default because its Arrow dtypes hold every Arrow type
    as it is and share its memory, where Polars needs some columns carried as another type.
    """

    def __init__(self, engine: Engine = "pandas") -> None:
        self._engine: Engine = engine

    def validate(
        self, policy: QualityPolicy, payload: Payload, previous: TableSchema | None
    ) -> Validation:
        """Return the validation: the same bytes for the same payload, policy and evaluator version.

        A rule without a receipt, or one on which Pandera and the receipt disagree, could not be
        evaluated; it never counts as passed.

        Raises:
            EvaluationError: the payload is malformed or something went wrong; with neither a value,
                nor cause, nor context.
        """
        # Only the payload is a local here, so a traceback that prints locals prints no table.
        validation = attempt(lambda: self._validation(policy, _typed(payload), previous))
        if validation is None:
            raise EvaluationError(
                "the payload could not be evaluated; nothing of it is said here, because errors of "
                "the libraries used quote cells"
            )
        return validation

    def _validation(
        self, policy: QualityPolicy, payload: TypedPayload, previous: TableSchema | None
    ) -> Validation:
        table = payload.table
        schema = detect_schema(table, policy)
        diff = None if previous is None else compare_schemas(previous, schema, policy.schema_policy)
        content, byte_count = fingerprint(table)
        return assemble(
            policy=policy,
            rules=_numbered(self._outcomes(policy, table), payload),
            schema=schema,
            schema_diff=diff,
            row_count=table.num_rows,
            byte_count=byte_count,
            fingerprint=content,
            engine=self._engine,
            notices=_notices(payload),
        )

    def _outcomes(self, policy: QualityPolicy, table: "pa.Table") -> tuple[RuleOutcome, ...]:
        from pandera.errors import SchemaErrors

        receipts: dict[str, RuleOutcome] = {}
        schema: Any = pandera_schema(policy, self._engine, recorder=receipts, typed=table.schema)
        refused: set[str] = set()
        try:
            schema.validate(frame_of(table, self._engine), lazy=True)
        except SchemaErrors as errors:
            refused = {error.check.name for error in errors.schema_errors}
        return tuple(
            demand(rule, receipts.get(rule.id), passed=rule.id not in refused)
            for rule in policy.rules
        )


def _typed(payload: Payload) -> TypedPayload:
    if isinstance(payload, TypedPayload):
        return payload
    return TypedPayload(decode_payload(payload.encoded()))


def _numbered(outcomes: tuple[RuleOutcome, ...], payload: TypedPayload) -> tuple[RuleOutcome, ...]:
    """Leave out row numbers where the source has no order (SPEC section 3)."""
    if payload.rows_numbered:
        return outcomes
    return tuple(replace(outcome, rows=None) for outcome in outcomes)


def demand(rule: Rule, receipt: RuleOutcome | None, *, passed: bool) -> RuleOutcome:
    """Return a rule's receipt; without one, or where Pandera disagrees, it was not evaluated."""
    if receipt is None or (receipt.status is Status.PASSED) is not passed:
        return not_evaluated(rule)
    return receipt


def _notices(payload: TypedPayload) -> tuple[str, ...]:
    similar = [
        f"fields that differ only in case or Unicode form: {', '.join(map(repr, group))}"
        for group in similar_names(payload.table.column_names)
    ]
    unordered = [] if payload.rows_numbered else [UNNUMBERED]
    return (*similar, *unordered)


def validate(
    policy: QualityPolicy, data: object, previous_schema: TableSchema | None = None
) -> Validation:
    """Validate data in memory: a pandas or Polars frame, an Arrow table or record batch.

    Raises:
        InvalidArgumentError: data of another class.
        UnreadableSourceError: repeated or blank names, or cells without a typed form.
        EvaluationError: as `PanderaEvaluator.validate`.
    """
    return PanderaEvaluator().validate(policy, TypedPayload(from_data(data)), previous_schema)
