"""What every provider goes through, whatever it does itself."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.validation import Status
from datasource_governance.errors import (
    InvalidArgumentError,
    PluginExecutionError,
    UnreadableSourceError,
)
from datasource_governance.quality.plugin import DataQualityPlugin, PluginConfiguration
from datasource_governance.quality.providers.pandera import PanderaPlugin
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.quality.misbehaving import Misbehaving, misbehaving
from datasource_governance_tests.sources.databases import new_duckdb

FRAME = pa.table({"a": [1, None]})
ASKED = expectations(quality_policy(rule("not_null", id="present", field="a")))
BAIT = "zq-password"


def refused(error, plugin, connection=FRAME, asked=ASKED):
    with pytest.raises(error) as raised:
        plugin.execute_checks(connection, asked)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    return raised.value


@pytest.mark.parametrize("name", ["execute_checks", "supports_sql_dialect", "version"])
def test_a_provider_cannot_replace_what_all_go_through(name):
    with pytest.raises(TypeError, match=f"Own must not define {name}; implement run"):
        type("Own", (DataQualityPlugin,), {name: None})


def test_nor_can_it_inherit_a_replacement():
    mixin = type("Mixin", (), {"execute_checks": lambda *_: None})

    with pytest.raises(TypeError, match="Own must not define execute_checks"):
        type("Own", (mixin, Misbehaving), {})


def test_a_provider_without_run_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        type("Own", (DataQualityPlugin,), {"name": "own"})()


def test_a_provider_whose_framework_is_not_installed_says_what_to_install():
    class Absent(Misbehaving):
        distributions = ("pandera", "no-such-distribution", "nor-this-one")
        extra = "datasource-governance[absent]"

    error = refused(PluginExecutionError, Absent())

    assert error.code == "provider_not_installed"
    assert error.facts["missing"] == ("no-such-distribution", "nor-this-one")
    assert str(error) == (
        "provider 'misbehaving' needs no-such-distribution, nor-this-one, which is not installed; "
        "run: pip install 'datasource-governance[absent]'"
    )


def test_without_an_expectation_nothing_is_evaluated_and_nothing_passes():
    result = PanderaPlugin().execute_checks(FRAME, [])

    assert result.checks == ()
    assert result.status is Status.ERROR


def test_a_rule_type_that_a_provider_does_not_evaluate_is_an_error_and_not_asked_for():
    class Partial(Misbehaving):
        kinds = frozenset({"unique"})

    result = Partial(PluginConfiguration(options={"does": "quote"})).execute_checks(FRAME, ASKED)

    assert [check.status for check in result.checks] == [Status.ERROR]


def test_an_expectation_that_is_repeated_is_refused():
    error = refused(InvalidArgumentError, PanderaPlugin(), asked=[*ASKED, *ASKED])

    assert str(error) == "expectations are repeated: present"


@pytest.mark.parametrize(
    "frame", [FRAME.to_pandas(), pl.from_arrow(FRAME)], ids=["pandas", "polars"]
)
def test_frames_of_either_library_are_read(frame):
    answers = [["present", 1, [2]]]

    result = misbehaving("answer", answers=answers).execute_checks(frame, ASKED)

    assert [(check.status, check.rows) for check in result.checks] == [(Status.FAILED, (2,))]
    assert (result.provider, result.status) == ("misbehaving", Status.FAILED)


@pytest.mark.parametrize("data", [[1], {"a": [1]}, None, pd.Series([1])])
def test_data_of_another_class_is_refused(data):
    assert "expected a pandas or Polars frame" in str(
        refused(InvalidArgumentError, PanderaPlugin(), data)
    )


def test_a_provider_reads_only_what_it_says_it_reads():
    class OnlyPostgres(Misbehaving):
        reads_frames = False
        dialects = frozenset({"postgresql"})

    duckdb = SqlSource("duckdb:///rows.duckdb", table="t")

    for connection, what in ((FRAME, "tables in memory"), (duckdb, "duckdb tables")):
        error = refused(PluginExecutionError, OnlyPostgres(), connection)
        assert error.code == "unsupported_connection"
        assert f"does not read {what}" in str(error)


def test_a_provider_that_another_process_cannot_import_is_refused():
    class Local(Misbehaving):
        pass

    assert "move it to a module" in str(refused(InvalidArgumentError, Local()))


def test_dialects_go_by_their_usual_names():
    plugin = misbehaving("answer")

    assert [
        name
        for name in ("postgres", "PostgreSQL", "DuckDB", "snowflake", "", "postgresql+psycopg2")
        if plugin.supports_sql_dialect(name)
    ] == ["postgres", "PostgreSQL", "DuckDB"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [(f"postgresql+psycopg://u:{BAIT}@127.0.0.1:9/db", "unreadable"), (None, "not_found")],
    ids=["database down", "table missing"],
)
def test_a_database_that_cannot_be_read_is_refused_and_no_rule_passes(url, kind, tmp_path):
    new_duckdb(tmp_path).run("CREATE TABLE other (a INTEGER)")
    source = SqlSource(url or new_duckdb(tmp_path).url, table="t")

    error = refused(
        UnreadableSourceError, misbehaving("answer", answers=[["present", 0, []]]), source
    )

    assert [problem.kind for problem in error.problems] == [kind]
    assert BAIT not in str(error) + repr(vars(error))


def test_a_table_of_a_database_is_read_in_the_other_process(tmp_path, monkeypatch):
    new_duckdb(tmp_path).run("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1), (NULL)")
    monkeypatch.chdir(tmp_path)
    relative = SqlSource("duckdb:///rows.duckdb", table="t")

    [check] = PanderaPlugin().execute_checks(relative, ASKED).checks

    assert (check.status, check.affected) == (Status.FAILED, 1)
