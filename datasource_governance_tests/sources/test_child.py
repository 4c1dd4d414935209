"""A file that nobody vouches for may end the process that decodes it, and no other."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.schema import DataType
from datasource_governance.sources.child import (
    ChildLimits,
    Content,
    Task,
    ask_child,
    decode_in_child,
)
from datasource_governance.sources.files import read_content
from datasource_governance.sources.frames import from_data
from datasource_governance.sources.limits import MEBIBYTE, Limits
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of


def content(stored=b"a\n1\n", name="rows.csv", csv=None, **limits):
    return Content(name=name, stored=stored, csv=csv or CsvOptions(), limits=Limits(**limits))


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def decoded_by(decoder, **child):
    return decode_in_child(
        content(), ChildLimits(**child), f"datasource_governance_tests.sources.hostile:{decoder}"
    )


@pytest.mark.parametrize(
    "given",
    [
        content(parquet(pa.table({"s": ["é", None], "i": [2**60, None]})), "a.parquet"),
        content(
            "a;b\n1,5;01\n".encode("utf-16"),
            "a.CSV",
            CsvOptions(delimiter=";", decimal=",", encoding="utf-16", types={"b": DataType.STRING}),
        ),
        content(b"a\n" + b"9" * 60 + b"\n", "a.csv"),
        content(b"a\n", "a.csv"),
    ],
    ids=["parquet", "declared csv", "marked csv", "empty csv"],
)
def test_a_child_makes_the_same_table_as_this_process(given):
    assert decode_in_child(given).equals(read_content(given), check_metadata=True)


def test_many_nulls_come_back():
    table = from_data(pa.table({f"n{place}": pa.nulls(2**20) for place in range(65)}))

    assert decode_in_child(content(parquet(table), "a.parquet")).equals(table)


def test_what_the_child_refuses_is_refused_with_every_problem():
    given = content(f"a,a,\n{CANARY},2,3\n".encode())

    assert kinds_and_names(lambda: decode_in_child(given)) == kinds_and_names(
        lambda: read_content(given)
    )
    assert len(refusal_of(lambda: decode_in_child(given))) == 2


def test_limits_of_files_hold_in_the_child():
    given = content(b"a,b\n1,2\n", columns=1)

    assert kinds_and_names(lambda: decode_in_child(given)) == [("too_large", ())]


def test_a_child_that_hangs_is_stopped_by_the_clock():
    started = time.monotonic()

    assert kinds_and_names(lambda: decoded_by("hang", seconds=1)) == [("too_slow", ())]
    assert time.monotonic() - started < 5


def test_a_child_that_computes_for_ever_is_stopped_by_its_processor_time():
    assert kinds_and_names(lambda: decoded_by("burn", processor_seconds=1)) == [("too_slow", ())]


@pytest.mark.parametrize("decoder", ["crash", "fail", "answer_nonsense", "allocate", "missing"])
def test_a_child_that_dies_takes_nobody_with_it_and_says_nothing(decoder, capfd):
    kinds = kinds_and_names(lambda: decoded_by(decoder, memory_bytes=1024 * MEBIBYTE))

    assert kinds == [("decoder_died", ())]
    assert capfd.readouterr() == ("", "")


def test_problems_that_are_none_are_not_believed():
    assert kinds_and_names(lambda: decoded_by("answer_nonsense_as_problems")) == [
        ("decoder_died", ())
    ]


def test_an_answer_has_a_largest_size():
    flood = "datasource_governance_tests.sources.hostile:flood"
    given = content(table_bytes=4 * MEBIBYTE)

    assert kinds_and_names(lambda: decode_in_child(given, decoder=flood)) == [("decoder_died", ())]


def test_memory_that_a_real_file_asks_for_is_bounded():
    # 64 MiB of address space beyond those of an idle child, for 256 MiB of text.
    stored = parquet(pa.table({"s": ["x" * MEBIBYTE] * 256}))

    def decode():
        return decode_in_child(
            content(stored, "a.parquet"), ChildLimits(memory_bytes=450 * MEBIBYTE)
        )

    # Which library notices first, and whether it survives noticing, is not ours to say.
    ((kind, _),) = kinds_and_names(decode)
    assert kind in {"decoder_died", "malformed_parquet", "too_large"}


def test_a_child_inherits_no_secret_no_file_and_no_terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("GOVERNANCE_DATABASE_URL", CANARY)
    with (tmp_path / "open").open("w"):
        (found,) = decoded_by("surroundings", memory_bytes=2**30, seconds=30.5).to_pylist()

    assert not {"GOVERNANCE_DATABASE_URL", "HOME", "PATH"} & set(found["environment"])
    # The last is the directory that is being listed.
    assert found["files"] == ["0", "1", "2", "3"]
    assert not found["terminal"]
    assert found["session"]
    assert found["core"] == "0"
    assert [found[name] for name in ("memory", "processor", "opened", "alarm")] == [
        2**30,
        60,
        64,
        32,
    ]


def asked(tmp_path, function, **child):
    path = tmp_path / "open"
    path.write_bytes(CANARY.encode())
    with path.open("rb") as file:
        path.unlink()
        task = Task(
            function=f"datasource_governance_tests.sources.hostile:{function}",
            file=file,
            arguments={"more": 2**60},
            written_bytes=2**19,
        )
        return ask_child("the file", task, ChildLimits(**child))


def test_a_child_gets_an_open_file_and_arguments(tmp_path):
    assert asked(tmp_path, "echo") == f"{CANARY}{2**60}".encode()


@pytest.mark.parametrize(
    ("function", "limits", "kind", "names"),
    [
        ("hang_over_a_file", {"seconds": 1}, "too_slow", ()),
        ("write_much", {}, "decoder_died", ()),
        ("raise_what_it_read", {}, "decoder_died", ()),
        ("refuse", {}, "too_large", ("a", "b")),
    ],
)
def test_what_a_child_does_with_an_open_file_is_outlived(tmp_path, function, limits, kind, names):
    assert kinds_and_names(lambda: asked(tmp_path, function, **limits)) == [(kind, names)]
