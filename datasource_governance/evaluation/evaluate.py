"""Validate a payload against a quality policy; the only thing that looks inside one.

Source: SPEC section 5.
"""

import importlib
import os
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, cast

from datasource_governance.domain.appraisal import Appraisal
from datasource_governance.domain.artifact import MediaType
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.validation import Validation, assemble
from datasource_governance.evaluation import outcomes
from datasource_governance.evaluation.boundary import attempt, not_evaluable
from datasource_governance.evaluation.detect import detect_schema
from datasource_governance.evaluation.fingerprint import fingerprint
from datasource_governance.evaluation.frames import Engine
from datasource_governance.evaluation.payload import TypedPayload, decode_payload
from datasource_governance.evaluation.streaming import BATCHES_IN_MEMORY, validate_batches
from datasource_governance.ports import Payload
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.files import is_address, read_file
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.lazy import lazy_batches
from datasource_governance.sources.open_files import decoded_bytes_of, read_open, scan_open
from datasource_governance.sources.scan import decoded_bytes, scan_file

if TYPE_CHECKING:
    from datasource_governance.sources.sql.read import SqlSource


_LOADING = Lock()


class PanderaEvaluator:
    """Runs the compiled Pandera schema over the payload; implements `ports.Evaluator`.

    The engine is the library whose Pandera backend runs the checks; verdict, counts and hashed
    bytes are the same on each. pandas is the default because its Arrow dtypes hold every Arrow type
    as it is and share its memory, where Polars needs some columns carried as another type.
    """

    def __init__(self, engine: Engine = "pandas", appraisal: Appraisal | None = None) -> None:
        self._engine: Engine = engine
        self._appraisal = appraisal

    @property
    def provider(self) -> ProviderBinding | None:
        """See ports.Evaluator."""
        return None if self._appraisal is None else self._appraisal.provider

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
        _load(self._engine)
        # Only the payload is a local here, so a traceback that prints locals prints no table.
        validation = attempt(lambda: self._validation(policy, _typed(payload), previous))
        if validation is None:
            raise not_evaluable()
        return validation if self._appraisal is None else self._appraisal.of(validation)

    def fingerprint(self, payload: Payload) -> Sha256:
        """Return the fingerprint of the content, as in a validation.

        Raises:
            EvaluationError: as `validate`.
        """
        found = attempt(lambda: fingerprint(_typed(payload).table)[0])
        if found is None:
            raise not_evaluable()
        return found

    def _validation(
        self, policy: QualityPolicy, payload: TypedPayload, previous: TableSchema | None
    ) -> Validation:
        table = payload.table
        schema = detect_schema(table, policy)
        diff = None if previous is None else compare_schemas(previous, schema, policy.schema_policy)
        found = outcomes.of_table(policy, table, self._engine)
        content, byte_count = fingerprint(table)
        return assemble(
            policy=policy,
            rules=outcomes.numbered(found, rows_numbered=payload.rows_numbered),
            schema=schema,
            schema_diff=diff,
            row_count=table.num_rows,
            byte_count=byte_count,
            fingerprint=content,
            engine=self._engine,
            notices=outcomes.notices(table.column_names, rows_numbered=payload.rows_numbered),
        )


@cache
def _load(engine: Engine) -> None:
    """Import Pandera for an engine, one thread at a time.

    Its modules import each other in circles, so threads that begin at different ones block, and
    Python then lets one of them fail.
    """
    with _LOADING:
        importlib.import_module(f"pandera.{engine}")


def _typed(payload: Payload) -> TypedPayload:
    if isinstance(payload, TypedPayload):
        return payload
    return TypedPayload(decode_payload(payload.encoded()))


def validate(
    policy: QualityPolicy,
    data: object,
    previous_schema: TableSchema | None = None,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Validation:
    """Validate data in memory, or a source that is read in batches.

    Args:
        policy: The rules.
        data: A pandas or Polars frame, an Arrow table or record batch; or a Polars LazyFrame or a
            `SqlSource`, which need not fit into memory.
        previous_schema: The schema to compare with.
        memory_bytes: What a LazyFrame or `SqlSource` may take in memory, about.
        on_rows: Told now and then how many of their rows have been judged.

    Raises:
        InvalidArgumentError: data of another class.
        UnreadableSourceError: repeated or blank names, cells without a typed form, a query that
            fails.
        EvaluationError: as `PanderaEvaluator.validate`.
    """
    batch_bytes = memory_bytes // BATCHES_IN_MEMORY
    if type(data).__name__ == "SqlSource":
        # Only a caller that has one has imported SQLAlchemy.
        from datasource_governance.sources.sql.read import sql_batches

        with sql_batches(cast("SqlSource", data), batch_bytes=batch_bytes) as rows:
            return validate_batches(policy, rows, previous_schema, memory_bytes, on_rows)
    if (batches := lazy_batches(data, batch_bytes)) is not None:
        return validate_batches(policy, batches, previous_schema, memory_bytes, on_rows)
    return PanderaEvaluator().validate(policy, TypedPayload(from_data(data)), previous_schema)


def validate_file(
    policy: QualityPolicy,
    path: str | os.PathLike[str],
    *,
    csv: CsvOptions | None = None,
    previous_schema: TableSchema | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Validation:
    """Validate a CSV, Parquet or Arrow IPC file, in memory or, where it is larger, in batches.

    The engine's name tells which. A file behind an address is decoded in a child process, whose
    memory is limited.

    Args:
        policy: The rules.
        path: A local file, or an address of fsspec with `://`.
        csv: How a CSV file is written.
        previous_schema: The schema to compare with.
        memory_bytes: What the typed table may take in memory.
        on_rows: Told now and then how many rows have been judged.

    Raises:
        UnreadableSourceError: as `read_file`.
        EvaluationError: as `PanderaEvaluator.validate`.
    """
    if is_address(path) or decoded_bytes(path, csv) <= memory_bytes:
        payload = TypedPayload(read_file(path, csv))
        return PanderaEvaluator().validate(policy, payload, previous_schema)
    batches = scan_file(path, csv, batch_bytes=memory_bytes // BATCHES_IN_MEMORY)
    return validate_batches(policy, batches, previous_schema, memory_bytes, on_rows)


def validate_open(
    policy: QualityPolicy,
    file: BinaryIO,
    media_type: MediaType,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Validation:
    """Validate an open Parquet or Arrow IPC file, as `validate_file`, in this process.

    Raises:
        UnreadableSourceError: as `validate_file`; also when the file changes.
        EvaluationError: as `PanderaEvaluator.validate`.
    """
    if decoded_bytes_of(file, media_type) <= memory_bytes:
        return PanderaEvaluator().validate(policy, TypedPayload(read_open(file, media_type)), None)
    batches = scan_open(file, media_type, memory_bytes // BATCHES_IN_MEMORY)
    return validate_batches(policy, batches, None, memory_bytes, on_rows)
