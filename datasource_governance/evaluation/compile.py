"""Quality policy → Pandera schema, one check per rule.

Source: SPEC section 5.
"""

from typing import TYPE_CHECKING, Any

from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.evaluation.checks import (
    Recorder,
    check_class,
    pandas_schema_class,
    polars_schema_class,
)
from datasource_governance.evaluation.frames import Engine

if TYPE_CHECKING:
    import pyarrow as pa
    from pandera.api.dataframe.container import DataFrameSchema


def pandera_schema(
    policy: QualityPolicy,
    engine: Engine,
    *,
    recorder: Recorder | None = None,
    typed: "pa.Schema | None" = None,
) -> "DataFrameSchema[Any]":
    """Return a Pandera schema that gives our verdict when it is used alone.

    `schema.validate(frame, lazy=True)` raises `SchemaErrors` in which the names of the failing
    checks are exactly the ids of the rules that do not pass, warnings included; it returns the
    frame unchanged when all pass. Any frame of the engine's library is taken: object columns, any
    index, lazy. No columns are declared, so Pandera coerces and judges nothing of its own, and no
    message holds a value. A rule that cannot be evaluated does not pass.

    Args:
        policy: The rules.
        engine: The library of the frames.
        recorder: Receives the outcome of every rule, by id, at each `validate`; one per thread.
        typed: The Arrow schema of the frame's typed form, where the frame was made from one: types
            and marks that the library cannot carry are restored from it.

    Source: SPEC section 5.
    """
    rule_check = check_class()
    schema_class = pandas_schema_class() if engine == "pandas" else polars_schema_class()
    outcomes: Recorder = {} if recorder is None else recorder
    checks = [rule_check(rule, outcomes) for rule in policy.rules]
    schema: DataFrameSchema[Any] = schema_class(typed, checks=checks, name=policy.version)
    return schema
