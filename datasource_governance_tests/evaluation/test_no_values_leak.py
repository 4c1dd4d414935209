"""No cell value leaves evaluation, whatever fails and wherever one looks."""

import base64
import datetime as dt
import logging
import pickle
import traceback
import warnings

import pandas as pd
import pandera.errors
import polars as pl
import pytest

from datasource_governance.errors import EvaluationError, GovernanceError
from datasource_governance.evaluation.compile import pandera_schema
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.frames import from_data
from datasource_governance_tests.builders import quality_policy, rule

TEXT = "zq-canary-7731"
NUMBER = 4821736450918273645
DATE = dt.date(1787, 6, 5)
BAIT = {
    TEXT,
    base64.b64encode(TEXT.encode()).decode().rstrip("="),
    TEXT.encode().hex(),
    str(NUMBER),
    str(DATE),
    "1787, 6, 5",
}
CELLS = {
    "text": [TEXT, TEXT, None],
    "number": [NUMBER, NUMBER, None],
    "date": [DATE, DATE, None],
    "mixed": [TEXT, NUMBER, TEXT],
    "list": [[TEXT], [TEXT], None],
}
POLICY = quality_policy(
    *(
        rule(kind, id=f"{kind} {name}", field=name, **keys)
        for name in CELLS
        for kind, keys in {
            "not_null": {},
            "unique": {},
            "range": {"minimum": 5, "maximum": 6},
            "referential": {"allowed_values": ["other"]},
            "field": {"data_type": "boolean", "nullable": False},
        }.items()
    ),
    rule("row_count", id="rows", minimum=100),
    rule("required_fields", id="fields", fields=["gone"]),
)
UNTYPED = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in CELLS.items()})
UNREADABLE = UNTYPED.assign(text=pd.Series([TEXT, {TEXT}, object()], dtype=object))


def leaks(*seen):
    """Return the bait that occurs in anything seen, exceptions with all that hangs on them."""
    text = "\n".join(told(one) for one in seen)
    return {bait for bait in BAIT if bait in text}


def told(thing):
    if not isinstance(thing, BaseException):
        return thing if isinstance(thing, str) else repr(thing)
    parts = ["".join(traceback.format_exception(thing)), repr(thing), repr(vars(thing))]
    for chained in (thing.__cause__, thing.__context__):
        if chained is not None:
            parts += [told(chained), *locals_of(chained)]
    return "\n".join(parts)


def locals_of(error):
    return [repr(frame.f_locals) for frame, _ in traceback.walk_tb(error.__traceback__)]


@pytest.fixture
def listened(caplog, capfd):
    """Return a function that tells everything logged, warned and printed so far."""
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [caplog.text, *(str(one.message) for one in caught), *capfd.readouterr()]


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_a_validation_in_which_every_rule_fails_holds_no_value(engine, listened):
    table = from_data(UNTYPED)

    found = PanderaEvaluator(engine).validate(POLICY, TypedPayload(table), None)

    assert not any(one.affected is None and one.rows for one in found.rules)
    assert found.rule_counts["error"]["failed"] == len(POLICY.rules) - 1
    assert not leaks(found, found.document(), found.hashed_bytes(), *listened())


@pytest.mark.parametrize("engine", ["pandas", "polars"])
def test_what_stock_pandera_raises_holds_no_value(engine, listened):
    frame = UNTYPED if engine == "pandas" else pl.DataFrame({"text": CELLS["text"]})
    outcomes = {}

    with pytest.raises(pandera.errors.SchemaErrors) as errors:
        pandera_schema(POLICY, engine, recorder=outcomes).validate(frame, lazy=True)

    error = errors.value
    single = [vars(one) for one in error.schema_errors]
    assert not leaks(error, error.message, error.failure_cases, single, outcomes, *listened())


def test_a_pickled_pandera_error_holds_no_value():
    with pytest.raises(pandera.errors.SchemaErrors) as errors:
        pandera_schema(POLICY, "pandas").validate(UNTYPED, lazy=True)

    kept = {name: str(value) for name, value in vars(errors.value).items()}
    assert not leaks(kept)
    assert TEXT.encode() not in pickle.dumps(kept)


def test_a_frame_that_cannot_be_read_leaves_no_value(listened):
    outcomes = {}

    with pytest.raises(pandera.errors.SchemaErrors) as errors:
        pandera_schema(POLICY, "pandas", recorder=outcomes).validate(UNREADABLE, lazy=True)

    not_evaluated = {name for name, one in outcomes.items() if one.status == "error"}
    assert not_evaluated == {rule.id for rule in POLICY.rules if rule.fields == ("text",)}
    assert not leaks(errors.value, outcomes, *listened())


def test_an_evaluation_that_breaks_leaves_no_value(listened):
    class Broken:
        def encoded(self):
            raise ValueError(f"could not convert {TEXT} {NUMBER} {DATE}")

    with pytest.raises(EvaluationError) as error:
        PanderaEvaluator().validate(POLICY, Broken(), None)

    assert not leaks(error.value, *locals_of(error.value), *listened())


@pytest.mark.parametrize(
    "planted",
    [
        f"affected: {TEXT}",
        {"rows": [NUMBER]},
        [DATE],
        GovernanceError(f"cannot compare {DATE}"),
        ValueError(TEXT.encode().hex()),
    ],
    ids=["text", "number", "date", "message", "hex"],
)
def test_the_search_finds_a_planted_value(planted):
    assert leaks("nothing here", planted)


def test_the_search_finds_a_value_in_a_cause_and_in_its_locals():
    def convert(cell):
        raise ValueError("no value in this message")

    try:
        try:
            convert(TEXT)
        except ValueError as error:
            raise EvaluationError("nothing in this one either") from error
    except EvaluationError as error:
        found = leaks(error)

    assert TEXT in found


def test_the_listener_hears_logs_warnings_and_prints(listened):
    logging.getLogger("anything").debug(TEXT)
    warnings.warn(str(NUMBER), UserWarning, stacklevel=1)
    print(DATE)  # noqa: T201 - what a library might do

    assert leaks(*listened()) == {TEXT, str(NUMBER), str(DATE)}
