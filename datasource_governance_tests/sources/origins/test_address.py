"""Addresses of every kind that is here: HTTP, files and fsspec's memory."""

import hashlib
import os

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import AddressOrigin, FileFormat
from datasource_governance.sources.limits import Limits
from datasource_governance.sources.origins.address import read_address
from datasource_governance_tests.sources.origin_server import origin_server
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of

CSV = CsvOptions()
CONTENT = b"a\n1\n2\n"
ROWS = [{"a": 1}, {"a": 2}]


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path):
    """Return a function that puts content where an address leads, and the address."""
    if request.param == "file":
        path = tmp_path / "rows.csv"
        return path.write_bytes, f"file://{path}"
    path = f"{tmp_path.name}/rows.csv"
    return (lambda content: fsspec.filesystem("memory").pipe(path, content)), f"memory://{path}"


def read(address, version=None, csv=CSV, kind=None, limits=None):
    origin = AddressOrigin(url=address, format=kind)
    return read_address(origin, csv, version, limits or Limits())


def test_a_file_is_read_with_its_digest_and_a_version(place):
    put, address = place
    put(CONTENT)

    answer = read(address)

    assert answer.table.to_pylist() == ROWS
    assert answer.name == "rows.csv"
    assert answer.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert read(address, answer.version) is None


def test_a_file_that_was_replaced_is_read_again(place):
    put, address = place
    put(CONTENT)
    first = read(address)
    put(b"a\n3\n4\n5\n")

    second = read(address, first.version)

    assert second.table.num_rows == 3
    assert second.version != first.version


def test_a_file_of_the_same_size_and_another_time_is_read_again(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(CONTENT)
    first = read(f"file://{path}")
    os.utime(path, ns=(0, 0))

    assert read(f"file://{path}", first.version) is not None


def test_an_http_address_is_read_and_asked_for_changes_only():
    with origin_server() as server:
        server.etag = '"one"'
        address = f"{server.address}/rows.csv?token={CANARY}"

        answer = read(address)

        assert (answer.name, answer.table.to_pylist()) == ("rows.csv", ROWS)
        assert read(address, answer.version) is None


def test_a_declared_format_stands_for_a_suffix(tmp_path):
    path = tmp_path / "rows"
    pq.write_table(pa.table({"a": [1, 2]}), path)

    answer = read(f"file://{path}", kind=FileFormat.PARQUET)

    assert (answer.name, answer.table.to_pylist()) == ("rows.parquet", ROWS)
    assert kinds_and_names(lambda: read(f"file://{path}")) == [("unknown_format", ())]


def test_csv_options_are_those_of_the_declaration(tmp_path):
    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n")
    options = CsvOptions(delimiter=";", decimal=",")

    answer = read(f"file://{tmp_path / 'rows.csv'}", csv=options)

    assert answer.table.to_pylist() == [{"a": 1.5, "b": 2}]


@pytest.mark.parametrize(
    "address", ["memory://nothing/rows.csv", "file:///no/such/folder/rows.csv"]
)
def test_what_is_not_there_is_not_found(address):
    assert kinds_and_names(lambda: read(address)) == [("not_found", ())]


def test_an_unknown_protocol_is_refused_without_the_address():
    problems = refusal_of(lambda: read(f"nowhere://{CANARY}/rows.csv"))

    assert [problem.kind for problem in problems] == ["unreadable"]


@pytest.mark.parametrize(("most", "is_refused"), [(len(CONTENT), False), (len(CONTENT) - 1, True)])
def test_a_file_has_at_most_as_many_bytes_as_the_limit(place, most, is_refused):
    put, address = place
    put(CONTENT)

    if is_refused:
        limits = Limits(file_bytes=most)
        assert kinds_and_names(lambda: read(address, limits=limits)) == [("too_large", ())]
    else:
        assert read(address, limits=Limits(file_bytes=most)).table.num_rows == 2


def test_what_cannot_be_decoded_is_refused_by_position_alone(place):
    put, address = place
    put(f"a,b\n1,2\n{CANARY}\n".encode())

    assert [problem.kind for problem in refusal_of(lambda: read(address))] == ["ragged_row"]
