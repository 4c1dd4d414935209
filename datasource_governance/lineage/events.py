"""Events of the outbox as events of OpenLineage: START and COMPLETE or FAIL for each.

All of it is made of the event and of immutable rows, ids included: delivered again, an event says
the same again, and who receives it knows it by its run and type.

Source: SPEC section 14; OpenLineage 2-0-2.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from datasource_governance.domain.canonical import load_object
from datasource_governance.domain.contract_check import ViolationSeverity
from datasource_governance.domain.contract_judgement import CHANGES
from datasource_governance.domain.event import CHECKED, Event
from datasource_governance.domain.launch import CONTRACT_MONITOR_JOB
from datasource_governance.domain.lineage_dataset import current_dataset, stage_dataset
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.publication import PublicationState
from datasource_governance.domain.schema_document import parse_schema
from datasource_governance.lineage import facets
from datasource_governance.lineage.facets import Asserted, Facets
from datasource_governance.ports import UnitOfWork

DEFAULT_NAMESPACE = "datasource_governance"
LINEAGE_TYPES = (
    f"datasource.{CHECKED}",
    "datasource.publication.published",
    "datasource.stage.promoted",
)
"""The events that are lineage; all others are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dataset:
    named: tuple[str, str]
    facets: Facets
    beside: Facets
    """Facets of an input or an output, whichever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run; `failure` says why it failed. `begun` and `ended` are instants with their offset."""

    id: str
    job: str
    kind: str
    begun: str
    ended: str
    facets: Facets
    inputs: tuple[_Dataset, ...] = ()
    outputs: tuple[_Dataset, ...] = ()
    failure: str | None = None


def lineage_events(event: Event, work: UnitOfWork, namespace: str) -> list[Any]:
    """Return the run events of an event of the outbox, in order; none for one that is no lineage.

    `namespace` is that of the jobs. Of what was published and waits for a review nothing is told:
    it is no output yet.
    """
    facts: Mapping[str, Any] = load_object(event.body)["facts"]  # type: ignore[assignment]  # an event's facts are an object
    if event.type == LINEAGE_TYPES[0]:
        run = _check_run(event, facts, work, namespace)
    elif event.type in LINEAGE_TYPES and facts.get("state") != PublicationState.REVIEW_REQUIRED:
        run = _output_run(event, facts, work, namespace)
    else:
        return []
    return [*_run_events(run, namespace)]


def _run_id(event: Event) -> str:
    try:
        return str(uuid.UUID(event.id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{facets.PRODUCER}/{event.id}"))


def _dagster_run(run_id: object) -> str | None:
    """Return the id of a Dagster run, if it is one that OpenLineage can name."""
    try:
        return str(uuid.UUID(run_id)) if isinstance(run_id, str) else None
    except ValueError:
        return None


def _check_run(event: Event, facts: Mapping[str, Any], work: UnitOfWork, namespace: str) -> _Run:
    known = _materialization(work, facts["materialization"])
    asserted = [*_asserted(facts)]
    named = (facts["dataset"]["namespace"], facts["dataset"]["name"])
    violation = facts["violation"]
    run_facets = {
        **facets.parent(_dagster_run(facts["run_id"]), namespace, CONTRACT_MONITOR_JOB),
        **facets.nominal_time(facts["planned_for"]),
        **(facets.contract_violation(**_violation(facts)) if violation else {}),
    }
    is_broken = _is_breach(facts) or facts["status"] == "error"
    is_broken = is_broken or any(one.is_error and not one.success for one in asserted)
    return _Run(
        id=_run_id(event),
        job=f"contract_check.{facts['contract']}.{facts['kind']}",
        kind="QUALITY_CHECK",
        begun=facts["started_at"],
        ended=facts["finished_at"],
        facets=run_facets,
        inputs=(
            _Dataset(
                named=named,
                facets=_described(known) if known else {},
                beside=facets.assertions(asserted) | facets.row_count(facts["row_count"]),
            ),
        ),
        failure=facts["message"] if is_broken else None,
    )


def _violation(facts: Mapping[str, Any]) -> dict[str, str | int]:
    told = {
        "contractId": facts["contract"],
        "contractVersion": facts["contract_version"],
        "contractHash": facts["contract_hash"],
        "violationId": facts["violation"],
        "checkId": facts["check"],
        "violationType": facts["kind"],
        "severity": facts["severity"],
        "message": facts["message"],
        "usedPercent": facts["used_percent"],
    }
    return {name: one for name, one in told.items() if one is not None}


def _asserted(facts: Mapping[str, Any]) -> Iterator[Asserted]:
    """Yield the rules, else the fields that differ, else the promise itself."""
    for rule in facts["rules"]:
        yield _rule(rule)
    for change in facts["changes"]:
        yield Asserted(
            name=f"{change['field']}.{change['change']}",
            type=f"schema_drift.{change['change']}",
            success=False,
            is_error=CHANGES[change["change"]].is_breach,
            fields=(change["field"],),
        )
    if not facts["rules"] and not facts["changes"]:
        success = not _is_breach(facts) and facts["status"] == "passed"
        yield Asserted(name=facts["kind"], type=facts["kind"], success=success, is_error=True)


def _is_breach(facts: Mapping[str, Any]) -> bool:
    severity = facts["severity"]
    return severity is not None and ViolationSeverity(severity).is_breach


def _rule(rule: Mapping[str, Any]) -> Asserted:
    return Asserted(
        name=rule["id"],
        type=rule["type"],
        success=rule["status"] == "passed",
        # A rule that was not evaluated is as bad as one that must hold and does not.
        is_error=rule["severity"] == "error" or rule["status"] == "error",
        fields=tuple(rule["fields"]),
        affected=rule["affected"],
    )


def _output_run(event: Event, facts: Mapping[str, Any], work: UnitOfWork, namespace: str) -> _Run:
    made = work.materializations.get(facts["materialization"])
    provenance: Mapping[str, Any] = provenance_of(made)
    is_published = "publication" in facts
    validation = provenance["publication_validation" if is_published else "validation"]
    asserted = [_rule(rule) for rule in validation["rules"]]
    instant = event.created_at.isoformat()
    output = _Dataset(
        named=current_dataset(work.tenant, event.datasource),
        facets=_described(made),
        beside=facets.statistics(made.row_count, made.byte_count),
    )
    candidate = _Dataset(
        named=stage_dataset(work.tenant, event.datasource),
        facets=_described(made),
        beside=facets.assertions(asserted) | facets.row_count(made.row_count),
    )
    if not is_published:
        version = facets.described(parse_schema(made.schema), str(made.stage))
        candidate = replace(candidate, facets=version)
    verb = "publish" if is_published else "promote"
    run = _dagster_run(facts.get("run"))
    return _Run(
        id=_run_id(event),
        job=f"{event.datasource}.{verb}",
        kind=verb.upper(),
        begun=instant,
        ended=instant,
        facets=facets.parent(run, namespace, f"{verb}_{event.datasource}"),
        # What a producer hands over is a candidate, too; it has no stage of its own.
        inputs=(candidate,),
        outputs=(output,),
    )


def _described(made: Materialization) -> Facets:
    return facets.described(parse_schema(made.schema), made.id)


def _materialization(work: UnitOfWork, materialization: str | None) -> Materialization | None:
    return work.materializations.get(materialization) if materialization else None


def _run_events(run: _Run, namespace: str) -> Iterator[Any]:
    from openlineage.client.event_v2 import (
        InputDataset,
        Job,
        OutputDataset,
        Run,
        RunEvent,
        RunState,
    )

    failed = facets.error_message(run.failure) if run.failure else {}
    ends = RunState.FAIL if run.failure else RunState.COMPLETE
    for state, instant, run_facets, is_end in (
        (RunState.START, run.begun, _beginning(run.facets), False),
        (ends, run.ended, run.facets | failed, True),
    ):
        yield RunEvent(
            eventType=state,
            eventTime=instant,
            producer=facets.PRODUCER,
            run=Run(runId=run.id, facets=run_facets),
            job=Job(namespace=namespace, name=run.job, facets=facets.job_type(run.kind)),
            inputs=[
                InputDataset(
                    namespace=one.named[0],
                    name=one.named[1],
                    facets=one.facets,
                    inputFacets=one.beside if is_end else {},
                )
                for one in run.inputs
            ],
            outputs=[
                OutputDataset(
                    namespace=one.named[0],
                    name=one.named[1],
                    facets=one.facets,
                    outputFacets=one.beside if is_end else {},
                )
                for one in run.outputs
            ],
        )


def _beginning(known: Facets) -> Facets:
    """Return what is known of a run when it starts."""
    return {name: one for name, one in known.items() if name != "contractViolation"}
