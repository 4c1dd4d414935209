"""Artifacts are looked into by a child process: described, judged, validated, and read in part."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance import validate
from datasource_governance.domain.artifact import MediaType
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.validation import Outcome
from datasource_governance.errors import GuardError, InvalidArgumentError, UnreadableSourceError
from datasource_governance.evaluation.artifacts import ArtifactReader
from datasource_governance.sources import forked
from datasource_governance.sources.child import ChildLimits
from datasource_governance_tests.builders import quality_policy, rule, schema
from datasource_governance_tests.domain.artifacts import reference

CANARY = "zq-canary-artifact"
TABLE = pa.table(
    {
        "id": [1, 2, 2, 4],
        "text": [CANARY, None, CANARY, "b"],
        "amount": [1.5, float("nan"), 3.0, -1.0],
    }
)
RULES = (
    rule(id="rows", minimum=5),
    rule("required_fields", id="columns", fields=["id", "gone"], severity="warning"),
    rule("field", id="id-type", field="id", data_type="integer", nullable=False),
    rule("field", id="text-type", field="text", data_type="integer"),
    rule("unique", id="id-unique", field="id"),
    rule("not_null", id="text-there", field="text", severity="warning"),
    rule("range", id="amount-range", field="amount", minimum=0),
    rule("not_null", id="gone-there", field="gone"),
)
POLICY = quality_policy(*RULES)
READER = ArtifactReader()


@pytest.fixture
def artifact(tmp_path):
    """A function that writes a table and returns the open file."""
    opened = []

    def write(table=TABLE, **options):
        path = tmp_path / "artifact"
        pq.write_table(table, path, **options)
        opened.append(path.open("rb"))
        return opened[-1]

    yield write
    for file in opened:
        file.close()


def of_table(table=TABLE, **facts):
    fields = schema(id="integer", text="string?", amount="number?")
    return reference(**{"row_count": table.num_rows, "schema": fields, **facts})


def test_a_file_is_described_by_its_footer(artifact):
    description = READER.describe(artifact(), MediaType.PARQUET)

    # NaN is not seen without looking at the rows.
    assert description.schema == schema(id="integer", text="string?", amount="number")
    assert description.row_count == 4
    assert description.with_nulls == {"text"}


def test_what_no_footer_counts_may_be_null(artifact):
    description = READER.describe(artifact(write_statistics=False), MediaType.PARQUET)

    assert description.schema == schema(id="integer?", text="string?", amount="number?")
    assert description.with_nulls == frozenset()


def test_rules_about_names_types_and_counts_are_judged_without_the_rows(artifact):
    description = READER.describe(artifact(), MediaType.PARQUET)

    judged = READER.judge(POLICY, description)

    whole = {one.id: one for one in validate(POLICY, TABLE).rules}
    assert judged == {name: whole[name] for name in ("rows", "columns", "text-type", "gone-there")}


@pytest.mark.parametrize(
    "kind",
    [
        "integer",
        "number",
        "string",
        "boolean",
        "date",
        "datetime",
        "time",
        "binary",
        "list",
        "object",
        "unknown",
    ],
)
def test_every_logical_type_is_judged_as_it_is_in_a_table(artifact, kind):
    types = {
        "integer": pa.int16(),
        "number": pa.decimal128(10, 2),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("ns", "UTC"),
        "time": pa.time32("ms"),
        "binary": pa.binary(4),
        "list": pa.list_(pa.int8()),
        "object": pa.struct([("x", pa.int8())]),
        "unknown": pa.null(),
    }
    table = pa.schema([("c", types[kind])]).empty_table()
    policy = quality_policy(
        *(rule("field", id=other, field="c", data_type=other) for other in types)
    )

    judged = READER.judge(policy, READER.describe(artifact(table), MediaType.PARQUET))

    assert tuple(judged.values()) == validate(policy, table).rules


@pytest.mark.parametrize("memory_bytes", [2**29, 2**16], ids=["in memory", "in batches"])
def test_a_validation_of_an_artifact_hashes_as_that_of_the_frame(artifact, memory_bytes):
    table = pa.concat_tables([TABLE] * 2000)
    previous = schema(id="integer", amount="integer?")
    reader = ArtifactReader(memory_bytes=memory_bytes)

    found = reader.validate(POLICY, artifact(table), MediaType.PARQUET, previous)

    expected = validate(POLICY, table, previous)
    assert found.hashed_bytes() == expected.hashed_bytes()
    assert found.outcome is Outcome.BLOCKED
    assert CANARY.encode() not in canonical_bytes(found.document())


def test_some_columns_are_read_and_no_others(artifact):
    found = READER.read(
        artifact(), of_table(), columns=["text", "id"], maximum_rows=4, maximum_bytes=10**6
    )

    assert found.column_names == ["text", "id"]
    assert found["id"].to_pylist() == [1, 2, 2, 4]
    whole = READER.read(artifact(), of_table(), maximum_rows=4, maximum_bytes=10**6)
    assert whole.column_names == ["id", "text", "amount"]


@pytest.mark.parametrize("columns", [["gone"], ["id", "id"], [], ["id", "ID"]])
def test_columns_that_are_not_there_once_are_refused(artifact, columns):
    with pytest.raises(InvalidArgumentError):
        READER.read(artifact(), of_table(), columns=columns, maximum_rows=4, maximum_bytes=10**6)


def test_more_rows_or_bytes_than_are_allowed_are_not_read(artifact):
    with pytest.raises(GuardError) as rows:
        READER.read(artifact(), of_table(), maximum_rows=3, maximum_bytes=10**6)
    with pytest.raises(UnreadableSourceError) as size:
        READER.read(artifact(), of_table(), maximum_rows=4, maximum_bytes=32, columns=["id"])

    assert rows.value.code == "payload_too_large"
    assert [one.kind for one in size.value.problems] == ["too_large"]
    # Four numbers, and a bit for each that says if it is null.
    exactly = READER.read(artifact(), of_table(), maximum_rows=4, maximum_bytes=33, columns=["id"])
    assert exactly.num_rows == 4


def test_other_rows_than_the_reference_says_are_not_given_out(artifact):
    with pytest.raises(GuardError) as refused:
        READER.read(artifact(), of_table(row_count=3), maximum_rows=4, maximum_bytes=10**6)

    assert refused.value.code == "artifact_tampered"


def everything(reader, file):
    """Return the ways to look into a file, each of which must refuse a bad one."""
    return (
        lambda: reader.describe(file, MediaType.PARQUET),
        lambda: reader.validate(POLICY, file, MediaType.PARQUET, None),
        lambda: reader.read(file, of_table(), maximum_rows=4, maximum_bytes=10**6),
    )


def assert_refused(look, kinds):
    with pytest.raises(UnreadableSourceError) as refused:
        look()
    assert {one.kind for one in refused.value.problems} <= kinds
    assert CANARY not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:0],
        lambda content: content[:-9],
        lambda content: content[: len(content) // 2] + content[-8:],
        lambda content: content[:0] + CANARY.encode() * 10,
    ],
    ids=["empty", "cut", "hollow", "nonsense"],
)
def test_a_damaged_file_is_refused_without_a_word_of_it(artifact, tmp_path, damage):
    content = artifact().read()
    (tmp_path / "damaged").write_bytes(damage(content))

    with (tmp_path / "damaged").open("rb") as file:
        for look in everything(READER, file):
            assert_refused(look, {"malformed_parquet", "unreadable"})


def test_what_a_validation_imports_before_its_child_is_forked_starts_no_thread(artifact):
    READER.validate(POLICY, artifact(), MediaType.PARQUET, None)

    assert len(list(Path(f"/proc/{forked.SERVER.pid}/task").iterdir())) == 1


def test_a_child_without_memory_or_time_is_outlived(artifact):
    poor = ArtifactReader(child=ChildLimits(memory_bytes=2**26))
    hasty = ArtifactReader(child=ChildLimits(seconds=0.01))

    # What cannot even load a library for want of memory may take that for a damaged file.
    died = {"decoder_died", "too_large", "malformed_parquet"}
    for reader, kinds in ((poor, died), (hasty, {"too_slow"})):
        for look in everything(reader, artifact()):
            assert_refused(look, kinds)


def test_a_file_in_memory_cannot_be_handed_over():
    with pytest.raises(io.UnsupportedOperation):
        READER.describe(io.BytesIO(b""), MediaType.PARQUET)
