"""Every way by which a cell value could come out: how it is tempted, looked for, and planted.

A channel is clean when its look finds no form of any kind of value after `plays.live`. That its
look can find one is shown by the plant beside it.

Source: SPEC section 5, "No cell value leaves evaluation".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from datasource_governance_tests.end_to_end import looks, plants
from datasource_governance_tests.end_to_end.canaries import FACES
from datasource_governance_tests.end_to_end.looks import Look
from datasource_governance_tests.end_to_end.plants import Plant


@dataclass(frozen=True)
class Channel:
    """One way out."""

    name: str
    tempted: str
    look: Look
    plant: Plant


REFUSALS = {
    "CSV": (".csv", "records that are ragged, undecodable, not closed, of another type"),
    "Parquet": (".parquet", "a file cut short, rows between two magic words"),
    "Arrow IPC": (".arrow", "rows behind the magic word"),
    "pandas": ("pandas", "an object column of values, sets and objects"),
    "Polars": ("polars", "an object column of values, sets and objects"),
    "lazy query": ("lazy query", "a cast that fails, a function that raises the values"),
    "batches": ("batches", "files as above, or damaged inside, that are validated row by row"),
    "Arrow table": ("arrow", "two fields of one name"),
    "stored payload": ("payload", "a payload cut short"),
    "Postgres source": ("postgres", "casts that fail, whose message quotes the cell"),
    "DuckDB source": ("duckdb", "casts that fail, whose message quotes the cell"),
    "address": ("address", "a ragged file, and no file, behind an address"),
    "child process": ("child", "a decoder that prints the file and dies quoting it"),
    "evaluation": ("evaluation", "a payload that raises its values"),
    "governance database": ("driver", "rows that break a constraint, which DETAIL quotes"),
    "service": ("services", "decisions and readings that are not allowed, an altered payload"),
    "run": ("runs", "runs that end by any of these"),
}
"""Where errors come from: under what the scene keeps them, and how they were tempted."""

TABLES = {
    "actor": "display_name",
    "actor_key": "attestation_id",
    "attestation": "claims",
    "contract_check": "body",
    "contract_violation": "message",
    "contract_watch": "claim",
    "current_partition": "partition",
    "datasource": "settings",
    "dead_letter": "problem",
    "decision": "reason",
    "disposition": "state_before",
    "evidence": "body",
    "evidence_head": "entry_hash",
    "frozen_evidence": "reason",
    "grant_withdrawal": "attestation_id",
    "hold_release": "reason",
    "key_revocation": "attestation_id",
    "legal_hold": "reason",
    "materialization": "provenance",
    "origin_version": "version",
    "outbox": "body",
    "outbox_position": "receiver",
    "policy_version": "document",
    "publication": "validation",
    "retention_application": "run_id",
    "retention_plan": "body",
    "role_grant": "attestation_id",
    "run_attestation": "run_id",
    "stage": "delivery",
    "violation_resolution": "resolved_by",
}
"""Tables of schema `governance`, with the column into which a leak is planted."""

SILENT = {
    *("error, notes", "error, cause", "error, frames of cause and context"),
    *("process, stdout", "process, stdout of a child", "process, warnings"),
    *("disk, temporary files", "Dagster, kvs", "Pandera, data", "log, Dagster"),
}
"""Channels in which a whole life says nothing at all."""

_LOGGERS = ("sqlalchemy", "dagster", "psycopg")


def _family(
    family: str, tempted: str, members: Mapping[str, tuple[Look, Plant]]
) -> Iterator[Channel]:
    for name, (look, plant) in members.items():
        yield Channel(f"{family}, {name}", tempted, look, plant)


def _refusals() -> Iterator[Channel]:
    for name, (origin, tempted) in REFUSALS.items():
        plant = plants.error_with("context", origin)
        yield Channel(f"refusal, {name}", tempted, looks.raised(origin), plant)


CHANNELS = (
    *_family(
        "error",
        "all errors of a life, whatever raised them",
        {name: (looks.face(name), plants.error_with(name)) for name in FACES},
    ),
    *_refusals(),
    *_family(
        "evaluation",
        "policies whose every rule fails on every cell, of tables, files, queries and databases",
        {
            "validation": (looks.validations(repr), plants.validation),
            "document": (looks.validations(lambda one: one.document()), plants.validation),
            "hashed bytes": (looks.validations(lambda one: one.hashed_bytes()), plants.validation),
            "carriers": (looks.carriers, plants.carrier),
        },
    ),
    *_family(
        "Pandera",
        "the public schema on frames that break every rule, or that cannot be read",
        {
            "error": (looks.raised("pandera"), plants.error_of_pandera),
            "message": (looks.of_pandera("message"), plants.error_of_pandera),
            "failure cases": (looks.of_pandera("failure_cases"), plants.error_of_pandera),
            "data": (looks.of_pandera("data"), plants.error_of_pandera),
            "schema": (looks.of_pandera("schema"), plants.error_of_pandera),
            "single errors": (looks.single_errors_of_pandera, plants.error_of_pandera),
            "recorder": (looks.recorders, plants.recorder),
        },
    ),
    *_family(
        "process",
        "all of a life; a child process prints the file that it decodes",
        {
            "stdout": (looks.printed("stdout"), plants.write(1)),
            "stderr": (looks.printed("stderr"), plants.write(2)),
            "stdout of a child": (looks.printed("stdout"), plants.child_print),
            "warnings": (looks.warned, plants.warning),
            "arguments of a child": (looks.child("arguments"), plants.child_argument),
            "environment of a child": (looks.child("environment"), plants.child_environment),
        },
    ),
    *_family(
        "log",
        "all of a life at DEBUG",
        {
            "SQLAlchemy": (
                looks.logged("sqlalchemy"),
                plants.log_record("sqlalchemy.engine.Engine.any"),
            ),
            "psycopg": (looks.logged("psycopg"), plants.log_record("psycopg.pool")),
            "Dagster": (looks.logged("dagster"), plants.log_record("dagster.any")),
            "everything else": (looks.logged_by_others(*_LOGGERS), plants.log_record("pandera")),
        },
    ),
    *_family(
        "disk",
        "all of a life, child processes and keys on disk included",
        {
            "temporary files": (looks.temporary_files, plants.temporary_file),
            "files of the installation": (looks.files_of_the_installation, plants.state_file),
        },
    ),
    *_family(
        "governance",
        "stages, decisions, promotions and withdrawals, allowed and refused",
        {name: (looks.table(name), plants.column(name, one)) for name, one in TABLES.items()},
    ),
    *_family(
        "server",
        "all of a life, and rows that break a constraint",
        {
            "log": (looks.log_of_the_server, plants.server_message),
            "running statements": (looks.running_statements, plants.literal),
        },
    ),
    *_family(
        "Dagster",
        "runs that stage, promote and read, and that are refused",
        {
            "event_logs": (looks.dagster_table("event_logs"), plants.materialization_event),
            "runs": (looks.dagster_table("runs"), plants.run_tag),
            "run_tags": (looks.dagster_table("run_tags"), plants.run_tag),
            "asset_keys": (looks.dagster_table("asset_keys"), plants.materialization_event),
            "asset_check_executions": (
                looks.dagster_table("asset_check_executions"),
                plants.check_event,
            ),
            "snapshots": (looks.dagster_table("snapshots"), plants.snapshot),
            "kvs": (looks.dagster_table("kvs"), plants.cursor),
            "every other table": (looks.other_dagster_tables, plants.dynamic_partition),
            "errors of steps": (looks.step_failures, plants.in_a_step(int)),
            "compute logs": (looks.compute_logs, plants.in_a_step(print)),
            "stored values": (looks.stored_by_dagster, plants.in_a_step(str)),
        },
    ),
    *_family(
        "GraphQL",
        "what the webserver answers about these runs",
        {
            "runs": (looks.graphql(looks.RUNS), plants.run_tag),
            "events": (looks.graphql(looks.EVENTS), plants.in_a_step(int)),
            "assets": (looks.graphql(looks.ASSETS), plants.materialization_event),
            "checks": (looks.graphql(looks.CHECKS), plants.check_event),
        },
    ),
    *_family(
        "command",
        "every file and database of bait, also in batches, every stage, and altered evidence",
        {
            "validate": (looks.answered("validate"), plants.validated()),
            "validate --json": (looks.answered("validate", "--json"), plants.validated("--json")),
            "refusal": (looks.refused(), plants.refusal()),
            "refusal --json": (looks.refused("--json"), plants.refusal("--json")),
            "unforeseen": (looks.answered("unforeseen"), plants.unforeseen),
            "exit status": (looks.exit_statuses, plants.exit_message),
            "stage show": (looks.answered("stage show"), plants.shown_stage()),
            "stage show --json": (
                looks.answered("stage show", "--json"),
                plants.shown_stage("--json"),
            ),
            "contract violations": (
                looks.answered("contract violations"),
                plants.listed_violations(),
            ),
            "contract violations --json": (
                looks.answered("contract violations", "--json"),
                plants.listed_violations("--json"),
            ),
            "stage list --json": (looks.answered("stage list", "--json"), plants.listed_stages),
            "evidence verify": (looks.answered("evidence verify"), plants.verified()),
            "evidence verify --json": (
                looks.answered("evidence verify", "--json"),
                plants.verified("--json"),
            ),
        },
    ),
)
