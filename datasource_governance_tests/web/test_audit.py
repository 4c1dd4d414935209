"""The log tells who did what, on one line, and no secret."""

import json
import logging

import pytest

from datasource_governance.web.audit import LOGGER, record
from datasource_governance_tests.web.schema import mutation
from datasource_governance_tests.web.serving import PASSWORD


@pytest.fixture
def events(caplog):
    """Return what is logged while a test runs."""
    caplog.set_level(logging.INFO, logger=LOGGER)

    def read() -> list[dict[str, str]]:
        return [json.loads(each.message) for each in caplog.records if each.name == LOGGER]

    return read


def test_an_event_is_one_line_whatever_a_client_chose(events, caplog):
    record("refused", path="/a\n2026 INFO signed_in\r\n", actor=None)

    assert events() == [{"event": "refused", "path": "/a\n2026 INFO signed_in\r\n"}]
    assert len(caplog.messages[0].splitlines()) == 1


@pytest.mark.postgres
def test_sign_ins_are_told_without_their_secrets(governed, events, caplog):
    client = governed.client()
    client.sign_in("viewer", "zq-canary-password")
    client.sign_in("viewer")

    failed, signed_in = (each for each in events() if each["event"].startswith("sign"))

    assert (failed["event"], failed["account"]) == ("sign_in_failed", "viewer")
    assert (signed_in["event"], signed_in["actor"]) == ("signed_in", "viewer")
    assert signed_in["peer"] == "127.0.0.1"
    for secret in ("zq-canary", PASSWORD, client.cookies["governance"], "argon2"):
        assert secret not in caplog.text


@pytest.mark.postgres
def test_refusals_and_mutations_are_told_with_who_asked(governed, events):
    governed.client("operator").ask(mutation("wipeAssets"))
    governed.client("operator").ask("mutation { setNuxSeen }")
    governed.client().get("/assets?token=zq-canary")

    refused, made, nobody = (each for each in events() if not each["event"].startswith("sign"))

    assert (refused["event"], refused["actor"]) == ("refused", "operator")
    assert refused["reason"].startswith("wipeAssets is not allowed")
    assert (made["event"], made["names"]) == ("mutation", "setNuxSeen")
    assert (nobody["code"], nobody["path"]) == ("not_signed_in", "/assets")
    assert "actor" not in nobody
