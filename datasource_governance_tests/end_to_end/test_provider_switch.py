"""One line of a real manifest switches the quality provider; Dagster decides the same."""

from dataclasses import replace

import dagster as dg
import pytest

from datasource_governance.composition import Application
from datasource_governance.domain.actor import Role
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.stage import StageState
from datasource_governance_tests.orchestration.governed import (
    BLOCKED,
    GOOD,
    POLICY,
    REVIEW,
    checks_of,
    code_of,
    deliver,
    promotion_run,
    stage_run,
    stages,
    target,
)
from datasource_governance_tests.world import TWO_APPROVALS, World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

PROVIDERS = ("pandera", "great_expectations", "soda", "dbt")
UNPROVEN = {**TWO_APPROVALS, "separation_of_duties": False}
MANIFEST = """\
apiVersion: acme.example/v1
kind: Manifest
metadata: {name: acme, version: "1.0.0"}
plugins:
  data_quality:
    provider: pandera
    config:
      timeout_seconds: 120
"""


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def on_platform(world, tmp_path):
    """Return the world of a process that reads the manifest with another provider in it."""
    opened = []

    def switched(provider, **others):
        path = tmp_path / f"{provider}.yaml"
        text = MANIFEST.replace("provider: pandera", f"provider: {provider}")
        for before, after in others.items():
            text = text.replace(before, after)
        path.write_text(text)
        application = Application(replace(world.application.settings, platform=path))
        opened.append(application)
        return World(application=application, database=world.database)

    yield switched
    for application in opened:
        application.close()


def found(stage):
    """Return what was decided of a stage, and of each rule; row numbers are left out."""
    validation = load_canonical(stage.validation)
    rules = [
        (rule["id"], rule["status"], rule["affected"], rule["reason"])
        for rule in validation["rules"]
    ]
    score = validation["score"]
    return {
        "state": stage.state,
        "outcome": stage.outcome,
        "fingerprint": stage.payload_fingerprint,
        "score": (score["value"], score["level"]),
        "rules": rules,
    }


def test_every_provider_lets_the_same_assets_through_the_same_gates(on_platform, instance):
    decided = {}
    for provider in PROVIDERS:
        world = on_platform(provider)
        world.declare(POLICY)
        before = len(stages(world))
        runs = [
            stage_run(world, deliver(world, rows, f"{name}.csv"), instance)
            for name, rows in (("blocked", BLOCKED), ("review", REVIEW))
        ]
        made = stages(world)[: len(stages(world)) - before][::-1]
        checks = [{name: one.passed for name, one in checks_of(run).items()} for run in runs]
        decided[provider] = ([run.success for run in runs], checks, [*map(found, made)])
        assert all(f"+{provider}@" in stage.evaluator_version for stage in made)

    for provider in PROVIDERS:
        assert (provider, decided[provider]) == (provider, decided["pandera"])
    successes, _, made = decided["pandera"]
    assert successes == [False, True]
    assert [one["state"] for one in made] == [StageState.FAILED, StageState.READY]


def test_an_approval_is_void_when_the_provider_or_its_configuration_changes(on_platform, instance):
    before = on_platform("pandera")
    before.declare(POLICY, UNPROVEN)
    stage_run(before, deliver(before, GOOD), instance)
    (stage,) = stages(before)
    for approver in ("alice", "bob"):
        before.admit(approver, Role.APPROVER)
        before.decide(approver, stage)

    after = on_platform("pandera", **{"timeout_seconds: 120": "thresholds: {min_score: 80}"})
    after.declare(POLICY, UNPROVEN)
    run = promotion_run(after, stage.id, instance)

    assert not run.success
    assert code_of(run) == "stage_outdated"
    assert target(after).current is None


def test_a_process_with_another_manifest_than_the_one_in_force_stages_nothing(
    on_platform, world, instance
):
    configured = on_platform("pandera")
    configured.declare(POLICY)

    run = stage_run(world, deliver(world, GOOD), instance)

    assert code_of(run) == "provider_changed"
    assert stages(world) == []


def test_a_score_that_gates_blocks_what_no_error_rule_would(on_platform, instance):
    gating = {"timeout_seconds: 120": "score_gates_promotion: true"}
    world = on_platform("pandera", **gating)
    only_warnings = {
        "version": "v1",
        "rules": [{"id": "note", "type": "not_null", "field": "note", "severity": "warning"}],
    }
    world.declare(only_warnings)

    run = stage_run(world, deliver(world, REVIEW), instance)

    (stage,) = stages(world)
    assert stage.state is StageState.FAILED
    score = load_canonical(stage.validation)["score"]
    assert (score["value"], score["level"], score["gates"]) == (0, "blocked", True)
    assert not run.success
