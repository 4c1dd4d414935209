"""Facets of OpenLineage, as this package fills them in: names, counts, ids and words, no value.

The library is imported when a facet is made, and not before.

Source: SPEC section 14; OpenLineage 2-0-2 and its facets.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from datasource_governance.domain.schema import TableSchema

PRODUCER = "https://pypi.org/project/datasource-governance"
VIOLATION_SCHEMA = (
    "urn:datasource-governance:contract-violation-run-facet:1-0-0#/$defs/ContractViolationRunFacet"
)
INTEGRATION = "DAGSTER"
Facets = dict[str, Any]
"""Facets of the library, by the key that they stand under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asserted:
    """One assertion about a dataset: what held or did not, and in how many rows it did not."""

    name: str
    type: str
    success: bool
    is_error: bool
    fields: tuple[str, ...] = ()
    affected: int | None = None


def assertions(asserted: Iterable[Asserted]) -> Facets:
    """Return the input facet `dataQualityAssertions`; none where nothing is asserted."""
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as facet

    found = [
        facet.Assertion(
            assertion=one.type,
            success=one.success,
            column=one.fields[0] if len(one.fields) == 1 else None,
            severity="error" if one.is_error else "warn",
            name=one.name,
            expected=None if one.affected is None else "0",
            actual=None if one.affected is None else str(one.affected),
        )
        for one in asserted
    ]
    if not found:
        return {}
    made = facet.DataQualityAssertionsDatasetFacet(assertions=found, producer=PRODUCER)
    return {"dataQualityAssertions": made}


def row_count(rows: int | None) -> Facets:
    """Return the input facet `dataQualityMetrics` with nothing in it but a number of rows."""
    if rows is None:
        return {}
    from openlineage.client.facet_v2 import data_quality_metrics_input_dataset as facet

    made = facet.DataQualityMetricsInputDatasetFacet(
        rowCount=rows, columnMetrics={}, producer=PRODUCER
    )
    return {"dataQualityMetrics": made}


def described(schema: TableSchema, version: str) -> Facets:
    """Return the dataset facets `schema` and `version`, which is a materialization's id."""
    from openlineage.client.facet_v2 import dataset_version_dataset, schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=field.name, type=str(field.type))
        for field in schema.fields
    ]
    return {
        "schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER),
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=version, producer=PRODUCER
        ),
    }


def statistics(rows: int, byte_count: int) -> Facets:
    """Return the output facet `outputStatistics`."""
    from openlineage.client.facet_v2 import output_statistics_output_dataset as facet

    made = facet.OutputStatisticsOutputDatasetFacet(
        rowCount=rows, size=byte_count, producer=PRODUCER
    )
    return {"outputStatistics": made}


def job_type(kind: str) -> Facets:
    """Return the job facet `jobType`."""
    from openlineage.client.facet_v2 import job_type_job

    made = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration=INTEGRATION, jobType=kind, producer=PRODUCER
    )
    return {"jobType": made}


def parent(run_id: str | None, namespace: str, job: str) -> Facets:
    """Return the run facet `parent` of a Dagster run; none without one."""
    if run_id is None:
        return {}
    from openlineage.client.facet_v2 import parent_run

    made = parent_run.ParentRunFacet(
        run=parent_run.Run(runId=run_id),
        job=parent_run.Job(namespace=namespace, name=job),
        producer=PRODUCER,
    )
    return {"parent": made}


def nominal_time(instant: str | None) -> Facets:
    """Return the run facet `nominalTime`: the instant for which a run was planned, if it was."""
    if instant is None:
        return {}
    from openlineage.client.facet_v2 import nominal_time_run

    made = nominal_time_run.NominalTimeRunFacet(nominalStartTime=instant, producer=PRODUCER)
    return {"nominalTime": made}


def error_message(message: str) -> Facets:
    """Return the run facet `errorMessage`."""
    from openlineage.client.facet_v2 import error_message_run

    made = error_message_run.ErrorMessageRunFacet(
        message=message, programmingLanguage="PYTHON", producer=PRODUCER
    )
    return {"errorMessage": made}


def contract_violation(**told: str | int) -> Facets:
    """Return the run facet `contractViolation`, whose schema is published beside this module."""
    return {"contractViolation": _violation_facet()(**told, producer=PRODUCER)}


@cache
def _violation_facet() -> Any:  # noqa: ANN401 - a class made of a library that is imported when needed
    import attr
    from openlineage.client.facet_v2 import RunFacet

    required = (
        *("contractId", "contractVersion", "contractHash", "violationId", "checkId"),
        *("violationType", "severity", "message"),
    )
    return attr.make_class(
        "ContractViolationRunFacet",
        {name: attr.ib() for name in required} | {"usedPercent": attr.ib(default=None)},
        bases=(RunFacet,),
        class_body={"_get_schema": staticmethod(lambda: VIOLATION_SCHEMA)},
        kw_only=True,
    )
