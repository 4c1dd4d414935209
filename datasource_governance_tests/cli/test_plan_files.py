"""A plan that is handed on as a file is safe to open, whatever its partitions are called."""

import csv
import io
from datetime import timedelta

import pytest

from datasource_governance.cli.plan_files import plan_csv, plan_html
from datasource_governance.domain.disposition import WHAT_PURGING_IS_NOT
from datasource_governance.domain.retention import Blocker, BlockerKind
from datasource_governance.domain.retention_plan import StoredPlan
from datasource_governance_tests.retained import AS_OF, candidate, plan_of

HELD = Blocker(kind=BlockerKind.LEGAL_HOLD, ids=("h-1", "h-2"))


def stored(*candidates) -> StoredPlan:
    plan = plan_of(*candidates)
    return StoredPlan(plan=plan, planned_by="operator", created_at=AS_OF + timedelta(seconds=1))


def records(plan: StoredPlan) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(plan_csv(plan).decode(), newline="")))


@pytest.mark.parametrize("beginning", ["=", "+", "-", "@", "\t"])
def test_a_spreadsheet_takes_no_partition_for_a_formula(beginning):
    (record,) = records(stored(candidate(partition=f"{beginning}1+1")))

    assert record["partition"] == f"'{beginning}1+1"


def test_a_record_has_its_blockers_with_their_ids():
    kept, free = records(stored(candidate("s1", blockers=(HELD,)), candidate("s2")))

    assert kept["blockers"] == "legal_hold (h-1, h-2)"
    assert (free["id"], free["blockers"]) == ("s2", "")


def test_a_partition_with_commas_quotes_and_lines_is_one_cell():
    (record,) = records(stored(candidate(partition='a,"b"\nc')))

    assert record["partition"] == 'a,"b"\nc'


def test_the_page_says_all_of_a_plan_and_runs_nothing():
    page = plan_html(stored(candidate("s1", partition="<b>", blockers=(HELD,)))).decode()

    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "<script" not in page
    assert "h-1" in page
    assert WHAT_PURGING_IS_NOT[:60] in page


def test_a_plan_without_targets_has_a_page_and_a_heading_only():
    nothing = stored()

    assert records(nothing) == []
    assert nothing.plan.hash in plan_html(nothing).decode()
