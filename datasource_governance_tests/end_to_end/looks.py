"""Where a value is looked for: each function returns how to look at one channel of a scene."""

import asyncio
from collections.abc import Callable, Iterable

from dagster import DagsterEventType
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster_graphql.schema import create_schema

from datasource_governance.domain.validation import Validation
from datasource_governance_tests.end_to_end.canaries import (
    FACES,
    database,
    error_text,
    files,
    server_log,
)
from datasource_governance_tests.end_to_end.life import Answer, Scene

Look = Callable[[Scene], str]
DAGSTER_TABLES = (
    *("event_logs", "runs", "run_tags", "asset_keys", "asset_check_executions"),
    *("snapshots", "kvs"),
)
"""Those with a channel of their own; all others share one."""
RUNS = """{ runsOrError { ... on Runs { results {
  runId jobName status runConfigYaml tags { key value } assetSelection { path }
  stats { __typename } } } } }"""
EVENTS = """{ runsOrError { ... on Runs { results { eventConnection(limit: 10000) { events {
  __typename
  ... on MessageEvent { message level stepKey }
  ... on ExecutionStepFailureEvent { error { message stack className
      causes { message stack } errorChain { isExplicitLink error { message stack } } }
    failureMetadata { metadataEntries { label ... on TextMetadataEntry { text } } } }
  ... on RunFailureEvent { error { message stack } }
} } } } } }"""
ENTRIES = """metadataEntries { label description
  ... on TextMetadataEntry { text } ... on IntMetadataEntry { intRepr }
  ... on MarkdownMetadataEntry { mdStr } ... on JsonMetadataEntry { jsonString }
  ... on TableMetadataEntry { table { records schema { columns { name type } } } }
  ... on TableSchemaMetadataEntry { schema { columns { name type description } } } }"""
ASSETS = f"""{{ assetsOrError {{ ... on AssetConnection {{ nodes {{ key {{ path }}
  assetMaterializations {{ description tags {{ key value }} {ENTRIES} }}
}} }} }} }}"""
CHECKS = f"""{{ runsOrError {{ ... on Runs {{ results {{ eventConnection(limit: 10000) {{ events {{
  ... on AssetCheckEvaluationEvent {{ evaluation {{ checkName success severity description
    {ENTRIES} }} }} }} }} }} }} }} }}"""


def face(name: str) -> Look:
    """Look at one face of every error that was raised, whatever raised it."""
    return lambda scene: "\n".join(
        FACES[name](error) for errors in scene.errors.values() for error in errors
    )


def raised(origin: str) -> Look:
    """Look at every face of the errors of one origin."""
    return lambda scene: "\n".join(map(error_text, scene.errors[origin]))


def of_pandera(attribute: str) -> Look:
    """Look at an attribute of Pandera's errors."""
    return lambda scene: "\n".join(
        _whole(getattr(error, attribute)) for error in scene.errors["pandera"]
    )


def single_errors_of_pandera(scene: Scene) -> str:
    """Look at everything that Pandera's errors keep of each failed check."""
    return "\n".join(
        _whole(value)
        for errors in scene.errors["pandera"]
        for one in errors.schema_errors
        for value in (one, *one.args, *vars(one).values())
    )


def _whole(value: object) -> str:
    """Return a value as text; of a frame every cell, where its representation shows a few."""
    if value is None:
        return ""
    if hasattr(value, "to_dicts"):
        return repr(value.to_dicts())
    return repr(value.to_dict()) if hasattr(value, "to_dict") else f"{value}\n{value!r}"


def validations(show: Callable[[Validation], object]) -> Look:
    """Look at what is shown of each validation."""
    return lambda scene: "\n".join(str(show(one)) for one in scene.validations)


def carriers(scene: Scene) -> str:
    """Look at the representation of what carries data: payloads, files, sources, readings."""
    return "\n".join(map(repr, scene.carriers))


def recorders(scene: Scene) -> str:
    """Look at the outcomes that Pandera's checks recorded."""
    return "\n".join(map(repr, scene.outcomes))


def warned(scene: Scene) -> str:
    """Look at all warnings; none was ignored."""
    return "\n".join(scene.warned)


def child(fact: str) -> Look:
    """Look at what child processes told of themselves."""
    return lambda scene: "\n".join(told[fact] for told in scene.children)


def table(name: str) -> Look:
    """Look at every column of a table of schema `governance`, except the payload."""
    return lambda scene: "\n".join(
        database(scene.world.database.admin_url, "governance", name).values()
    )


def dagster_table(name: str) -> Look:
    """Look at every column of a table of Dagster's."""
    return lambda scene: "\n".join(database(scene.dagster_url, "public", name).values())


def other_dagster_tables(scene: Scene) -> str:
    """Look at every table of Dagster's that has no channel of its own."""
    found = database(scene.dagster_url, "public")
    return "\n".join(
        text for place, text in found.items() if place.split(".")[1] not in DAGSTER_TABLES
    )


def logged(logger: str) -> Look:
    """Look at what a logger and those below it said."""
    return lambda scene: "\n".join(
        text for name, text in scene.listener.heard if name.startswith(logger)
    )


def logged_by_others(*loggers: str) -> Look:
    """Look at what all other loggers said."""
    return lambda scene: "\n".join(
        text for name, text in scene.listener.heard if not name.startswith(loggers)
    )


def printed(stream: str) -> Look:
    """Look at what this process and its children wrote to a stream."""
    return lambda scene: files(scene.printed)[stream]


def temporary_files(scene: Scene) -> str:
    """Look at what was left where temporary files go, and what was there meanwhile."""
    return "\n".join([*scene.passing, *files(scene.temporary).values()])


def files_of_the_installation(scene: Scene) -> str:
    """Look at every file beside the deliveries."""
    return "\n".join(scene.state_files().values())


def log_of_the_server(scene: Scene) -> str:
    """Look at the log of the Postgres server."""
    return "\n".join(server_log(scene.world.database.admin_url).values())


def running_statements(scene: Scene) -> str:
    """Look at what the server showed of statements while they ran."""
    return "\n".join(scene.statements)


def compute_logs(scene: Scene) -> str:
    """Look at what Dagster captured of the steps' prints; the UI serves it for download."""
    return _files_of_home(scene, has_logs=True)


def stored_by_dagster(scene: Scene) -> str:
    """Look at every other file in Dagster's home."""
    return _files_of_home(scene, has_logs=False)


def _files_of_home(scene: Scene, *, has_logs: bool) -> str:
    found = files(scene.home)
    return "\n".join(text for name, text in found.items() if ("compute_logs" in name) is has_logs)


def answered(command: str, *options: str) -> Look:
    """Look at what a command printed with exactly these options."""

    def look(scene: Scene) -> str:
        answers = [one for one in scene.answers if " ".join(one.arguments).startswith(command)]
        return _printed(answers, options)

    return look


def refused(*options: str) -> Look:
    """Look at what commands printed that refused."""

    def look(scene: Scene) -> str:
        return _printed([one for one in scene.answers if one.code not in (0, 1)], options)

    return look


def _printed(answers: Iterable[Answer], options: tuple[str, ...]) -> str:
    return "\n".join(
        one.out + one.err for one in answers if ("--json" in one.arguments) is ("--json" in options)
    )


def exit_statuses(scene: Scene) -> str:
    """Look at what commands exited with; a text would be printed by the interpreter."""
    return "\n".join(str(one.code) for one in scene.answers)


def step_failures(scene: Scene) -> str:
    """Look at the errors of failed steps as Dagster keeps them, with causes and contexts."""
    return "\n".join(
        entry.dagster_event.event_specific_data.error_display_string
        + repr(entry.dagster_event.event_specific_data)
        for run in scene.instance.get_runs()
        for entry in scene.instance.all_logs(run.run_id, of_type=DagsterEventType.STEP_FAILURE)
    )


def graphql(query: str) -> Look:
    """Look at the answer of the webserver's GraphQL to a query."""

    def look(scene: Scene) -> str:
        with WorkspaceProcessContext(scene.instance, EmptyWorkspaceTarget()) as process:
            context = process.create_request_context()
            result = asyncio.run(create_schema().execute_async(query, context=context))
        assert result.errors is None, result.errors
        return repr(result.data)

    return look
