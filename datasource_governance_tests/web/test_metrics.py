"""What Prometheus reads, parsed by its own parser, over a real webserver and database."""

from dataclasses import replace

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from datasource_governance.composition import Application
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.monitoring.monitor import Monitor
from datasource_governance.web.metrics import METRICS
from datasource_governance.web.settings import WebSettings
from datasource_governance_tests.builders import policy_document, rule
from datasource_governance_tests.domain.contracts import odcs
from datasource_governance_tests.web.serving import free_port, serving, with_accounts

TOKEN = "prometheus-" + "t" * 40
CELL = "zq-canary-7731"


@pytest.fixture(scope="module")
def scraped(office, web_context, tmp_path_factory):
    """A webserver with a token for Prometheus, over a contract that was checked."""
    own = office.corner().world
    own.grant(SYSTEM, Role.PRODUCER)
    own.grant(SYSTEM, Role.STEWARD)
    stale = odcs(
        id='of "orders"', slaProperties=[{"property": "latency", "value": 1e-6, "unit": "s"}]
    )
    own.declare(policy_document(rule("row_count")), kind="published", contracts=[stale])
    own.publish(pa.table({"id": [1, 2], "note": [CELL, CELL]}), key=own.datasource)
    for _ in Monitor(application=own.application, environment={}).run_due():
        pass
    folder = tmp_path_factory.mktemp("scraped")
    settings = with_accounts(WebSettings(directory=folder, metrics_token=TOKEN), "viewer")
    with serving(web_context, settings, own.application) as running:
        yield own, running


def scrape(running, token=TOKEN, method="GET"):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return running.client().fetch(method, METRICS, headers=headers)


def samples(answer):
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_a_scrape_tells_how_contracts_stand(scraped):
    own, running = scraped
    answer = scrape(running)
    found, name = samples(answer), own.datasource

    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    prefix, contract = "datasource_governance_contract", 'of "orders"'
    assert found[f"{prefix}_up", frozenset({contract, name})] == 1
    assert found[f"{prefix}_quality_score", frozenset({contract, name})] == 100
    assert found[f"{prefix}_freshness_used_ratio", frozenset({contract, name})] > 1
    assert found[f"{prefix}_checks_total", frozenset({"failed", "freshness", contract, name})] == 1
    assert found[f"{prefix}_checks_total", frozenset({"passed", contract, name, "quality"})] == 1
    assert (
        found[f"{prefix}_violations_total", frozenset({"error", "freshness", contract, name})] == 1
    )
    assert (
        found[f"{prefix}_open_violations", frozenset({"error", "freshness", contract, name})] == 1
    )
    assert (
        found[f"{prefix}_check_duration_seconds_count", frozenset({contract, name, "quality"})] == 1
    )
    assert (
        found[
            f"{prefix}_check_duration_seconds_bucket",
            frozenset({"+Inf", contract, name, "quality"}),
        ]
        == 1
    )
    assert CELL not in answer.text


def test_approvals_that_are_waited_for_are_counted(scraped):
    own, running = scraped
    approval = {"version": "v", "required": True, "separation_of_duties": False}
    other = replace(own, datasource="waiting_orders")
    other.declare(approval=approval)
    other.stage()

    assert (
        samples(scrape(running))[
            "datasource_governance_waiting_approvals", frozenset({"waiting_orders"})
        ]
        == 1
    )


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x", ""])
def test_without_the_token_only_an_actor_who_reads_everything_may(scraped, token):
    _, running = scraped
    assert scrape(running, token).status == 401
    assert running.client("viewer").get(METRICS).status == 200


def test_the_token_opens_nothing_else(scraped):
    _, running = scraped
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert running.client().fetch("GET", "/governance/contracts", headers=headers).status == 401
    assert scrape(running, method="POST").status in (401, 403)


def test_without_a_token_in_the_settings_there_is_no_way_around_signing_in(governed):
    assert scrape(governed).status == 401
    assert governed.client("nobody").get(METRICS).status == 403


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", METRICS, 200),
        ("OPTIONS", METRICS, 403),
        ("PUT", METRICS, 403),
        ("DELETE", METRICS, 403),
        ("GET", f"{METRICS}/", 401),
        ("GET", f"{METRICS}x", 401),
        ("GET", f"/{METRICS}", 401),
    ],
)
def test_the_token_reads_this_one_path(scraped, method, path, status):
    _, running = scraped
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert running.client().fetch(method, path, headers=headers).status == status


def test_without_a_database_there_is_a_sentence(web_world, web_context, tmp_path):
    url = f"postgresql+psycopg://login:{CELL}@127.0.0.1:{free_port()}/governance"
    away = Application(replace(web_world.application.settings, database_url=url))
    settings = with_accounts(WebSettings(directory=tmp_path, metrics_token=TOKEN))
    with serving(web_context, settings, away) as running:
        answer = scrape(running)
    away.close()

    assert answer.status == 503
    assert answer.text.startswith("Postgres at 127.0.0.1")
    assert CELL not in answer.text
    assert "Traceback" not in answer.text
