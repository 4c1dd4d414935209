"""Reading a datasource: each form, inline and from an artifact, and nothing where it is refused."""

import os
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance import read_current
from datasource_governance.composition import read_settings
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.errors import GovernanceError
from datasource_governance.reading import Reader
from datasource_governance.services.reading import Bounds, Wanted
from datasource_governance_tests.postgres import unique_name
from datasource_governance_tests.publishing import (
    declare_published,
    publish_rows,
    publish_stored,
)

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

CANARY = "zq-canary-reading"
TABLE = pa.table({"id": [2**63 - 1, None], "note": [CANARY, None], "price": [0.5, 1.5]})
ROWS = TABLE.to_pylist()
FORMS = ["pandas", "polars", "arrow", "lazy"]
PUBLISHED = {"inline": publish_rows, "as an artifact": publish_stored}


@pytest.fixture
def published(own_corner):
    """A datasource that is published to, and that `system` may read."""
    declare_published(own_corner)
    return own_corner


@pytest.fixture(scope="module", params=PUBLISHED)
def kept(shared_world, request):
    """A datasource to which two rows were published, once for all tests that leave it as it is."""
    corner = replace(shared_world, datasource=unique_name("orders"))
    declare_published(corner)
    PUBLISHED[request.param](corner, TABLE)
    return corner


def load(world, form="arrow", bounds=None, **wanted):
    reader = Reader(application=world.application, bounds=bounds or Bounds())
    return reader.load(world.datasource, Wanted(**wanted), form)


def rows_of(frame):
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return (frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)).to_pylist()


def refusal(world, form="arrow", bounds=None, **wanted):
    """Return why nothing is given out; no value is in it, nor behind it."""
    with pytest.raises(GovernanceError) as refused:
        load(world, form, bounds, **wanted)
    assert CANARY not in repr(refused.value)
    assert refused.value.__context__ is None
    return refused.value


def object_of(world, loaded):
    """Return the path of the artifact that was read."""
    root = world.application.settings.state / "artifacts" / world.application.settings.tenant
    return root / world.datasource / loaded.materialization.payload_fingerprint


def test_every_form_has_the_rows_that_were_published(kept):
    for form in FORMS:
        loaded = load(kept, form)
        assert loaded.materialization.row_count == TABLE.num_rows
        assert rows_of(loaded.frame) == ROWS
        assert CANARY not in repr(loaded)


def test_columns_come_in_the_order_they_are_wanted(kept):
    for form in ("arrow", "lazy"):
        found = rows_of(load(kept, form, columns=["note", "id"]).frame)
        assert [list(row) for row in found] == [["note", "id"]] * 2
        refused = refusal(kept, form, columns=["gone", "id", "id", "lost"])
        assert refused.code == "invalid_argument"
        assert "'gone', 'id', 'lost'" in str(refused)


def test_rows_are_bounded_inclusively_and_a_scan_is_not(kept):
    assert rows_of(load(kept, bounds=Bounds(rows=2)).frame) == ROWS
    assert refusal(kept, bounds=Bounds(rows=1)).code == "payload_too_large"
    assert rows_of(load(kept, "lazy", bounds=Bounds(rows=1, bytes=1)).frame) == ROWS


def test_bytes_are_bounded_inclusively_by_what_the_wanted_columns_take(published):
    table = pa.table({"few": [0] * 50_000, "more": ["x" * 100] * 50_000})
    publish_rows(published, table)
    few = load(published, columns=["few"]).byte_count

    loaded = load(published, columns=["few"], bounds=Bounds(bytes=few))
    assert loaded.frame.num_rows == table.num_rows
    for columns, most in ((["few"], few - 1), (None, few)):
        refused = refusal(published, columns=columns, bounds=Bounds(bytes=most))
        assert refused.code == "payload_too_large"


def test_bytes_of_an_artifact_are_bounded_while_it_is_decoded(published):
    publish_stored(published, pa.table({"few": [0] * 50_000, "more": ["x" * 100] * 50_000}))

    half_a_mebibyte = Bounds(bytes=2**19)
    assert load(published, columns=["few"], bounds=half_a_mebibyte).frame.num_rows == 50_000
    assert refusal(published, bounds=half_a_mebibyte).code == "unreadable_source"


def test_an_object_that_was_swapped_after_publication_is_refused(published):
    publish_stored(published, TABLE)
    query = load(published, "lazy")
    path = object_of(published, query)
    path.unlink()
    pq.write_table(TABLE, path, compression="none")

    for form in FORMS:
        assert refusal(published, form).code == "artifact_tampered"
    # A scan goes on with the object that was verified.
    assert rows_of(query.frame) == ROWS
    path.unlink()
    assert refusal(published).code == "artifact_missing"


def test_a_grant_that_was_withdrawn_is_noticed_before_the_store_is_touched(published):
    publish_stored(published, TABLE)
    object_of(published, load(published, "lazy")).unlink()
    with published.application.work() as work:
        (grant,) = [
            one.id
            for one in work.authority.grants(SYSTEM)
            if (one.role, one.datasource) == (Role.STEWARD, published.datasource)
        ]
    published.withdraw(grant)

    for form in FORMS:
        assert refusal(published, form).code == "not_authorised"


def environment(world, monkeypatch):
    """Set the environment of a program that reads this world."""
    for name in [*os.environ]:
        if name.startswith("GOVERNANCE_"):
            monkeypatch.delenv(name)
    settings = world.application.settings
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", settings.database_url)
    monkeypatch.setenv("GOVERNANCE_STATE", str(settings.state))


def test_any_program_reads_what_is_current_of_its_environment(published, monkeypatch):
    environment(published, monkeypatch)
    first = publish_rows(published, TABLE, "monday").materialization
    publish_rows(published, TABLE.slice(1), "monday")
    name = published.datasource

    for form in FORMS:
        assert rows_of(read_current(name, partition="monday", as_=form)) == ROWS[1:]
    pinned = read_current(name, partition="monday", materialization=first.id, columns=["note"])
    assert rows_of(pinned) == [{"note": CANARY}, {"note": None}]


def test_a_program_that_asks_for_what_is_not_there_is_told_so(published, monkeypatch):
    environment(published, monkeypatch)
    publish_rows(published, TABLE)

    for refused, asked in (
        ("not_found", {"partition": "tuesday"}),
        ("not_found", {"materialization": "nobodys"}),
        ("invalid_argument", {"columns": ["gone"]}),
        ("invalid_argument", {"as_": "spark"}),
    ):
        with pytest.raises(GovernanceError) as told:
            read_current(published.datasource, **asked)
        assert told.value.code == refused


def test_without_a_database_a_program_is_told_what_to_start(published, monkeypatch, tmp_path):
    environment(published, monkeypatch)
    monkeypatch.delenv("GOVERNANCE_DATABASE_URL")
    monkeypatch.setenv("GOVERNANCE_STATE", str(tmp_path))
    assert read_settings().database_url is None

    with pytest.raises(GovernanceError, match="GOVERNANCE_DATABASE_URL"):
        read_current(published.datasource)
