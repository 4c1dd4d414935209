"""The idempotency key of a governed asset: what makes a retry the same publication.

Source: SPEC section 9 ("Same key and same request: the first result").
"""

import string
from collections.abc import Callable, Iterator

import dagster as dg

KeyOf = Callable[[dg.AssetExecutionContext], str]
"""Returns the key of what a step publishes."""
RUN, ASSET, PARTITION = "run", "asset", "partition"
FIELDS = (RUN, ASSET, PARTITION)


def default_key(*, is_partitioned: bool) -> str:
    """Return the template of an asset that names none: a run publishes each partition once.

    `run` is the run that was launched first: a retry of a step and a re-execution of a run publish
    under the same key, a new run under a new one.
    """
    return f"{{{RUN}}}/{{{ASSET}}}" + (f"/{{{PARTITION}}}" if is_partitioned else "")


def template_problems(template: str, *, is_partitioned: bool) -> Iterator[str]:
    """Yield everything that is wrong with a template of `{run}`, `{asset}` and `{partition}`.

    A partitioned asset's has to name the partition, else its second partition would always meet the
    first one's key.
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        yield f"is no template: {error}"
        return
    fields = {name for _, name, _, _ in parts if name is not None}
    if unknown := sorted(fields - {*FIELDS}):
        yield f"names {', '.join(unknown)}; known are {', '.join(FIELDS)}"
    if any(form or conversion for _, _, form, conversion in parts):
        yield "formats a field; only plain fields are filled in"
    if is_partitioned and PARTITION not in fields:
        yield f"does not name {{{PARTITION}}}, so only one partition could ever be published"
    if not is_partitioned and PARTITION in fields:
        yield f"names {{{PARTITION}}}, and the asset has no partitions"


def filled(template: str) -> KeyOf:
    """Return what fills a template without problems in for a step."""

    def key_of(context: dg.AssetExecutionContext) -> str:
        run = context.run
        values = {RUN: run.root_run_id or run.run_id, ASSET: context.asset_key.to_user_string()}
        if context.assets_def.partitions_def is not None:
            (values[PARTITION],) = context.partition_keys
        return template.format_map(values)

    return key_of
