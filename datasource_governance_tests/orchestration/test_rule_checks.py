"""Few rules have a check each, many report per rule type; Dagster stores three events a check."""

import re
from itertools import cycle, islice

import dagster as dg
import pytest

from datasource_governance.domain.quality_policy import RULES, Severity
from datasource_governance.orchestration.check_names import FIXED, rule_type_check_name
from datasource_governance.orchestration.registry import governed_definitions
from datasource_governance.orchestration.rule_checks import (
    RULES_WITH_A_CHECK_EACH,
    rule_check_results,
    rule_check_specs,
)
from datasource_governance_tests.orchestration.governed import (
    AMOUNT,
    BLOCKED,
    GOOD,
    ID_UNIQUE,
    NOTE,
    REVIEW,
    checks_of,
    declaration,
    deliver,
    failure_of,
    stage_run,
)
from datasource_governance_tests.orchestration.governed import rule_found as found

KEY = dg.AssetKey(["orders", "stage"])
MOST = RULES_WITH_A_CHECK_EACH
PER_TYPE = {"unique_errors", "range_errors", "not_null_warnings"}
FIXED_ON_STAGE = {"quality_policy", "schema_classification"}
EVALUATION = "ASSET_CHECK_EVALUATION"


def many(count, *, of=(ID_UNIQUE, AMOUNT, NOTE)):
    """Return a policy of so many rules, taken in turn, each with an id of its own."""
    rules = [{**rule, "id": f"r-{n}"} for n, rule in enumerate(islice(cycle(of), count))]
    return {"version": f"v{count}", "rules": rules}


def rules_of(policy):
    return declaration(policy).quality_policy.rules


def specs(policy):
    return {one.name: one for one in rule_check_specs(rules_of(policy), KEY)}


def results(*rules, policy):
    return {one.check_name: one for one in rule_check_results(rules, rules_of(policy), KEY)}


def value(result, key):
    return result.metadata[f"datasource_governance/{key}"].value


def table(result):
    return [record.data["rule"] for record in value(result, "rules").records]


def test_fifty_rules_have_a_check_each():
    assert MOST == 50
    assert set(specs(many(MOST))) == {f"r_{n}" for n in range(MOST)}


def test_fifty_one_rules_have_a_check_for_each_type_and_severity_that_occurs():
    assert set(specs(many(MOST + 1))) == PER_TYPE


def test_error_and_warning_rules_of_one_type_never_share_a_check():
    made = specs(many(MOST + 1, of=(ID_UNIQUE, {**ID_UNIQUE, "severity": "warning"})))

    assert {name: spec.blocking for name, spec in made.items()} == {
        "unique_errors": True,
        "unique_warnings": False,
    }


def test_a_check_of_many_rules_says_how_many_it_speaks_for():
    made = specs(many(MOST + 1, of=(ID_UNIQUE, *[NOTE] * MOST)))

    assert {name: spec.description for name, spec in made.items()} == {
        "unique_errors": "1 `unique` rule of severity `error` of the quality policy.",
        "not_null_warnings": "50 `not_null` rules of severity `warning` of the quality policy.",
    }


def test_names_for_rule_types_are_legal_distinct_and_none_of_the_fixed_ones():
    names = [
        *FIXED,
        *(
            rule_type_check_name(rule_type, severity)
            for rule_type in RULES
            for severity in Severity
        ),
    ]

    assert len(set(names)) == len(FIXED) + len(RULES) * len(Severity)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)


def test_a_check_of_many_rules_passes_when_all_of_them_passed():
    policy = many(MOST + 1, of=(ID_UNIQUE,))

    made = results(*(found(f"r-{n}") for n in range(MOST + 1)), policy=policy)["unique_errors"]

    assert made.passed
    assert made.description == "51 of 51 rules passed"
    assert value(made, "failed_rules") == 0


def test_a_check_of_many_rules_counts_and_lists_them_all_those_that_did_not_pass_first():
    policy = many(MOST + 1, of=(ID_UNIQUE,))
    stored = [found(f"r-{n}") for n in range(MOST + 1)]
    stored[7] = found("r-7", status="failed", affected=2, rows=[7, 9], reason="duplicate")
    stored[40] = found("r-40", status="error", affected=None, rows=None, reason="not_evaluated")

    made = results(*stored, policy=policy)["unique_errors"]

    assert not made.passed
    assert made.severity is dg.AssetCheckSeverity.ERROR
    assert made.description == "49 of 51 rules passed"
    assert value(made, "failed_rules") == 2
    assert table(made)[:3] == ["r-7", "r-40", "r-0"]
    assert len(table(made)) == MOST + 1


def test_what_is_only_in_force_has_no_part_in_a_check_of_many_rules():
    policy = many(MOST + 1)

    made = results(found("r-0"), found("other", status="failed"), policy=policy)

    assert set(made) == {"unique_errors"}
    assert table(made["unique_errors"]) == ["r-0"]


def test_a_rule_that_is_in_force_with_another_severity_is_as_severe_as_it_is_there():
    policy = many(MOST + 1)

    made = results(found("r-2", status="failed", type="not_null"), policy=policy)

    assert made["not_null_warnings"].severity is dg.AssetCheckSeverity.ERROR


@pytest.mark.parametrize("count", [0, 1, MOST, MOST + 1, 500])
def test_a_policy_of_any_size_loads(count):
    defs = governed_definitions([declaration(many(count))])

    dg.Definitions.validate_loadable(defs)
    checks = {one.name for one in defs.resolve_asset_graph().asset_check_keys}
    per_rule = {f"r_{n}" for n in range(count)}
    assert checks == {*FIXED, *(per_rule if count <= MOST else PER_TYPE)}


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def staged(world, instance, rows, *, declared, in_force=None):
    """Stage rows under one policy where another, or the same, is declared."""
    world.declare(declared if in_force is None else in_force)
    return stage_run(world, deliver(world, rows), instance, declared=declaration(declared))


def stored_events(instance, run):
    return len(instance.all_logs(run.run_id))


def not_passed(run):
    return {name: one.severity.name for name, one in checks_of(run).items() if not one.passed}


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("count", [MOST, MOST + 1])
def test_rules_are_recorded_in_the_step_of_their_stage_at_three_events_a_check(
    world, instance, count
):
    run = staged(world, instance, GOOD, declared=many(count))
    bare = stage_run(world, deliver(world, GOOD), instance, declared=declaration(many(0)))

    checks = set(checks_of(run)) - FIXED_ON_STAGE
    steps = {one.step_key for one in run.all_events if one.event_type_value == EVALUATION}
    assert set(checks_of(bare)) == FIXED_ON_STAGE
    assert checks == ({f"r_{n}" for n in range(count)} if count <= MOST else PER_TYPE)
    assert stored_events(instance, run) - stored_events(instance, bare) == 3 * len(checks)
    assert steps == {"orders__stage"}


@pytest.mark.postgres
@pytest.mark.slow
def test_warnings_among_many_rules_are_yellow_and_do_not_block(world, instance):
    run = staged(world, instance, REVIEW, declared=many(MOST + 1))

    assert run.success
    assert not_passed(run) == {"not_null_warnings": "WARN", "quality_policy": "WARN"}


@pytest.mark.postgres
@pytest.mark.slow
def test_errors_among_many_rules_block(world, instance):
    run = staged(world, instance, BLOCKED, declared=many(MOST + 1))

    told = failure_of(run).error.message
    assert not run.success
    assert not_passed(run) == {
        "unique_errors": "ERROR",
        "range_errors": "ERROR",
        "quality_policy": "ERROR",
    }
    assert all(name in told for name in not_passed(run))


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "in_force", "shown"),
    [
        (10, 60, {f"r_{n}" for n in range(10)}),
        (60, 10, PER_TYPE),
        (60, 1, {"unique_errors"}),
    ],
)
def test_where_another_policy_is_in_force_the_checks_of_declared_rules_say_nothing_wrong(
    world, instance, declared, in_force, shown
):
    run = staged(world, instance, REVIEW, declared=many(declared), in_force=many(in_force))

    checks = checks_of(run)
    by_type = [checks[name] for name in shown & PER_TYPE]
    assert run.success
    assert set(checks) == shown | FIXED_ON_STAGE
    assert value(checks["quality_policy"], "policy_drift") is True
    assert len(table(checks["quality_policy"])) == in_force
    assert sum(len(table(one)) for one in by_type) == (in_force if by_type else 0)
