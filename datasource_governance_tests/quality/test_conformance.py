"""Every provider answers as the native evaluator does, over frames, Postgres and DuckDB."""

import pytest

from datasource_governance.domain.schema import DataType
from datasource_governance.errors import PluginExecutionError
from datasource_governance.quality.conformance import (
    EMPTY,
    ROWS,
    SCHEMA,
    check_conformance,
    conformance_cases,
)
from datasource_governance.quality.conformance_data import MIXED, ODD_NAMES
from datasource_governance.quality.plugin import PluginConfiguration
from datasource_governance.quality.providers.pandera import PanderaPlugin
from datasource_governance.quality.registry import provider
from datasource_governance_tests.quality.misbehaving import Misbehaving, misbehaving
from datasource_governance_tests.sources.databases import new_duckdb, new_postgres

PROVIDERS = ("pandera", "great_expectations", "soda", "dbt")


@pytest.fixture(scope="module")
def postgres(cluster):
    yield from new_postgres(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_conforms_over_frames(name):
    assert [*map(str, check_conformance(provider(name)))] == []


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_conforms_over_tables_of_postgres(name, postgres):
    assert [*map(str, check_conformance(provider(name), postgres.url, [ROWS]))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_conforms_over_tables_of_duckdb(name, tmp_path):
    database = new_duckdb(tmp_path)

    assert [*map(str, check_conformance(provider(name), database.url, [ROWS]))] == []

    left = f"SELECT count(*) AS x FROM duckdb_schemas() WHERE schema_name = '{SCHEMA}'"
    assert database.column(left).to_pylist() == [0]


def test_no_provider_of_this_package_leaves_more_than_it_must():
    nested = {DataType.LIST, DataType.OBJECT, DataType.UNKNOWN}

    inexact = {name: provider(name).inexact_types for name in PROVIDERS}

    assert inexact == {
        "pandera": frozenset(),
        "great_expectations": frozenset(),
        "soda": nested,
        "dbt": nested,
    }


def expected(dataset):
    return {
        case.expected.id: (str(case.expected.status), case.expected.affected)
        for case in conformance_cases()
        if case.dataset == dataset
    }


def test_what_is_expected_was_counted_by_hand_once():
    found = expected(ROWS)

    assert {rule: found[rule] for rule in BY_HAND} == BY_HAND


BY_HAND = {
    # 1, 1, 0, -1, 2, 3, null, null, 10, 100, -5, 2
    "integer unique": ("failed", 6),
    "integer unique, nulls ignored": ("failed", 4),
    "integer range": ("failed", 3),
    # NaN, null, inf, -inf, 0.0, -0.0, 0.1, 0.30000000000000004, 1e308, 2^53, 27.0, NaN
    "double not_null": ("failed", 3),
    "double unique": ("failed", 5),
    "double unique, nulls ignored": ("failed", 2),
    "double bounds 0": ("failed", 9),
    "double bounds 1": ("failed", 3),
    "double referential": ("failed", 10),
    # 2^53, 2^53+1 twice, -(2^53)-1, 2^63-1, -(2^63), null, 2^53-1, 2^63-2, 0, 1, 2^53+2
    "large integer unique": ("failed", 2),
    "large integer referential": ("failed", 8),
    "large integer bounds 1": ("failed", 5),
    "large integer bounds 2": ("failed", 9),
    # Neither a truth, a text nor a date is a number; and none of them is a code of another type.
    "flag range": ("failed", 12),
    "flag referential": ("failed", 5),
    "flag referential, nulls allowed": ("failed", 9),
    "text range, nulls allowed": ("failed", 11),
    "text referential, nulls allowed": ("failed", 9),
    "day referential": ("failed", 12),
    # True, 1, "1", 1.0, null, 27, "true", False, 0, "a", NaN, 2
    f"{MIXED} unique": ("failed", 4),
    f"{MIXED} referential": ("failed", 5),
    f"{MIXED} range": ("failed", 7),
    "left and right unique": ("failed", 8),
    "left and right unique, nulls ignored": ("failed", 2),
    "left and right not_null": ("failed", 6),
    "missing not_null": ("failed", None),
    "row_count exact": ("passed", None),
    "row_count too few": ("failed", None),
    "required_fields": ("passed", None),
    "field other type": ("failed", None),
    "odd names not_null": ("failed", 3),
    "odd names unique": ("passed", 0),
    **{f"odd name {name} referential": ("failed", 11) for name in ODD_NAMES[:11]},
}


def test_rules_over_no_rows_pass_but_for_those_about_rows_and_fields():
    failed = {rule for rule, (status, _) in expected(EMPTY).items() if status == "failed"}

    assert failed == {
        "row_count too few",
        "required_fields missing",
        "field other type",
        *(f"missing {kind}" for kind in ("not_null", "unique", "range", "referential")),
    }


def test_all_seven_types_of_rules_are_among_the_cases():
    assert {case.expected.type for case in conformance_cases()} == {
        *("row_count", "required_fields", "field", "not_null", "unique", "range", "referential")
    }


def test_ids_tell_cases_apart():
    ids = [case.id for case in conformance_cases()]

    assert len(ids) == len({*ids})


class Modest(Misbehaving):
    """Says nothing, and declares that it evaluates only ranges, and no numbers among them."""

    kinds = frozenset({"range"})
    inexact_types = frozenset({DataType.INTEGER, DataType.NUMBER})


class Hasty(PanderaPlugin):
    """Finds every other rule passed, and a row too many for the rest."""

    def run(self, target, expectations, folder):
        found = [*super().run(target, expectations, folder)]
        for place, one in enumerate(found):
            affected = 0 if place % 2 else (one.affected or 0) + 1
            yield type(one)(id=one.id, affected=affected)


def test_what_a_provider_declares_that_it_leaves_is_no_nonconformity():
    modest = misbehaving("answer", answers=[], provider=Modest)

    found = {one.case.expected.id for one in check_conformance(modest, datasets=[ROWS])}

    fields = ("text", "unicode", "flag", "day", "moment", MIXED)
    assert found == {
        f"{field} {kind}" for field in fields for kind in ("range", "range, nulls allowed")
    }


def test_wrong_counts_and_false_passes_are_told_with_case_expectation_and_finding():
    told = [*map(str, check_conformance(Hasty(), datasets=[ROWS]))]

    assert {
        "rows: row_count exact: expected passed, found failed row_count",
        (
            "rows: integer unique, nulls ignored: expected failed duplicate 4 (1, 2, 5, 12), "
            "found failed duplicate 5"
        ),
        "rows: integer unique: expected failed duplicate 6 (1, 2, 5, 7, 8, 12), found passed 0",
    } <= {*told}


def test_a_provider_that_cannot_run_is_no_list_of_nonconformities():
    plugin = Misbehaving(PluginConfiguration(options={"does": "quote"}))

    with pytest.raises(PluginExecutionError):
        check_conformance(plugin, datasets=[EMPTY])
