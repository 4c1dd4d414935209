"""A project says what it was told, whatever characters are in it, and keeps it to itself."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import Environment

from datasource_governance.domain.rules import Severity
from datasource_governance.quality.providers.dbt_project import (
    constant,
    id_of_test,
    variable,
    write_project,
    write_test,
)


def rendered(template, **functions):
    return Environment(autoescape=False).from_string(template, functions).render()  # noqa: S701 - it is no HTML


@given(st.text())
@example("{{ 1 }} {% endraw %} {# # }} %} ' \" \\ \\u0041 \\n \n\r\t\0 %s : ${a} é 😀")
def test_a_constant_is_its_text(text):
    template = constant(text)

    assert template.isascii()
    assert rendered(template) == text


def test_a_variable_is_what_the_environment_has_and_is_not_looked_at_once_more():
    as_text = {"env_var": lambda name, _default: f"{name} {{{{ 1 }}}}"}

    template = variable("PASSWORD").replace(" | as_text", "")

    assert rendered(template, **as_text) == "PASSWORD {{ 1 }}"


@pytest.mark.parametrize(("severity", "word"), [("error", "error"), ("warning", "warn")])
def test_a_test_is_named_by_number_and_has_the_severity_of_its_rule(tmp_path, severity, word):
    write_project(tmp_path, {})

    write_test(tmp_path, 3, Severity(severity), "SELECT '{{'")

    written = (tmp_path / "tests" / "rule_3.sql").read_text("ascii")
    configured = []
    assert rendered(written, config=lambda **options: configured.append(options) or "") == (
        "\nSELECT '{{'"
    )
    assert configured == [{"severity": word}]
    assert id_of_test(3) == "test.expectations.rule_3"


def test_the_profile_is_its_owner_s_alone(tmp_path):
    write_project(tmp_path, {"type": "duckdb"})

    profiles = tmp_path / "profiles.yml"
    (profile,) = json.loads(profiles.read_bytes()).values()
    assert profile["outputs"][profile["target"]] == {"type": "duckdb"}
    assert profiles.stat().st_mode & 0o777 == 0o600
