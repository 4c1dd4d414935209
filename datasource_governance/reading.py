"""Read what is in force, in the form that is wanted: for the IO manager, and for any program.

Source: SPEC sections 10 and 15.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, overload

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.domain.artifact import ArtifactReference
from datasource_governance.domain.materialization import Materialization
from datasource_governance.evaluation.forms import Form, checked_form, in_form, lazy_scan
from datasource_governance.services import reading
from datasource_governance.services.artifacts import verified_artifact
from datasource_governance.services.reading import CURRENT, DEFAULT_BOUNDS, Bounds, Wanted
from datasource_governance.sources.limits import plain_bytes

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a reader gets: the frame, and the materialization that it is of.

    `byte_count` is what its columns take in memory: nothing yet of a scan of an artifact.
    """

    materialization: Materialization
    frame: Any = field(repr=False)
    byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads from which database, under whose grant as steward, and how much at most."""

    application: Application
    actor: ActorId = SYSTEM
    bounds: Bounds = DEFAULT_BOUNDS

    def load(self, datasource: str, wanted: Wanted = CURRENT, form: Form = "pandas") -> Loaded:
        """Return what is wanted of a datasource.

        A lazy scan has no bounds but those of the queries that are made of it.

        Raises:
            NotFoundError, InvalidArgumentError, GuardError: as `services.reading.read_current`.
            GuardError: codes `artifact_foreign`, `artifact_missing`, `artifact_tampered`, when an
                object is not the one that was published.
            UnreadableSourceError: as `evaluation.forms.in_form`; kind `too_large` for an artifact
                with more bytes than the bounds have.
            ServiceUnavailableError: the database or the store cannot be used.
        """
        work = self.application.work()
        bounds = None if form == "lazy" else self.bounds
        found = reading.read_current(work, datasource, self.actor, wanted, bounds)
        if isinstance(found.payload, ArtifactReference):
            frame, size = self._artifact(datasource, found.payload, wanted, form)
        else:
            frame, size = self._inline(found.payload, wanted, form)
        return Loaded(materialization=found.materialization, frame=frame, byte_count=size)

    def having_given(self, loaded: Loaded) -> "Reader":
        """Return who may give out so much less."""
        given, bounds = loaded.materialization.row_count, self.bounds
        left = Bounds(rows=bounds.rows - given, bytes=bounds.bytes - loaded.byte_count)
        return replace(self, bounds=left)

    def _inline(self, payload: bytes, wanted: Wanted, form: Form) -> tuple[Any, int]:
        from datasource_governance.evaluation.payload import decode_payload

        table = decode_payload(payload)
        if wanted.columns is not None:
            table = table.select(list(wanted.columns))
        size = plain_bytes(table)
        if form != "lazy":
            reading.check_size("bytes", size, self.bounds.bytes)
        return in_form(table, form), size

    def _artifact(
        self, datasource: str, reference: ArtifactReference, wanted: Wanted, form: Form
    ) -> tuple[Any, int]:
        from datasource_governance.evaluation.artifacts import ArtifactReader

        reader, backend = ArtifactReader(), self.application.artifacts()
        whose = {"tenant": self.application.settings.tenant, "datasource": datasource}
        columns = None if wanted.columns is None else list(wanted.columns)
        with verified_artifact(backend, reader, reference, **whose) as artifact:
            if form == "lazy":
                return lazy_scan(artifact.file, reference.media_type, columns), 0
            table = reader.read(
                artifact.file,
                reference,
                maximum_rows=self.bounds.rows,
                maximum_bytes=self.bounds.bytes,
                columns=columns,
            )
        return in_form(table, form), plain_bytes(table)


@overload
def read_current(
    datasource: str,
    *,
    partition: str | None = None,
    materialization: str | None = None,
    columns: Sequence[str] | None = None,
    as_: Literal["pandas"] = "pandas",
) -> "pd.DataFrame": ...
@overload
def read_current(
    datasource: str,
    *,
    partition: str | None = None,
    materialization: str | None = None,
    columns: Sequence[str] | None = None,
    as_: Literal["polars"],
) -> "pl.DataFrame": ...
@overload
def read_current(
    datasource: str,
    *,
    partition: str | None = None,
    materialization: str | None = None,
    columns: Sequence[str] | None = None,
    as_: Literal["arrow"],
) -> "pa.Table": ...
@overload
def read_current(
    datasource: str,
    *,
    partition: str | None = None,
    materialization: str | None = None,
    columns: Sequence[str] | None = None,
    as_: Literal["lazy"],
) -> "pl.LazyFrame": ...
def read_current(
    datasource: str,
    *,
    partition: str | None = None,
    materialization: str | None = None,
    columns: Sequence[str] | None = None,
    as_: Form = "pandas",
) -> "pd.DataFrame | pl.DataFrame | pa.Table | pl.LazyFrame":
    """Return what is in force of a datasource, as the `system` of this environment may read it.

    Args:
        datasource: Its id.
        partition: Which partition, of a datasource that is published by partition.
        materialization: Id of one revision to read instead of the current one; so is what waits
            for a review read, which was never current.
        columns: Names of fields, in the order they are wanted; None for all.
        as_: `pandas` is a frame of Arrow dtypes, `polars` a frame, `arrow` a table, `lazy` a
            LazyFrame, which reads an artifact in batches and holds none of it.

    Raises:
        GovernanceError: as `Reader.load`; InvalidArgumentError for any other `as_`, and where the
            environment names no database.
    """
    form = checked_form(as_)
    wanted = Wanted(partition=partition or "", materialization=materialization, columns=columns)
    application = Application(read_settings())
    try:
        return Reader(application=application).load(datasource, wanted, form).frame
    finally:
        application.close()
