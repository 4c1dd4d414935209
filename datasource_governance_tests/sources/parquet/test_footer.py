"""What a Parquet footer tells of fields, rows and nulls, and what it leaves open."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.errors import UnreadableSourceError
from datasource_governance.sources.limits import Limits
from datasource_governance.sources.parquet.footer import parquet_footer

MARK = b"datasource_governance"


@pytest.fixture
def footer(tmp_path):
    """A function that writes a table and returns what its footer tells."""

    def read(table, limits=None, **options):
        path = tmp_path / "rows.parquet"
        pq.write_table(table, path, **options)
        with path.open("rb") as file:
            return parquet_footer(file, limits or Limits())

    return read


def test_fields_are_those_of_the_typed_form_and_rows_those_of_all_row_groups(footer):
    table = pa.table({"id": range(10), "text": pa.array(["x"] * 10).dictionary_encode()})

    found = footer(table, row_group_size=3)

    assert found.row_count == 10
    assert found.schema.names == ["id", "text"]
    assert found.schema.types == [pa.int64(), pa.large_string()]


def test_nulls_are_counted_in_every_row_group(footer):
    table = pa.table({"late": [1, 2, 3, None], "none": [1, 2, 3, 4]})

    found = footer(table, row_group_size=1)

    assert (found.with_nulls, found.without_nulls) == ({"late"}, {"none"})


def test_a_required_field_has_no_nulls(footer):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])

    found = footer(pa.table([[1]], schema=schema), write_statistics=False)

    assert found.without_nulls == {"id"}


def test_what_is_not_counted_is_left_open(footer):
    table = pa.table({"a": [1, None], "list": [[1], [2]], "struct": [{"x": 1}, {"x": None}]})

    assert footer(table).with_nulls == {"a"}
    assert footer(table).without_nulls == frozenset()
    uncounted = footer(table, write_statistics=False)
    assert (uncounted.with_nulls, uncounted.without_nulls) == (frozenset(), frozenset())


def test_nan_is_not_seen(footer):
    assert footer(pa.table({"x": [1.0, math.nan]})).without_nulls == {"x"}


def test_a_leaf_is_not_taken_for_a_field_with_a_point_in_its_name(footer):
    fields = [
        pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable=False)]), nullable=False),
        pa.field("s.x", pa.int64()),
    ]
    table = pa.table([[{"x": 1}], [None]], schema=pa.schema(fields))

    assert "s.x" not in footer(table).without_nulls


def test_a_mark_that_the_rows_do_not_bear_out_is_dropped(footer):
    tagged = pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])

    def of(cells):
        field = pa.field("n", tagged, metadata={MARK: b"number"})
        return footer(pa.table([pa.array(cells, tagged)], schema=pa.schema([field])))

    assert of([{"kind": "number", "value": b"1"}]).schema.field("n").metadata == {MARK: b"number"}
    assert of([{"kind": "text", "value": b"1"}]).schema.field("n").metadata is None


@pytest.mark.parametrize("limits", [Limits(columns=1), Limits(nesting=0)])
def test_more_columns_or_nesting_than_is_allowed_is_refused(footer, limits):
    with pytest.raises(UnreadableSourceError) as refused:
        footer(pa.table({"a": [[1]], "b": [1]}), limits)

    assert {one.kind for one in refused.value.problems} == {"too_large"}


def test_repeated_names_are_refused(footer):
    with pytest.raises(UnreadableSourceError) as refused:
        footer(pa.table([[1], [2]], names=["a", "a"]))

    assert [one.kind for one in refused.value.problems] == ["duplicate_column"]


def test_what_is_no_parquet_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1zq-canaryPAR1")

    with path.open("rb") as file, pytest.raises(UnreadableSourceError) as refused:
        parquet_footer(file)

    assert [one.kind for one in refused.value.problems] == ["malformed_parquet"]
    assert refused.value.__context__ is None
