"""Who is told of check runs: an interface, nobody by default, or an OpenLineage receiver.

No event has a cell value: assertions say which rule held, and how many rows violate it.

Source: SPEC section 14; OpenLineage 2-0-2 and its facet dataQualityAssertions 1-1-0.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from datasource_governance.domain.quality_check import QualityCheckResult
from datasource_governance.domain.rules import Severity
from datasource_governance.domain.validation import RuleOutcome, Status
from datasource_governance.lineage import facets
from datasource_governance.lineage.facets import PRODUCER, Asserted, Facets

if TYPE_CHECKING:
    from openlineage.client.client import OpenLineageClient

_JOB_TYPE = "QUALITY_CHECK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset as OpenLineage names it: where it is, and what it is called there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One run of checks over a dataset."""

    id: str
    dataset: Dataset


class LineageEmitter(ABC):
    """Is told when checks of a dataset begin, and what came of them."""

    @abstractmethod
    def started(self, dataset: Dataset) -> CheckRun:
        """Tell that checks of a dataset began."""

    @abstractmethod
    def finished(self, run: CheckRun, result: QualityCheckResult | None) -> None:
        """Tell what came of a run; None where nothing could be executed."""


class NoopEmitter(LineageEmitter):
    """Tells nobody."""

    @override
    def started(self, dataset: Dataset) -> CheckRun:
        return CheckRun(id="", dataset=dataset)

    @override
    def finished(self, run: CheckRun, result: QualityCheckResult | None) -> None:
        pass


class OpenLineageEmitter(LineageEmitter):
    """Emits START, then COMPLETE or FAIL, for each run.

    FAIL means that a rule of severity `error` failed, or that a rule was not evaluated. What a
    transport raises is the caller's: it decides about no verdict.

    Args:
        client: The client, with its transport; one without any prints events to the console.
        job_namespace: Of the jobs that check.
        now: The clock.
    """

    def __init__(
        self,
        client: "OpenLineageClient",
        *,
        job_namespace: str = "datasource_governance",
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._job_namespace = job_namespace
        self._now = now

    @override
    def started(self, dataset: Dataset) -> CheckRun:
        from openlineage.client.uuid import generate_new_uuid

        run = CheckRun(id=str(generate_new_uuid()), dataset=dataset)
        self._client.emit(self._event(run, "START", {}, {}))
        return run

    @override
    def finished(self, run: CheckRun, result: QualityCheckResult | None) -> None:
        if result is None:
            failed_facets = facets.error_message("the checks could not be executed")
            self._client.emit(self._event(run, "FAIL", {}, failed_facets))
            return
        failed = [check for check in result.checks if _fails(check)]
        if not failed and result.checks:
            self._client.emit(self._event(run, "COMPLETE", _assertions(result), {}))
            return
        message = f"{len(failed)} of {len(result.checks)} rules do not hold or were not evaluated"
        told = facets.error_message(message)
        self._client.emit(self._event(run, "FAIL", _assertions(result), told))

    def _event(
        self, run: CheckRun, state: str, input_facets: dict[str, Any], run_facets: dict[str, Any]
    ) -> Any:  # noqa: ANN401 - of a library that is imported when it is needed
        from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState

        dataset = run.dataset
        return RunEvent(
            eventType=RunState[state],
            eventTime=self._now().astimezone(UTC).isoformat(),
            producer=PRODUCER,
            run=Run(runId=run.id, facets=run_facets),
            job=Job(
                namespace=self._job_namespace,
                name=f"quality_check.{dataset.name}",
                facets=facets.job_type(_JOB_TYPE),
            ),
            inputs=[
                InputDataset(
                    namespace=dataset.namespace, name=dataset.name, inputFacets=input_facets
                )
            ],
            outputs=[],
        )


def _assertions(result: QualityCheckResult) -> Facets:
    return facets.assertions(
        Asserted(
            name=check.id,
            type=check.type,
            success=check.status is Status.PASSED,
            is_error=check.severity is Severity.ERROR,
            fields=check.fields,
            affected=check.affected,
        )
        for check in result.checks
    )


def _fails(check: RuleOutcome) -> bool:
    is_error = check.severity is Severity.ERROR
    return check.status is Status.ERROR or (check.status is Status.FAILED and is_error)
