import pyarrow as pa

from datasource_governance.quality.targets import FrameTarget, SqlTarget


def test_a_target_in_memory_has_the_columns_of_its_table():
    table = pa.table({"b": [1], "a": ["x"]})

    assert FrameTarget(table=table).columns == table.schema


def test_a_target_in_a_database_does_not_show_its_password():
    target = SqlTarget(
        url="postgresql+psycopg://u:zq-password@db/shop",
        dialect="postgresql",
        table="t",
        schema=None,
        columns=pa.schema({"a": pa.int64()}),
        timeout_seconds=1,
    )

    assert "zq-password" not in repr(target)
