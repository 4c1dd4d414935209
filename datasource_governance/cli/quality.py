"""`quality providers | manifest | config | gates | check`.

All but `check` need neither data, nor a network, nor a database, so that CI can run them anywhere.

Source: SPEC sections 14 and 16.
"""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.quality_tables import (
    coverage_table,
    manifest_table,
    problem_lines,
    provider_table,
)
from datasource_governance.cli.render import coloured, rule_table
from datasource_governance.cli.session import application
from datasource_governance.cli.validate import PolicyOption, read_document
from datasource_governance.composition import Application
from datasource_governance.declarations import read_declarations
from datasource_governance.domain.canonical import Json
from datasource_governance.domain.datasource_manifest import datasource_manifest
from datasource_governance.domain.platform_manifest import PlatformManifest
from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.quality_gates import ValidationResult, check_gates
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.quality_score import ScoreLevel
from datasource_governance.domain.rule_outcome import Status
from datasource_governance.domain.strict_json import parse_json
from datasource_governance.domain.tier import Enforcement
from datasource_governance.errors import EXIT_NO, InvalidArgumentError, PluginExecutionError
from datasource_governance.quality.registry import load_provider, provider_names

app = typer.Typer(help="Quality providers, gates and scores.", no_args_is_help=True)

DbtOption = Annotated[
    Path | None,
    typer.Option("--dbt-manifest", help="Judge the models of a dbt manifest.json instead."),
]


@app.command()
def providers(json: JsonOption = False) -> int:
    """List the quality providers, and what to install for those that cannot run."""
    found = [_provider(name) for name in provider_names()]
    if json:
        print_json(found)
    else:
        console().print(provider_table(found))
    return 0


@app.command()
def manifest(json: JsonOption = False) -> int:
    """Show the platform manifest in force: each value, the layer that set it, and its lock."""
    resolved = _manifest(application())
    if json:
        print_json(
            {
                "name": resolved.name,
                "version": resolved.version,
                "plugins": {"data_quality": resolved.data_quality()},
                "provenance": dict(resolved.provenance),
                "locks": dict(resolved.locks),
                "configuration": resolved.configuration_hash,
            }
        )
    else:
        console().print(manifest_table(resolved))
    return 0


@app.command()
def config(
    files: Annotated[list[Path], typer.Argument(help="Quality policies, JSON files.")],
    dbt_manifest: DbtOption = None,
    json: JsonOption = False,
) -> int:
    """Check quality policies against the provider and the manifest. Exit 1: there are problems."""
    session = application()
    known = _known(session, dbt_manifest)
    found = {path: session.platform.plugin.validate_config(path, known) for path in files}
    if json:
        print_json([{"file": str(path), **one.document()} for path, one in found.items()])
    for path, one in () if json else found.items():
        console().print(f"{path}: {'ok' if one.success else 'refused'}", markup=False)
        problem_lines(one)
    return 0 if all(one.success for one in found.values()) else EXIT_NO


@app.command()
def gates(dbt_manifest: DbtOption = None, json: JsonOption = False) -> int:
    """Check coverage and required tests. Exit 1: a gate is not met, and the manifest is strict."""
    session = application()
    platform = _manifest(session)
    found = check_gates(
        _known(session, dbt_manifest),
        platform.gates,
        technical_fields=platform.technical_fields,
        waivers=platform.waivers,
        today=_today(),
    )
    if json:
        print_json({"enforcement": str(platform.enforcement), **found.document()})
    else:
        _show_gates(found)
    is_strict = platform.enforcement is Enforcement.STRICT
    return EXIT_NO if is_strict and not found.success else 0


@app.command()
def check(
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV, Parquet or Arrow IPC file, or with --table the SQLAlchemy URL of a "
            "database."
        ),
    ],
    policy: PolicyOption,
    table: Annotated[str | None, typer.Option(help="SQL: a table or view.")] = None,
    schema: Annotated[str | None, typer.Option(help="SQL: the schema of the table.")] = None,
    json: JsonOption = False,
) -> int:
    """Run the provider's checks of the rules about rows. Exit 1: an error rule does not hold."""
    session = application()
    asked = expectations(parse_quality_policy(read_document(policy)))
    result = session.platform.plugin.execute_checks(_source(data, table, schema), asked)
    score = session.platform.score(result.checks)
    if json:
        print_json({**result.document(), "score": score.document()})
    else:
        console().print(rule_table([one.document() for one in result.checks]))  # type: ignore[misc]  # JSON values
        told = "none" if score.value is None else f"{score.value:.2f}"
        console().print(f"provider {result.provider} {result.provider_version}", markup=False)
        console().print(f"score: {told}, {coloured(str(score.level))}")
    failed = result.status is Status.ERROR or score.level is ScoreLevel.BLOCKED
    return EXIT_NO if failed else 0


def _source(data: str, table: str | None, schema: str | None) -> object:
    if table is not None:
        from datasource_governance.sources.sql.read import SqlSource

        return SqlSource(data, table=table, schema=schema)
    from datasource_governance.sources.files import read_file

    return read_file(data)


def _show_gates(found: ValidationResult) -> None:
    console().print(coverage_table(found))
    problem_lines(found)
    console().print("gates: " + coloured("passed" if found.success else "failed"))


def _known(session: Application, dbt_manifest: Path | None) -> dict[str, Json]:
    """Return the manifest to judge: dbt's, or that of the declarations."""
    if dbt_manifest is None:
        return datasource_manifest(read_declarations(session.settings.datasources))
    document = parse_json(read_document(dbt_manifest), what=str(dbt_manifest))
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{dbt_manifest} is no manifest of dbt")
    return document


def _manifest(session: Application) -> PlatformManifest:
    found = session.platform.manifest
    if found is None:
        raise InvalidArgumentError(
            "there is no platform manifest; write one and name it in GOVERNANCE_PLATFORM"
        )
    return found


def _provider(name: str) -> dict[str, Json]:
    kind = load_provider(name)
    told: dict[str, Json] = {
        "name": name,
        "frames": kind.reads_frames,
        "dialects": [*sorted(kind.dialects)],
    }
    try:
        return {**told, "version": kind().version, "install": None}
    except PluginExecutionError:
        return {**told, "version": None, "install": kind.extra}


def _today() -> date:
    return datetime.now(UTC).date()  # noqa: TID251 - a waiver expires by the calendar of CI
