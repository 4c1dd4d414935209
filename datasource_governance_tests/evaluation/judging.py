"""One rule over one table, for tests of evaluation."""

import pyarrow as pa

from datasource_governance.evaluation.columns import FrameColumns
from datasource_governance.evaluation.frames import frame_of
from datasource_governance.evaluation.kernel import evaluate_rule
from datasource_governance.sources.typed import to_typed
from datasource_governance_tests.builders import quality_policy, rule


def judge(table, rule_type, **keys):
    """Return the outcome of one rule over a table; an array is a table with the field `x`."""
    if not isinstance(table, pa.Table):
        table = pa.table({"x": table})
    (parsed,) = quality_policy(rule(rule_type, **keys)).rules
    return evaluate_rule(parsed, columns_of(to_typed(table)))


def columns_of(typed):
    """Return the columns of a typed table."""
    return FrameColumns(frame_of(typed, "pandas"), typed.schema)


def rows(table, rule_type, **keys):
    """Return the listed rows of a rule about the field `x`."""
    return judge(table, rule_type, field="x", **keys).rows
