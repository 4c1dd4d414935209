import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pandera.errors
import pandera.pandas
import polars as pl
import pytest
from pandera.config import ValidationDepth, config_context

from datasource_governance.domain.validation import Reason, Status
from datasource_governance.errors import EvaluationError, InvalidArgumentError
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance_tests.builders import quality_policy, rule

POLICY = quality_policy(
    rule("not_null", id="present", field="x"),
    rule("unique", id="distinct", field="x", severity="warning"),
    rule("row_count", id="three", minimum=3),
    rule("required_fields", id="columns", fields=["y"]),
    rule("field", id="shape", field="x", data_type="number"),
)
DIRTY = {"x": [1, 1, None]}
NOT_PASSING = {"present", "distinct", "columns"}
FRAMES = {
    "pandas": ("pandas", pd.DataFrame(DIRTY)),
    "pandas objects": ("pandas", pd.DataFrame(DIRTY, dtype=object)),
    "pandas arrow": ("pandas", pd.DataFrame(DIRTY, dtype="int64[pyarrow]")),
    "pandas index": ("pandas", pd.DataFrame(DIRTY, index=["x", "x", None])),
    "polars": ("polars", pl.DataFrame(DIRTY)),
    "polars lazy": ("polars", pl.LazyFrame(DIRTY)),
}


def failing(schema, frame, **options):
    """Return the names of the checks that Pandera reports."""
    try:
        schema.validate(frame, lazy=True, **options)
    except pandera.errors.SchemaErrors as errors:
        return {error.check.name for error in errors.schema_errors}
    return set()


@pytest.mark.parametrize(("engine", "frame"), FRAMES.values(), ids=FRAMES)
def test_failing_checks_are_the_rules_that_do_not_pass(engine, frame):
    assert failing(pandera_schema(POLICY, engine), frame) == NOT_PASSING


@pytest.mark.parametrize(("engine", "frame"), FRAMES.values(), ids=FRAMES)
def test_the_recorder_holds_the_outcome_of_every_rule(engine, frame):
    outcomes = {}

    failing(pandera_schema(POLICY, engine, recorder=outcomes), frame)

    assert {name: (one.status, one.affected, one.rows) for name, one in outcomes.items()} == {
        "present": (Status.FAILED, 1, (3,)),
        "distinct": (Status.FAILED, 2, (1, 2)),
        "three": (Status.PASSED, None, None),
        "columns": (Status.FAILED, None, None),
        "shape": (Status.PASSED, None, None),
    }


@pytest.mark.parametrize("frame", [pd.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]})])
def test_a_frame_that_passes_comes_back_unchanged(frame):
    engine = type(frame).__module__.split(".")[0]
    schema = pandera_schema(quality_policy(rule("not_null", field="x")), engine)

    assert schema.validate(frame).equals(frame)


def test_a_lazy_frame_that_passes_stays_lazy():
    schema = pandera_schema(quality_policy(rule("not_null", field="x")), "polars")

    found = schema.validate(pl.LazyFrame({"x": [1]}))

    assert found.collect().equals(pl.DataFrame({"x": [1]}))


def test_a_policy_without_rules_passes_every_frame():
    assert failing(pandera_schema(quality_policy(), "pandas"), pd.DataFrame(DIRTY)) == set()


def test_without_lazy_the_first_rule_that_does_not_pass_is_raised():
    with pytest.raises(pandera.errors.SchemaError) as error:
        pandera_schema(POLICY, "pandas").validate(pd.DataFrame(DIRTY))

    assert error.value.check.name == "present"
    assert error.value.data is None


@pytest.mark.parametrize(("engine", "frame"), FRAMES.values(), ids=FRAMES)
def test_what_pandera_raises_holds_no_frame_and_no_cell(engine, frame):
    with pytest.raises(pandera.errors.SchemaErrors) as errors:
        pandera_schema(POLICY, engine).validate(frame, lazy=True)

    assert errors.value.data is None
    assert set(errors.value.failure_cases["failure_case"].to_list()) <= {False, "False", "false"}
    assert all(error.data is None for error in errors.value.schema_errors)


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_a_configuration_context_cannot_skip_checks(engine):
    frame = FRAMES[engine][1]
    schema = pandera_schema(POLICY, engine)

    with config_context(validation_enabled=False, validation_depth=ValidationDepth.SCHEMA_ONLY):
        found = failing(schema, frame)

    assert found == NOT_PASSING


@pytest.mark.parametrize("part", [{"head": 1}, {"tail": 1}, {"sample": 1}])
def test_a_part_of_the_rows_is_refused(part):
    with pytest.raises(InvalidArgumentError):
        pandera_schema(POLICY, "pandas").validate(pd.DataFrame(DIRTY), **part)


def test_pandera_decorators_may_use_the_schema():
    schema = pandera_schema(POLICY, "pandas")

    @pandera.pandas.check_input(schema, lazy=True)
    def load(frame):
        return frame

    with pytest.raises(pandera.errors.SchemaErrors):
        load(pd.DataFrame(DIRTY))


def test_a_second_validate_sees_what_a_pandas_frame_holds_now():
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [1, 1, 1]})
    schema = pandera_schema(POLICY, "pandas")
    before = failing(schema, frame)

    frame.loc[2, "x"] = None

    assert (before, failing(schema, frame)) == (set(), {"present"})


def test_a_second_validate_sees_what_a_polars_frame_holds_now():
    frame = pl.DataFrame({"x": [1, 2, 3], "y": [1, 1, 1]})
    schema = pandera_schema(POLICY, "polars")
    before = failing(schema, frame)

    frame[2, "x"] = None

    assert (before, failing(schema, frame)) == (set(), {"present"})


def test_a_check_by_itself_computes_from_the_frame_it_gets():
    (check,) = pandera_schema(quality_policy(rule("not_null", field="x")), "pandas").checks
    frame = pd.DataFrame({"x": [1, 2]})
    before = check(frame).check_passed

    frame.loc[1, "x"] = None

    assert (before, check(frame).check_passed) == (True, False)


def test_one_schema_serves_many_threads():
    schema = pandera_schema(POLICY, "pandas")
    clean = pd.DataFrame({"x": [1, 2, 3], "y": [0, 0, 0]})
    start = threading.Barrier(4)

    def repeat(frame):
        start.wait()
        return [failing(schema, frame) for _ in range(15)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(repeat, [clean, pd.DataFrame(DIRTY)] * 2))

    assert found == [[set()] * 15, [NOT_PASSING] * 15] * 2


def test_what_has_no_typed_form_is_an_error_and_never_a_failure():
    outcomes = {}
    schema = pandera_schema(POLICY, "pandas", recorder=outcomes)

    found = failing(schema, pd.DataFrame({"x": pd.Series([1, object()], dtype=object)}))

    assert found == {one.id for one in POLICY.rules}
    about_x = [outcomes[one.id] for one in POLICY.rules if "x" in one.fields]
    assert {(one.status, one.reason, one.affected) for one in about_x} == {
        (Status.ERROR, Reason.NOT_EVALUATED, None)
    }
    assert {outcomes["three"].status, outcomes["columns"].status} == {Status.FAILED}


def test_a_column_that_no_rule_names_may_be_without_a_typed_form():
    frame = pd.DataFrame({"x": [1, 2, 3], "other": pd.Series([object()] * 3, dtype=object)})

    assert failing(pandera_schema(POLICY, "pandas"), frame) == {"columns"}


def test_of_a_lazy_frame_only_the_columns_that_rules_name_are_read():
    query = pl.LazyFrame({"x": [1, 2, 3], "other": ["a", "b", "c"]})
    unread = query.with_columns(pl.col("other").cast(pl.Int64))

    assert failing(pandera_schema(POLICY, "polars"), unread) == {"columns"}


def test_a_policy_about_the_number_of_rows_alone_counts_those_of_a_lazy_frame():
    policy = quality_policy(rule("row_count", id="rows", maximum=2))

    assert failing(pandera_schema(policy, "polars"), pl.LazyFrame({"x": [1, 2, 3]})) == {"rows"}


def test_a_lazy_query_that_fails_is_refused_without_its_message():
    query = pl.LazyFrame({"x": ["zq-canary"]}).select(pl.col("x").cast(pl.Int64))

    with pytest.raises(EvaluationError) as error:
        pandera_schema(POLICY, "polars").validate(query)

    assert "zq-canary" not in str(error.value)
    assert error.value.__cause__ is error.value.__context__ is None


def test_severity_does_not_change_what_pandera_says():
    warning = quality_policy(rule("not_null", id="w", field="x", severity="warning"))

    assert failing(pandera_schema(warning, "pandas"), pd.DataFrame(DIRTY)) == {"w"}
