"""What breaks a consumer needs a major version, table by table."""

from datetime import date, timedelta

import pytest

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.contract import (
    ContractEnforcement,
    ContractStatus,
    ContractTable,
    ServiceLevels,
)
from datasource_governance.domain.contract_diff import check_version, contract_diff, needed_level
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.schema import DataType, Field, TableSchema
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.contracts import contract

OTHER = Sha256("1" * 64)


def fields(*given):
    return {
        "schema": TableSchema.of(
            Field(name=name, type=kind, nullable=nullable) for name, kind, nullable in given
        )
    }


def levels(hours=24, availability=99.9, quality=80.0):
    freshness = None if hours is None else timedelta(hours=hours)
    return {
        "service_levels": ServiceLevels(
            freshness=freshness, availability=availability, quality=quality
        )
    }


def policy(*rules):
    return {"quality_policy": parse_quality_policy({"version": "v", "rules": [*rules]})}


ID = ("id", DataType.INTEGER, False)
ROWS = {"id": "rows", "type": "row_count", "minimum": 5}


@pytest.mark.parametrize(
    ("before", "after", "level", "direction"),
    [
        (fields(ID, ("a", DataType.STRING, True)), fields(ID), "major", "loosens"),
        (fields(ID), fields(ID, ("a", DataType.STRING, True)), "minor", "tightens"),
        (fields(ID), fields(ID, ("a", DataType.STRING, False)), "minor", "tightens"),
        (fields(ID), fields(("id", DataType.STRING, False)), "major", "loosens"),
        (fields(ID), fields(("id", DataType.NUMBER, False)), "minor", "loosens"),
        (fields(("id", DataType.NUMBER, False)), fields(ID), "major", "loosens"),
        (fields(ID), fields(("id", DataType.UNKNOWN, False)), "major", "loosens"),
        (fields(("id", DataType.UNKNOWN, False)), fields(ID), "minor", "tightens"),
        (fields(ID), fields(("id", DataType.INTEGER, True)), "major", "loosens"),
        (fields(("id", DataType.INTEGER, True)), fields(ID), "minor", "tightens"),
        (levels(24), levels(12), "minor", "tightens"),
        (levels(24), levels(36), "major", "loosens"),
        (levels(24), levels(24 * 7), "major", "loosens"),
        (levels(24), levels(None), "major", "loosens"),
        (levels(None), levels(24), "minor", "tightens"),
        (levels(availability=99), levels(availability=99.9), "minor", "tightens"),
        (levels(availability=99), levels(availability=98), "major", "loosens"),
        (levels(quality=80) | policy(ROWS), levels(quality=70) | policy(ROWS), "major", "loosens"),
        (policy(ROWS), {}, "major", "loosens"),
        ({}, policy(ROWS), "minor", "tightens"),
        (policy(ROWS), policy(ROWS | {"minimum": 4}), "major", "loosens"),
        (policy(ROWS), policy(ROWS | {"minimum": 6}), "minor", "tightens"),
        (policy(ROWS), policy(ROWS | {"severity": "warning"}), "major", "loosens"),
        (
            {"end_of_life": date(2027, 1, 1)},
            {"end_of_life": date(2026, 1, 1)},
            "major",
            "loosens",
        ),
        ({}, {"end_of_life": date(2027, 1, 1)}, "minor", "loosens"),
        ({}, {"status": ContractStatus.DEPRECATED}, "patch", "neither"),
        ({}, {"status": ContractStatus.DRAFT}, "major", "loosens"),
        ({}, {"table": ContractTable(url_variable="A", table="t")}, "major", "neither"),
        ({}, {"enforcement": ContractEnforcement.BLOCK}, "patch", "neither"),
        ({}, {"description": "more words"}, "patch", "neither"),
    ],
)
def test_each_change_has_a_level_and_a_direction(before, after, level, direction):
    (found,) = contract_diff(contract(**before), contract(**after, hash=OTHER))
    assert (found.level, found.effect) == (level, direction)


@pytest.mark.parametrize(
    ("before", "after", "changed", "fits"),
    [
        ("1.0.0", "2.0.0", levels(36), True),
        ("1.0.0", "1.1.0", levels(36), False),
        ("1.0.0", "1.1.0", levels(12), True),
        ("1.0.0", "1.0.1", levels(12), False),
        ("1.0.0", "2.0.0", levels(12), True),
        ("1.0.0", "1.0.1", {}, True),
        ("1.0.0", "1.0.0", {}, False),
        ("1.2.0", "1.1.9", {}, False),
        ("0.1.0", "0.2.0", levels(36), True),
        ("0.1.0", "0.1.1", levels(36), False),
        ("9.0.0", "10.0.0", levels(36), True),
    ],
)
def test_a_version_says_how_much_changed(before, after, changed, fits):
    old, new = contract(version=before), contract(version=after, hash=OTHER, **changed)
    if fits:
        check_version(old, new)
        return
    with pytest.raises(GuardError) as refused:
        check_version(old, new)
    assert refused.value.code == "contract_version_too_low"


def test_the_same_contract_needs_no_version():
    assert needed_level(contract_diff(contract(), contract())) is None
    check_version(contract(), contract())


def test_the_refusal_says_what_breaks_and_which_version_is_needed():
    with pytest.raises(GuardError, match=r"2\.0\.0 at least.*freshness was 1 day"):
        check_version(contract(), contract(version="1.1.0", hash=OTHER, **levels(36)))
