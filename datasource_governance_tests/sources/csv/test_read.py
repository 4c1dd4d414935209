"""CSV is read as it was declared, over all rows, or refused naming the record."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.schema import DataType
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.sources.csv.read import read_csv
from datasource_governance.sources.limits import Limits
from datasource_governance_tests.sources.csv_reference import MalformedError, parse_table
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names

HEADER_KINDS = ("duplicate_column", "blank_column_name")
NUMBERS_STRUCT = pa.struct([("kind", pa.large_string()), ("value", pa.large_binary())])


def column(*cells, **options):
    """Read cells as one column `a`, quoted where a delimiter is inside."""
    lines = (f'"{cell}"' if "," in cell else cell for cell in cells)
    return read_csv("\n".join(["a", *lines, ""]).encode(), CsvOptions(**options)).column("a")


def refused(text, limits=None, **options):
    content = text if isinstance(text, bytes) else text.encode()
    return kinds_and_names(lambda: read_csv(content, CsvOptions(**options), limits or Limits()))


def outcome(read):
    try:
        return read()
    except MalformedError:
        return "malformed_csv"


@given(
    header=st.sampled_from(["a", "a,b", '"a",b', "a,b,c", '"a"', "", "\r\na"]),
    body=st.text(st.sampled_from('"",,\r\n xé;'), max_size=24),
)
def test_records_are_those_of_the_reference_for_any_text(header, body):
    text = f"{header}\n{body}"
    names = ["a", "b", "c"]

    expected = outcome(lambda: parse_table(text))

    if isinstance(expected, str):
        assert {kind for kind, _ in refused(text)} & {expected, *HEADER_KINDS}
    elif expected[0] == names[: len(expected[0])]:
        types = dict.fromkeys(expected[0], DataType.STRING)
        table = read_csv(text.encode(), CsvOptions(types=types))
        assert [list(row.values()) for row in table.to_pylist()] == expected[1]


@given(
    st.lists(
        st.lists(st.text(st.sampled_from('";\r\n aé'), min_size=1), min_size=2, max_size=2),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_quoted_cells_come_back_as_they_were(rows, line_end):
    lines = [";".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    text = line_end.join(["a;b", *lines])
    options = CsvOptions(delimiter=";", types={"a": DataType.STRING, "b": DataType.STRING})

    table = read_csv(text.encode(), options)

    assert [list(row.values()) for row in table.to_pylist()] == rows


def test_a_quote_inside_a_cell_that_starts_without_one_is_text():
    assert column('5" pipe', 'x"y').to_pylist() == ['5" pipe', 'x"y']


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", "^", "-", "]", "\\", " "])
def test_any_ascii_character_separates_cells(delimiter):
    text = f'a{delimiter}b\n"x{delimiter}y"{delimiter}2\n'

    table = read_csv(text.encode(), CsvOptions(delimiter=delimiter))

    assert table.to_pylist() == [{"a": f"x{delimiter}y", "b": 2}]


def test_blank_lines_are_no_records_where_there_are_columns():
    table = read_csv(b"\n\na,b\n\n1,2\n\r\n\r3,4\n\n")

    assert table.to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_blank_lines_before_the_last_record_of_one_column_are_nulls():
    assert read_csv(b"a\n\n1\n\n3\n\n\n").column("a").to_pylist() == [None, 1, None, 3]


def test_a_quoted_empty_cell_is_a_record_even_at_the_end():
    assert read_csv(b'a\n1\n""\n').column("a").to_pylist() == [1, None]


def test_ragged_records_are_named_up_to_the_25th_and_counted_all():
    text = "a,b\n" + "1,2\n" + f"{CANARY}\n" * 26

    names = tuple(str(number) for number in range(2, 27))
    assert refused(text) == [("ragged_row", names)]


def test_ragged_and_malformed_records_are_reported_together():
    text = f'a,b\n1\n1,2\n"{CANARY}"x,2\n1,2,3\n'

    assert refused(text) == [("ragged_row", ("1",)), ("malformed_csv", ("3",))]


@pytest.mark.parametrize("cell", [f'"{CANARY}', f'"{CANARY}"x', f'"{CANARY}" ', '"""'])
def test_a_quote_not_closed_or_followed_by_text_refuses_the_record(cell):
    assert refused(f"a,b\n1,2\n\n1,{cell}\n") == [("malformed_csv", ("2",))]


def test_a_malformed_header_has_no_record_number():
    assert refused('"a\n1\n') == [("malformed_csv", ())]


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_header_is_refused(content):
    assert refused(content) == [("no_header", ())]


def test_names_columns_and_missing_fields_are_refused_all_at_once():
    options = {"types": {"z": DataType.INTEGER}}

    assert refused(",a,a\n", Limits(columns=2), **options) == [
        ("blank_column_name", ("1",)),
        ("duplicate_column", ("a",)),
        ("missing_field", ("z",)),
        ("too_large", ()),
    ]


def test_a_header_alone_has_fields_of_unknown_type_unless_declared():
    table = read_csv(b"a,b", CsvOptions(types={"b": DataType.DATE}))

    assert table.schema.types == [pa.null(), pa.date32()]
    assert table.num_rows == 0


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (f"a\n{CANARY}é\n".encode("latin-1"), "utf-8"),
        (f"a\n{CANARY}\n".encode("utf-16"), "utf-8"),
        (f"a\n{CANARY}\n".encode("utf-16-le"), "utf-8"),
        (f"a\n{CANARY}é\n".encode(), "ascii"),
    ],
)
def test_bytes_that_are_not_of_the_encoding_refuse_the_file_naming_it(content, encoding):
    assert refused(content, encoding=encoding) == [("invalid_encoding", (encoding,))]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
def test_a_declared_encoding_is_read_and_its_byte_order_mark_dropped(encoding):
    mark = "\ufeff" if encoding in {"utf-8", "utf-16-be"} else ""
    content = f'{mark}"ä"\nß\n'.encode(encoding)

    assert read_csv(content, CsvOptions(encoding=encoding)).to_pylist() == [{"ä": "ß"}]


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"PK\x03\x04"])
def test_compressed_files_are_refused(magic):
    assert refused(magic + b"a\n1\n") == [("malformed_csv", ())]


def test_more_cells_than_the_limit_allows_are_refused_before_they_are_split():
    content = "a\n" + "\n" * 1000 + "1\n"

    assert refused(content, Limits(table_bytes=9000)) == [("too_large", ())]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["0", "-0", "-5"], pa.int64()),
        (["007"], pa.large_string()),
        (["+1"], pa.large_string()),
        (["1,000"], pa.large_string()),
        (["9223372036854775807", "-9223372036854775808"], pa.int64()),
        (["9223372036854775808"], pa.uint64()),
        (["1.", "2"], pa.large_string()),
        ([".5"], pa.large_string()),
        (["1", "2.5", "1e3", "-2E-3"], pa.float64()),
        (["01.5"], pa.large_string()),
        (["NaN"], pa.large_string()),
        (["123456789012345.6"], pa.decimal128(16, 1)),
        (["true", "False", "TRUE"], pa.bool_()),
        (["fal\u017fe"], pa.large_string()),
        (["yes"], pa.large_string()),
        (["0001-01-01", "2024-02-29", "9999-12-31"], pa.date32()),
        (["2023-02-29"], pa.large_string()),
        (["1900-02-29"], pa.large_string()),
        (["0000-01-01"], pa.large_string()),
        (["2024-1-1"], pa.large_string()),
        (["2024-01-01T00:00", "9999-12-31 23:59:59.123456"], pa.timestamp("us")),
        (["2024-01-01T00:00:00.123456789"], pa.timestamp("ns")),
        (["2024-01-01T00:00:00.1234567", "9999-12-31T00:00:00"], pa.large_string()),
        (["2024-01-01T00:00Z", "2024-01-01T02:00+02:00"], pa.timestamp("us", "UTC")),
        (["2024-01-01T00:00Z", "2024-01-01T00:00"], pa.large_string()),
        (["2024-01-01T24:00"], pa.large_string()),
        (["2024-01-01T23:59:60"], pa.large_string()),
        (["12:00"], pa.large_string()),
        (["NA", "null"], pa.large_string()),
        ([" 1"], pa.large_string()),
    ],
)
def test_undeclared_columns_have_the_first_type_that_all_cells_fit(cells, expected):
    assert column(*cells).type == expected


def test_one_cell_in_the_last_row_makes_the_column_text():
    assert column(*["1"] * 1200, "12a").type == pa.large_string()


def test_integers_beyond_64_bits_are_exact_and_marked():
    table = read_csv(b"a,b\n18446744073709551616,-9223372036854775809\n")

    assert table.schema.types == [pa.decimal128(38, 0)] * 2
    assert {field.metadata[b"datasource_governance"] for field in table.schema} == {b"integer"}
    assert table.to_pylist() == [{"a": Decimal(2**64), "b": Decimal(-(2**63) - 1)}]


def test_numbers_too_long_for_a_double_stay_different():
    cells = column("0.30000000000000004", "0.3")

    assert cells.to_pylist() == [Decimal("0.30000000000000004"), Decimal("0.30000000000000000")]


def test_doubles_written_in_full_with_exponents_are_doubles():
    assert column("0.30000000000000004", "9.5e-05", "1.7976931348623157e+308").to_pylist() == [
        0.30000000000000004,
        9.5e-05,
        1.7976931348623157e308,
    ]


@pytest.mark.parametrize("cell", ["1e400", "1e-400", "4.9e-324", "9" * 77, "1" * 18 + "e1"])
def test_numbers_that_fit_no_arrow_type_are_kept_by_exact_value(cell):
    cells = column(cell, "1.50")

    assert cells.type == NUMBERS_STRUCT
    assert Decimal(cells.to_pylist()[0]["value"].decode()) == Decimal(cell)
    assert cells.to_pylist()[1] == {"kind": "number", "value": b"1.5"}


def test_the_declared_decimal_sign_is_the_only_one():
    assert column("2,50", "2,999", decimal=",").to_pylist() == [2.5, 2.999]
    assert column("2.50", decimal=",").type == pa.large_string()


def test_offsets_are_taken_as_the_instants_they_name():
    assert (
        column("2024-01-01T02:00:00+02:00", "2024-01-01 00:00Z").to_pylist()
        == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 2
    )


@pytest.mark.parametrize(
    ("data_type", "good", "bad", "arrow_type"),
    [
        ("integer", "1", "1.0", pa.int64()),
        ("integer", "1", "9" * 77, pa.int64()),
        ("number", "1", "x", pa.float64()),
        ("boolean", "true", "1", pa.bool_()),
        ("date", "2024-01-01", "2024-01-01T00:00", pa.date32()),
        ("datetime", "2024-01-01T00:00", "2024-01-01", pa.timestamp("us")),
        ("time", "23:59:59.123456", "24:00", pa.time64("us")),
        ("time", "23:59:59.123456789", "1:00", pa.time64("ns")),
    ],
)
def test_a_cell_that_does_not_fit_its_declared_type_is_named_by_row(
    data_type, good, bad, arrow_type
):
    assert column(good, "", types={"a": data_type}).type == arrow_type
    assert refused(f"a,b\n{good},\n,\n{bad},\n", types={"a": data_type}) == [
        ("value_not_of_declared_type", ("a", "3"))
    ]


def test_all_fields_with_cells_of_another_type_are_named():
    types = {"a": DataType.INTEGER, "b": DataType.BOOLEAN}

    assert refused(f"a,b\n{CANARY},{CANARY}\n1,{CANARY}\n", types=types) == [
        ("value_not_of_declared_type", ("a", "1")),
        ("value_not_of_declared_type", ("b", "1", "2")),
    ]


def test_datetimes_declared_once_with_and_once_without_offset_name_the_fewer():
    cells = "2024-01-01T00:00Z\n2024-01-01T00:00\n2024-01-01T00:00Z\n"

    assert refused(f"a\n{cells}", types={"a": DataType.DATETIME}) == [
        ("value_not_of_declared_type", ("a", "2"))
    ]


def test_a_declared_string_is_literal_but_for_the_empty_cell():
    cells = ["007", "1e5", "TRUE", " ", "", "x"]

    assert column(*cells, types={"a": DataType.STRING}).to_pylist() == [
        "007",
        "1e5",
        "TRUE",
        " ",
        None,
        "x",
    ]


def test_options_of_another_form_are_refused_all_at_once():
    with pytest.raises(InvalidArgumentError) as error:
        CsvOptions(delimiter=";;", decimal="x", encoding="rot13", types={"a": DataType.LIST})

    assert [problem.names for problem in error.value.facts["problems"]] == [
        ("delimiter",),
        ("decimal",),
        ("encoding",),
        ("a",),
    ]


@pytest.mark.parametrize("delimiter", ["", '"', "\n", "\r", "\0", "§"])
def test_a_delimiter_is_one_ascii_character_that_means_nothing_else(delimiter):
    with pytest.raises(InvalidArgumentError):
        CsvOptions(delimiter=delimiter)


def test_thousands_of_quoted_cells_are_strict_and_one_that_is_not_is_named():
    # Python before 3.11.5 lost its way in a long repeat of alternatives.
    lines = [f'"{number}","a ""b"" c",d"e' for number in range(5000)]

    table = read_csv("\n".join(["a,b,c", *lines]).encode())

    assert table.num_rows == 5000
    assert kinds_and_names(lambda: read_csv("\n".join(["a,b,c", *lines, '"x"y,"",']).encode())) == [
        ("malformed_csv", ("5001",))
    ]
