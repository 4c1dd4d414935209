"""Look into artifacts: in a child process, because nobody vouches for what is in them.

What the child answers is believed about the artifact, since nobody else looks at it, and about
nothing else: names, types and severities of rules are the policy's own, and no text of the child's
gets into an outcome.

Source: SPEC sections 3, "Hostile files", 5 and 10.
"""

import io
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from datasource_governance.domain.appraisal import Appraisal
from datasource_governance.domain.artifact import (
    ArtifactReference,
    Description,
    MediaType,
    tampered,
)
from datasource_governance.domain.canonical import Sha256, load_canonical
from datasource_governance.domain.producer_evidence import needs_content
from datasource_governance.domain.quality_policy import QualityPolicy, Rule
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.validation import (
    Reason,
    RuleOutcome,
    Status,
    Validation,
    assemble,
)
from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.evaluation import outcomes
from datasource_governance.evaluation.boundary import not_evaluable
from datasource_governance.evaluation.streaming import ENGINE
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.child import (
    ARROW,
    DEFAULT_CHILD_LIMITS,
    ChildLimits,
    Task,
    answered_table,
    ask_child,
    largest_answer,
)
from datasource_governance.sources.limits import DEFAULT_LIMITS, MEBIBYTE
from datasource_governance.sources.refusal import refused, shielded

if TYPE_CHECKING:
    import pyarrow as pa

_TASKS = "datasource_governance.evaluation.artifact_tasks"
_IMPORTS = (*ARROW, _TASKS)
# Polars, which Pandera needs for this, starts threads and has to be left to each child.
_VALIDATION_IMPORTS = (*_IMPORTS, "datasource_governance.evaluation.evaluate", "pandera")
_NAME = "the artifact"
_BYTES_PER_SECOND = MEBIBYTE
"""How slowly an artifact may be decoded and judged at worst, by its stored bytes."""


class ArtifactReader:
    """See ports.artifacts.ArtifactEvaluator.

    Args:
        memory_bytes: What the rows may take in memory while they are validated.
        child: What the process that looks at an artifact may use; its time grows with the file.
        appraisal: What a platform manifest adds to a validation, if there is one.
    """

    def __init__(
        self,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        child: ChildLimits = DEFAULT_CHILD_LIMITS,
        appraisal: Appraisal | None = None,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._child = child
        self._appraisal = appraisal

    @property
    def provider(self) -> ProviderBinding | None:
        """See ports.artifacts.ArtifactEvaluator."""
        return None if self._appraisal is None else self._appraisal.provider

    def appraised(self, validation: Validation) -> Validation:
        """See ports.artifacts.ArtifactEvaluator."""
        return validation if self._appraisal is None else self._appraisal.of(validation)

    def describe(self, artifact: BinaryIO, media_type: MediaType) -> Description:
        """See ports.artifacts.ArtifactEvaluator."""
        answered = self._ask("describe", artifact, media_type, written_bytes=MEBIBYTE)
        otherwise = refused(_NAME, "decoder_died", "what it says of itself cannot be read")
        return shielded(lambda: _description(load_canonical(answered)), otherwise)

    def judge(self, policy: QualityPolicy, description: Description) -> Mapping[str, RuleOutcome]:
        """See ports.artifacts.ArtifactEvaluator."""
        empty, rows = _without_rows(description.schema), description.row_count
        found = (*outcomes.of_row_count(policy, rows), *outcomes.of_shape(policy, empty))
        # Over no rows only names and types can make a rule fail, whatever rows there are.
        content = {rule.id for rule in policy.rules if needs_content(rule)}
        return {
            one.id: one for one in found if one.id not in content or one.status is not Status.PASSED
        }

    def validate(
        self,
        policy: QualityPolicy,
        artifact: BinaryIO,
        media_type: MediaType,
        previous: TableSchema | None,
    ) -> Validation:
        """See ports.artifacts.ArtifactEvaluator."""
        limits = DEFAULT_LIMITS.streaming(_size(artifact))
        answered = self._ask(
            "validate",
            artifact,
            media_type,
            # Keys that must be unique are written out, with the numbers of their rows.
            written_bytes=2 * limits.table_bytes,
            policy=policy.canonical.decode(),
            memory_bytes=self._memory_bytes,
            folder=tempfile.gettempdir(),
        )
        judged = shielded(lambda: _validation(load_canonical(answered), policy), not_evaluable())
        found = self.appraised(judged)
        if previous is None:
            return found
        diff = compare_schemas(previous, found.schema, policy.schema_policy)
        return replace(found, schema_diff=diff)

    def read(
        self,
        artifact: BinaryIO,
        reference: ArtifactReference,
        *,
        maximum_rows: int,
        maximum_bytes: int,
        columns: Sequence[str] | None = None,
    ) -> "pa.Table":
        """Return the rows in the typed form; of some columns only these are decoded.

        Args:
            artifact: The file that was verified as the reference's.
            reference: What is in it.
            maximum_rows: How many rows are given out, inclusive.
            maximum_bytes: How many bytes they may take in memory, inclusive.
            columns: Names of fields, in the order they are wanted; None for all.

        Raises:
            InvalidArgumentError: a column is repeated, or not in the artifact.
            GuardError: codes `payload_too_large` for more rows; `artifact_tampered` when the rows
                are not as many as the reference says.
            UnreadableSourceError: as `validate`; kind `too_large` for more bytes.
        """
        _check_columns(columns, reference.schema)
        if reference.row_count > maximum_rows:
            raise GuardError(
                f"the artifact has {reference.row_count} rows, the limit is {maximum_rows}",
                code="payload_too_large",
            )
        answered = self._ask(
            "read",
            artifact,
            reference.media_type,
            written_bytes=largest_answer(maximum_bytes),
            columns=columns,
            maximum_bytes=maximum_bytes,
        )
        table = answered_table(_NAME, answered, maximum_bytes)
        if table.num_rows != reference.row_count:
            raise tampered(reference.locator, "it has another number of rows")
        return table

    def _ask(
        self,
        task: str,
        artifact: BinaryIO,
        media_type: MediaType,
        *,
        written_bytes: int,
        **arguments: object,
    ) -> bytes:
        asked = Task(
            function=f"{_TASKS}:{task}",
            file=artifact,
            arguments={"media_type": str(media_type), **arguments},
            written_bytes=written_bytes,
            imports=_VALIDATION_IMPORTS if task == "validate" else _IMPORTS,
        )
        longer = _size(artifact) // _BYTES_PER_SECOND
        child = replace(
            self._child,
            processor_seconds=self._child.processor_seconds + 2 * longer,
            seconds=self._child.seconds + longer,
        )
        try:
            return ask_child(_NAME, asked, child)
        finally:
            artifact.seek(0)


def _size(artifact: BinaryIO) -> int:
    return artifact.seek(0, io.SEEK_END)


def _check_columns(columns: Sequence[str] | None, schema: TableSchema) -> None:
    known = {field.name for field in schema.fields}
    wanted = columns or []
    wrong = [name for name in wanted if name not in known or wanted.count(name) > 1]
    if wrong or columns == []:
        named = ", ".join(map(repr, dict.fromkeys(wrong))) or "none at all"
        raise InvalidArgumentError(
            f"columns must be fields of the artifact, each once, and are not: {named}"
        )


def _description(answered: Any) -> Description:  # noqa: ANN401 - JSON of the child
    with_nulls = frozenset(map(str, answered["with_nulls"]))
    without_nulls = frozenset(map(str, answered["without_nulls"]))
    fields = [
        Field(name=str(name), type=DataType(kind), nullable=name not in without_nulls)
        for name, kind in answered["fields"]
    ]
    return Description(
        schema=TableSchema.of(fields),
        row_count=int(answered["row_count"]),
        with_nulls=with_nulls,
    )


def _without_rows(schema: TableSchema) -> "pa.Table":
    """Return an empty table with a column of some Arrow type for each logical one."""
    import pyarrow as pa

    kinds = {
        DataType.INTEGER: pa.int64(),
        DataType.NUMBER: pa.float64(),
        DataType.STRING: pa.large_string(),
        DataType.BOOLEAN: pa.bool_(),
        DataType.DATE: pa.date32(),
        DataType.DATETIME: pa.timestamp("us"),
        DataType.TIME: pa.time64("us"),
        DataType.BINARY: pa.large_binary(),
        DataType.LIST: pa.list_(pa.null()),
        DataType.OBJECT: pa.struct([]),
        DataType.UNKNOWN: pa.null(),
    }
    return pa.schema([(field.name, kinds[field.type]) for field in schema.fields]).empty_table()


def _validation(answered: Any, policy: QualityPolicy) -> Validation:  # noqa: ANN401 - JSON of the child
    found = {rule["id"]: rule for rule in answered["rules"]}
    schema = TableSchema.of(
        Field(name=str(one["name"]), type=DataType(one["type"]), nullable=bool(one["nullable"]))
        for one in answered["schema"]
    )
    names = [field.name for field in schema.fields]
    return assemble(
        policy=policy,
        rules=tuple(_outcome(rule, found[rule.id]) for rule in policy.rules),
        schema=schema,
        schema_diff=None,
        row_count=int(answered["row_count"]),
        byte_count=int(answered["byte_count"]),
        fingerprint=_digest(answered["fingerprint"]),
        engine=ENGINE,
        notices=outcomes.notices(names, rows_numbered=True),
    )


def _outcome(rule: Rule, answered: Any) -> RuleOutcome:  # noqa: ANN401 - JSON of the child
    affected, rows, reason = (answered[key] for key in ("affected", "rows", "reason"))
    return RuleOutcome(
        id=rule.id,
        type=rule.type,
        severity=rule.severity,
        status=Status(answered["status"]),
        fields=tuple(name for name in rule.fields if name in answered["fields"]),
        affected=None if affected is None else int(affected),
        rows=None if rows is None else tuple(map(int, rows)),
        reason=None if reason is None else Reason(reason),
    )


def _digest(answered: Any) -> Sha256:  # noqa: ANN401 - JSON of the child
    return Sha256(bytes.fromhex(answered).hex())
