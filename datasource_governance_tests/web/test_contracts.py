"""The page about contracts: for whom it shows what, and that it says what is so."""

from datetime import date, timedelta

import pytest

from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.compliance import Compliance, Day
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.services.reporting import report_contracts
from datasource_governance.web.contracts import CONTRACTS, bars, report_page
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.domain.contracts import odcs

HOSTILE = "<script>alert('x')</script>"


def watched(office):
    """A datasource whose contract has a hostile name, and is broken."""
    own = office.corner()
    own.world.grant(SYSTEM, Role.PRODUCER)
    own.world.grant(SYSTEM, Role.STEWARD)
    stale = odcs(id=HOSTILE, slaProperties=[{"property": "latency", "value": 1e-6, "unit": "s"}])
    own.world.declare(policy_document(rule("row_count")), kind="published", contracts=[stale])
    own.world.publish(key=own.world.datasource)
    for _ in Monitor(application=own.world.application, environment={}).run_due():
        pass
    return own


def test_broken_promises_stand_first_and_what_is_named_is_escaped(office):
    own = watched(office)
    answer = own.serving.client("viewer").get(CONTRACTS)

    assert answer.status == 200
    assert HOSTILE not in answer.text
    assert "&lt;script&gt;" in answer.text
    first = answer.text.index("percent of the promised freshness")
    assert first < answer.text.index("availability")
    assert "<rect" in answer.text
    assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]


def test_who_has_no_role_over_a_datasource_does_not_see_its_contracts(office):
    own, other = watched(office), watched(office)
    name = own.newcomer(Role.VIEWER)

    seen = own.serving.client(name).get(CONTRACTS).text

    assert own.world.datasource in seen
    assert other.world.datasource not in seen
    assert own.serving.client().get(CONTRACTS, accept="application/json").status == 401


def test_the_same_page_goes_into_a_file_without_links(office):
    own = watched(office)
    content = report_page(report_contracts(own.world.application.work())).body.decode()
    assert own.world.datasource in content
    assert "<a " not in content
    assert "<script" not in content


@pytest.mark.parametrize("days", [1, 30, 365])
@pytest.mark.parametrize("passed", [0, 1, 50, 100])
def test_every_day_is_seen_in_the_picture(passed, days):
    kept = Compliance(
        days=tuple(
            Day(
                day=date(2026, 12, 1) + timedelta(place),
                passed=passed,
                failed=100 - passed,
                errors=0,
            )
            for place in range(days)
        )
    )
    drawn = bars(kept)
    assert len(drawn) == days
    assert {bar["y"] + bar["height"] for bar in drawn} == {24}
    assert min(bar["height"] for bar in drawn) >= 1
    assert max(bar["x"] for bar in drawn) < 120
