"""No cell leaves a provider's process, which connects to nothing but the database."""

import datetime as dt
import logging
import socket
import tempfile
import warnings
from decimal import Decimal

import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.validation import Status
from datasource_governance.errors import GovernanceError, UnreadableSourceError
from datasource_governance.quality.plugin import PluginConfiguration
from datasource_governance.quality.registry import provider
from datasource_governance.sources.sql.read import SqlSource
from datasource_governance_tests.builders import quality_policy, rule
from datasource_governance_tests.evaluation.test_no_values_leak import told
from datasource_governance_tests.quality.misbehaving import TEXT, misbehaving
from datasource_governance_tests.quality.watching import watched
from datasource_governance_tests.sources.databases import new_postgres

NUMBER = 4821736450918273
DATE = dt.date(1787, 6, 5)
BAIT = {TEXT, TEXT.encode().hex(), str(NUMBER), str(DATE), "1787, 6, 5"}
FRAME = pa.table(
    {
        "text": [TEXT, TEXT],
        "whole": [NUMBER, NUMBER],
        "double": [float(NUMBER), float(NUMBER)],
        "decimal": pa.array([Decimal(NUMBER)] * 2, pa.decimal128(20, 2)),
        "date": [DATE, DATE],
    }
)
VIEW = f"""
CREATE VIEW cells AS
SELECT text, whole, double, decimal, date, (text || id)::int AS failing
FROM (
    SELECT id, '{TEXT}'::text AS text, {NUMBER}::int8 AS whole, {NUMBER}::float8 AS double,
        {NUMBER}::numeric(20, 2) AS decimal, '{DATE}'::date AS date
    FROM generate_series(1, 2) AS id
) AS made
"""
RULES = [
    document
    for name in FRAME.column_names
    for document in (
        rule("unique", id=f"{name} unique", field=name),
        rule("range", id=f"{name} range", field=name, minimum=5, maximum=6),
        rule("referential", id=f"{name} referential", field=name, allowed_values=["other", 7]),
    )
]
FAILING = rule("range", id="failing", field="failing", minimum=1)


@pytest.fixture(scope="module")
def postgres(cluster):
    for database in new_postgres(cluster):
        database.run(VIEW)
        yield database


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Watch every run, and hold each to leaving no file behind."""
    temporary, watching = tmp_path / "temporary", tmp_path / "watching"
    temporary.mkdir()
    watching.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield watched(watching, temporary, monkeypatch)
    assert list(temporary.iterdir()) == []


@pytest.fixture
def listened(caplog, capfd):
    """Return a function that tells everything logged, warned and printed so far."""
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [caplog.text, *(str(one.message) for one in caught), *capfd.readouterr()]


def leaks(*seen):
    text = "\n".join(map(told, seen))
    return {bait for bait in BAIT if bait in text}


def answered(plugin, data, *rules):
    """Return a result, or the refusal."""
    try:
        return plugin.execute_checks(data, expectations(quality_policy(*RULES, *rules)))
    except GovernanceError as error:
        return error


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("name", ["pandera", "great_expectations", "soda", "dbt"])
def test_a_provider_tells_no_cell_and_connects_to_nothing(name, watch, postgres, listened):
    options = {"executable": watch.dbt} if name == "dbt" else {}
    watched_too = provider(name, PluginConfiguration(options=options))

    frame = answered(provider(name), FRAME)
    table = answered(watched_too, SqlSource(postgres.url, table="cells"), FAILING)

    assert [check.status for check in frame.checks] == [Status.FAILED] * len(RULES)
    if name == "pandera":
        # It reads the table as a whole, so the failing field is its end.
        assert isinstance(table, UnreadableSourceError)
    else:
        assert {check.id: str(check.status) for check in table.checks} == {
            **{document["id"]: "failed" for document in RULES},
            "failing": "error",
        }
    assert not leaks(frame, table, *listened())
    assert watch.recorded("connected") == []
    assert watch.recorded("wrote") == []
    assert watch.recorded("began") == ["-P", "-P", *(["dbt"] if name == "dbt" else [])]


def test_the_watch_sees_connections_files_and_cells(watch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()
        plugin = misbehaving("reach", port=port, place=str(tmp_path / "cells"))

        result = answered(plugin, FRAME)

    assert {check.affected for check in result.checks} == {2}
    assert watch.recorded("connected") == ["socket.getaddrinfo", "socket.connect"]
    assert watch.recorded("wrote") == [str(tmp_path / "cells")]
    assert TEXT.encode() in watch.kept()
