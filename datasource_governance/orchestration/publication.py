"""From the output of an author's asset to what Dagster shows of its publication.

The gate runs first. Only what became current is materialized; what it rejects and what needs
review shows its checks and nothing else.

Source: SPEC sections 9 and 15 ("publication").
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg

from datasource_governance.composition import Application
from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.producer_evidence import ProducerEvidence
from datasource_governance.domain.publication import PublicationRejectedError
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.orchestration.authoring import Authored
from datasource_governance.orchestration.checks import (
    evaluation_of,
    policy_check_specs,
    validation_results,
)
from datasource_governance.orchestration.coordinator import launch_of
from datasource_governance.orchestration.projections import CurrentProjection
from datasource_governance.orchestration.publication_metadata import (
    metadata_problems,
    publication_metadata,
    review_metadata,
)
from datasource_governance.orchestration.refusals import business_refusals, refused
from datasource_governance.services.publishing import PublicationRequest, Published

Event = (
    dg.MaterializeResult[Any]
    | dg.AssetMaterialization
    | dg.AssetObservation
    | dg.AssetCheckEvaluation
    | dg.Output[None]
)


@dataclass(frozen=True, slots=True)
class GovernedOutput:
    """An output with more to be said about it than its data.

    `data` is whatever a governed asset may return. `evidence` is what the producer found in an
    artifact; where `data` is a callable that writes it, a callable that returns the evidence for
    the SHA-256 of what was written, see `producer_evidence`. `metadata` and `check_results` are the
    author's own, these one of each check in `check_specs`: Dagster shows them to everybody beside
    ours, so they may hold no cell value. They decide nothing about the publication.
    """

    data: object
    evidence: ProducerEvidence | Callable[[str], ProducerEvidence] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    check_results: Sequence[dg.AssetCheckResult] = ()


def published_events(
    context: dg.AssetExecutionContext, authored: Authored, returned: object
) -> Iterator[Event]:
    """Publish what an author's function returned, and yield what there is to show of it.

    Raises:
        dg.Failure: when it is rejected, after its checks, or refused otherwise. It may be retried
            only where a service was not available.
    """
    output = returned if isinstance(returned, GovernedOutput) else GovernedOutput(returned)
    if output.data is None and not authored.is_required:
        yield from _unreported(context, ())
        return
    step = _Step(context, authored)
    with business_refusals():
        step.check_told(output)
        published = step.publish(output)
    if isinstance(published, PublicationRejectedError):
        yield from step.evaluations(step.results(published.validation.hashed_bytes()))
        raise refused(published)
    results = [*step.results(published.publication.validation), *output.check_results]
    if not published.publication.state.is_current:
        yield from step.reviewed(published, results)
    elif step.is_current(published):
        yield from step.materialized(published, results, output.metadata)
    else:
        yield from step.superseded(published, output.metadata)


@dataclass(frozen=True, slots=True)
class _Step:
    """One step that publishes: the run's side of it and the author's."""

    context: dg.AssetExecutionContext
    authored: Authored

    @property
    def application(self) -> Application:
        application: Application = self.context.resources.governance
        return application

    @property
    def partition(self) -> str | None:
        """The one partition of the step; None for an asset without.

        Raises:
            InvalidArgumentError: when there are several.
        """
        if self.context.assets_def.partitions_def is None:
            return None
        keys = self.context.partition_keys
        if len(keys) != 1:
            raise InvalidArgumentError(
                f"the run is about {len(keys)} partitions; each is published by a run of its own"
            )
        return str(keys[0])

    def check_told(self, output: GovernedOutput) -> None:
        """Refuse what Dagster would not show of an author, before anything is published.

        Raises:
            InvalidArgumentError: for the metadata, and for results that are not one of each check.
        """
        key, specs = self.authored.key, self.context.assets_def.check_specs
        ours = {spec.name for spec in policy_check_specs(self.authored.declared, key)}
        awaited = Counter(spec.name for spec in specs if spec.name not in ours)
        told = Counter(str(one.check_name) for one in output.check_results)
        problems = [
            *metadata_problems(output.metadata),
            *(
                problem
                for one in output.check_results
                for problem in metadata_problems(one.metadata)
            ),
            *(f"check {name!r} has no result" for name in awaited - told),
            *(f"there is a result of {name!r}, which awaits none" for name in told - awaited),
            *(
                f"the result of check {one.check_name!r} is about another asset"
                for one in output.check_results
                if one.asset_key not in (None, key)
            ),
        ]
        if problems:
            raise InvalidArgumentError(
                f"the output of {key.to_user_string()}: {'; '.join(problems)}"
            )

    def publish(self, output: GovernedOutput) -> Published | PublicationRejectedError:
        """Publish an output under the key of this step; return by what it was rejected, if so."""
        request = PublicationRequest(
            partition=self.partition or "",
            producer=self.authored.producer,
            idempotency_key=self.authored.key_of(self.context),
            datasource=self.authored.datasource.id,
            launch=launch_of(self.context.run),
            supplied_policy=self.authored.supplied,
        )
        data, evidence = self._written(output)
        try:
            published = self.application.publish(data, replace(request, evidence=evidence))
        except PublicationRejectedError as error:
            return error.with_traceback(None)
        found = published.publication
        again = ", as it was before" if published.replayed else ""
        self.context.log.info("publication %s is %s%s", found.id, found.state, again)
        return published

    def _written(self, output: GovernedOutput) -> tuple[object, ProducerEvidence | None]:
        """Return an output's data, as an artifact where it writes itself, and its evidence."""
        data, evidence = output.data, output.evidence
        if isinstance(data, str):
            # What is no path but the output itself would be told as the name of a file.
            raise InvalidArgumentError("a text is no output; the path of a file is a pathlib.Path")
        if callable(data):
            reference = self.application.outlet().store(self.authored.datasource.id, data)
            return reference, evidence(reference.sha256) if callable(evidence) else evidence
        if callable(evidence):
            raise InvalidArgumentError(
                "evidence is a callable, and data is none: only of what data writes the SHA-256 "
                "is not known before"
            )
        return data, evidence

    def results(self, validation: bytes) -> list[dg.AssetCheckResult]:
        """Return what the gate found, check by check."""
        document = load_object(validation)
        return [*validation_results(document, self.authored.key, self.authored.declared)]

    def materialized(
        self,
        published: Published,
        results: Sequence[dg.AssetCheckResult],
        told: Mapping[str, Any],
    ) -> Iterator[Event]:
        """Yield the materialization of what became current, with its checks."""
        yield dg.MaterializeResult(
            asset_key=self.authored.key,
            metadata={**told, **publication_metadata(published, self.authored.declared)},
            data_version=dg.DataVersion(published.materialization.id),
            check_results=results,
        )
        yield from _unreported(self.context, results)
        if self.partition is None:
            projection = CurrentProjection(self.authored.datasource)
            yield projection.materialization(published.materialization, self.application)

    def superseded(self, published: Published, told: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what is shown of a replay that others followed; the step succeeds.

        A materialization or a check would lie on top of those of what is current.
        """
        yield dg.AssetObservation(
            self.authored.key,
            description="Published before, and not current any more.",
            metadata={**told, **publication_metadata(published, self.authored.declared)},
            partition=self.partition,
        )
        yield from _unreported(self.context, ())

    def reviewed(
        self, published: Published, results: Sequence[dg.AssetCheckResult]
    ) -> Iterator[Event]:
        """Yield what is shown of an output that somebody has to look at; the step succeeds.

        A rule that nobody has evaluated yet blocks nothing: there is no materialization.
        """
        yield from self.evaluations(results, block=False)
        webserver = self.application.settings.dagster_url
        yield dg.AssetObservation(
            self.authored.key,
            description="Review required: it is kept, and is not current.",
            metadata=review_metadata(published, self.authored.declared, webserver),
            partition=self.partition,
        )
        yield from _unreported(self.context, ())

    def evaluations(
        self, results: Iterable[dg.AssetCheckResult], *, block: bool = True
    ) -> Iterator[Event]:
        """Yield results that are about no materialization; they fail the step if they `block`.

        Dagster would take them to be about the one before.
        """
        specs = self.context.assets_def.check_specs
        blocking = {spec.name: block and spec.blocking for spec in specs}
        for result in results:
            yield evaluation_of(
                result,
                self.authored.key,
                blocking=blocking.get(str(result.check_name)),
                partition=self.partition,
            )

    def is_current(self, published: Published) -> bool:
        """Tell whether it is current now; what is replayed may have been followed by others."""
        if not published.replayed:
            return True
        with self.application.work() as work:
            target = work.datasources.get(self.authored.datasource.id, self.partition or "")
        return target.current == published.materialization.id


def _unreported(
    context: dg.AssetExecutionContext, results: Iterable[dg.AssetCheckResult]
) -> Iterator[dg.Output[None]]:
    """Yield the outputs by which Dagster knows that checks without a result were not forgotten.

    Where the policy in force is not the declared one, a declared rule may be gone.
    """
    reported = {result.check_name for result in results}
    for key in sorted(context.selected_asset_check_keys):
        if key.name not in reported:
            yield dg.Output(None, context.assets_def.get_output_name_for_asset_check_key(key))
