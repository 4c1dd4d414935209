"""Origins, as declarations name them."""

import pytest

from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.origin import (
    MAXIMUM_VERSION_CHARACTERS,
    AddressOrigin,
    FileFormat,
    PythonOrigin,
    SqlOrigin,
    usable_token,
)
from datasource_governance.errors import InvalidPolicyError

ADDRESS = {"address": {"url": "https://data.example/rows.csv"}}


def declaration(origin, kind="cached"):
    return {"id": "orders", "kind": kind, "source": {"origin": origin}}


def declared(origin):
    return parse_datasource(declaration(origin), lambda _name: b"")


def refused(document):
    with pytest.raises(InvalidPolicyError) as caught:
        parse_datasource(document, lambda _name: b"")
    return [(one.kind, one.pointer) for one in caught.value.problems]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (
            {"sql": {"url_variable": "CRM_DATABASE", "query": "SELECT 1\nAS a"}},
            SqlOrigin(url_variable="CRM_DATABASE", query="SELECT 1\nAS a"),
        ),
        (
            {"sql": {"url_variable": "_c1", "query": "TABLE t", "order_by": ["a", "b"]}},
            SqlOrigin(url_variable="_c1", query="TABLE t", order_by=("a", "b")),
        ),
        (ADDRESS, AddressOrigin(url="https://data.example/rows.csv")),
        (
            {"address": {"url": "s3://bucket/a@b/rows", "format": "parquet"}},
            AddressOrigin(url="s3://bucket/a@b/rows", format=FileFormat.PARQUET),
        ),
        (
            {"python": {"function": "package.module:read_rows"}},
            PythonOrigin(function="package.module:read_rows"),
        ),
    ],
)
def test_a_cached_datasource_declares_one_origin(origin, expected):
    datasource = declared(origin)

    assert (datasource.origin, datasource.folder) == (expected, None)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({}, [("missing_key", "")]),
        ({**ADDRESS, "python": {"function": "a:b"}}, [("conflicting_keys", "")]),
        ({"table": {}}, [("unknown_key", "/table"), ("missing_key", "")]),
        ({"sql": {}}, [("missing_key", "/sql")] * 2),
        (
            {"sql": {"url_variable": "1A", "query": " ", "order_by": ["a", "a"]}},
            [
                ("invalid_value", "/sql/url_variable"),
                ("invalid_value", "/sql/query"),
                ("invalid_value", "/sql/order_by/1"),
            ],
        ),
        ({"sql": {"url": "duckdb://", "query": "q"}}, [("unknown_key", "/sql/url")]),
        ({"python": {"function": "a.b"}}, [("invalid_value", "/python/function")]),
        ({"python": {"function": "a:b.c"}}, [("invalid_value", "/python/function")]),
        (
            {"address": {"url": "memory://a", "format": "xlsx"}},
            [("invalid_value", "/address/format")],
        ),
    ],
)
def test_what_is_no_origin_is_refused_where_it_is(origin, expected):
    found = refused(declaration(origin))

    assert {(kind, f"/source/origin{pointer}") for kind, pointer in expected} <= set(found)


@pytest.mark.parametrize(
    "address",
    [
        "rows.csv",
        "/rows.csv",
        "https://user@data.example/rows.csv",
        "https://user:secret@data.example/rows.csv",
        "simplecache::https://data.example/rows.csv",
        "https://data.example/a b.csv",
        "https://",
    ],
)
def test_an_address_is_one_without_a_user_or_password(address):
    found = refused(declaration({"address": {"url": address}}))

    assert found == [("invalid_value", "/source/origin/address/url")]


def test_a_source_is_a_folder_or_an_origin():
    both = {"folder": "deliveries", "origin": ADDRESS}

    assert refused({"id": "a", "kind": "cached", "source": both}) == [
        ("conflicting_keys", "/source")
    ]
    assert refused({"id": "a", "kind": "cached", "source": {}}) == [("missing_key", "/source")]


def test_only_what_is_cached_has_an_origin():
    assert refused(declaration(ADDRESS, "static")) == [("conflicting_keys", "/source")]
    assert refused(declaration(ADDRESS, "published")) == [("conflicting_keys", "")]


@pytest.mark.parametrize(
    ("token", "is_usable"),
    [
        ("v", True),
        ("é ü", True),
        ("v" * MAXIMUM_VERSION_CHARACTERS, True),
        ("v" * (MAXIMUM_VERSION_CHARACTERS + 1), False),
        ("", False),
        ("a\tb", False),
        ("a\x00", False),
        (None, False),
    ],
)
def test_a_version_is_kept_if_it_is_a_short_printable_text(token, is_usable):
    assert usable_token(token) == (token if is_usable else None)
