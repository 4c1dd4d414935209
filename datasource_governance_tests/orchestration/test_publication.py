"""What becomes of the output of a governed asset, by real Dagster over a real database."""

from dataclasses import replace
from uuid import uuid4

import dagster as dg
import polars as pl
import pyarrow as pa
import pytest

from datasource_governance import producer_evidence
from datasource_governance.composition import Application
from datasource_governance.domain.actor import Role
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.launch import RunLaunch, run_config_hash
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.orchestration.assets import current_key
from datasource_governance.orchestration.governed_asset import build_governed_asset, governed_asset
from datasource_governance.orchestration.publication import GovernedOutput
from datasource_governance_tests.orchestration.governed import (
    AMOUNT,
    ID_UNIQUE,
    checks_of,
    code_of,
    failure_of,
)
from datasource_governance_tests.orchestration.publishing import (
    BAD,
    BETTER,
    GOOD,
    POLICY,
    WARNED,
    declare,
    definitions,
    materialized,
    observed,
    published,
    re_execute,
    run,
    target,
)
from datasource_governance_tests.world import TWO_APPROVALS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
BAIT = "zq-canary-7731"
WAREHOUSES = dg.StaticPartitionsDefinition(["north", "south"])


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as made:
        yield made


class Pages(dg.Config):
    pages: int = 1


def returning(declared, output, **keywords):
    """Return a governed asset whose function returns this."""

    @governed_asset(datasource=declared, **keywords)
    def extract():
        return output

    return extract


def test_an_output_that_passes_is_materialized_once_with_what_is_current(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, GOOD)

    result = run(own_corner, extract, instance, declared)

    found = materialized(result, extract)
    assert result.success
    assert found["data_version"] == target(own_corner).current
    assert (found["state"], found["revision"], found["row_count"]) == ("published", 1, 2)
    assert (found["producer"], found["published_by"]) == ("extract", "system")
    assert found["key"] == f"{result.run_id}/extract"
    assert (found["replayed"], found["policy_drift"], found["failed_rules"]) == (False, False, 0)
    assert {name: check.passed for name, check in checks_of(result).items()} == {
        "id_unique": True,
        "amount": True,
        "note_": True,
        "quality_policy": True,
        "schema_classification": True,
    }


def test_what_became_current_is_shown_on_current_at_once(own_corner, instance):
    declared = declare(own_corner)

    result = run(own_corner, returning(declared, GOOD), instance, declared)

    shown = instance.get_latest_materialization_event(current_key(declared.id))
    assert shown.run_id == result.run_id
    assert shown.asset_materialization.tags["dagster/data_version"] == target(own_corner).current


def test_warnings_are_published_and_told(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, WARNED)

    result = run(own_corner, extract, instance, declared)

    found = materialized(result, extract)
    failed = {name: one.severity for name, one in checks_of(result).items() if not one.passed}
    assert result.success
    assert (found["state"], found["failed_rules"]) == ("published_with_warnings", 1)
    assert failed == {
        "note_": dg.AssetCheckSeverity.WARN,
        "quality_policy": dg.AssetCheckSeverity.WARN,
    }


def test_a_rejected_output_shows_its_checks_and_leaves_no_row(own_corner, instance):
    declared = declare(own_corner)
    before = own_corner.count_rows()

    result = run(own_corner, returning(declared, BAD), instance, declared)

    checks = checks_of(result)
    assert code_of(result) == "validation_failed"
    assert result.get_asset_materialization_events() == []
    assert own_corner.count_rows() == before
    assert {name for name, check in checks.items() if not check.passed} == {
        "id_unique",
        "amount",
        "quality_policy",
    }
    assert checks["id_unique"].blocking
    assert checks["id_unique"].metadata["datasource_governance/row_numbers"].value == "1, 2"


def test_checks_of_a_rejected_output_are_not_about_the_materialization_before(own_corner, instance):
    declared = declare(own_corner)
    run(own_corner, returning(declared, GOOD), instance, declared)

    result = run(own_corner, returning(declared, BAD), instance, declared)

    targets = {one.target_materialization_data for one in checks_of(result).values()}
    assert targets == {None}
    assert target(own_corner).revision == 1


def test_after_a_rejected_output_nothing_downstream_runs(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, BAD)
    report = dg.asset(deps=[extract], name="report")(lambda: None)
    defs = definitions(own_corner, declared, extract, report)
    job = dg.define_asset_job("all", dg.AssetSelection.assets(extract, report))

    result = (
        replace_jobs(defs, job)
        .resolve_job_def("all")
        .execute_in_process(instance=instance, raise_on_error=False)
    )

    assert result.get_failed_step_keys() == {"extract"}
    assert result.is_node_untouched("report")


def replace_jobs(defs: dg.Definitions, job) -> dg.Definitions:
    return dg.Definitions.merge(defs, dg.Definitions(jobs=[job]))


def test_no_value_of_a_rejected_output_is_in_any_event(own_corner, instance):
    declared = declare(own_corner)
    rows = pa.table({"id": [BAIT, BAIT], "amount": [1, 2], "note": [BAIT, BAIT]})

    result = run(own_corner, returning(declared, rows), instance, declared)

    assert code_of(result) == "validation_failed"
    assert BAIT not in repr(result.all_events)
    error = failure_of(result).error
    assert (error.cause, error.context) == (None, None)


def test_where_approval_is_required_the_checks_and_a_link_are_all_there_is(own_corner, instance):
    declared = declare(own_corner, approval=TWO_APPROVALS)
    extract = returning(declared, GOOD)

    result = run(own_corner, extract, instance, declared)

    found = observed(result)
    assert result.success
    assert result.get_asset_materialization_events() == []
    assert (found["state"], found["producer"]) == ("review_required", "extract")
    assert found["decide"].endswith(f"/governance/stages/{found['stage_id']}")
    assert all(check.passed for check in checks_of(result).values())
    assert target(own_corner).current is None


def test_what_needs_review_skips_what_is_downstream(own_corner, instance):
    declared = declare(own_corner, approval=TWO_APPROVALS)
    extract = returning(declared, GOOD)
    report = dg.asset(deps=[extract], name="report")(lambda: None)
    job = dg.define_asset_job("all", dg.AssetSelection.assets(extract, report))
    defs = replace_jobs(definitions(own_corner, declared, extract, report), job)

    result = defs.resolve_job_def("all").execute_in_process(instance=instance)

    assert result.success
    assert result.is_node_skipped("report")


def test_a_re_executed_run_replays_the_first_result(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, GOOD)
    first = run(own_corner, extract, instance, declared)
    rows = own_corner.count_rows()

    result = re_execute(own_corner, extract, instance, declared, first)

    found = materialized(result, extract)
    assert found["replayed"] is True
    assert found["key"] == f"{first.run_id}/extract"
    assert found["data_version"] == materialized(first, extract)["data_version"]
    assert own_corner.count_rows() == rows


def test_a_re_executed_run_with_another_output_is_a_conflict(own_corner, instance):
    declared = declare(own_corner)
    first = run(own_corner, returning(declared, GOOD), instance, declared)
    rows = own_corner.count_rows()

    result = re_execute(own_corner, returning(declared, BETTER), instance, declared, first)

    assert code_of(result) == "idempotency_conflict"
    assert own_corner.count_rows() == rows


def test_a_new_run_publishes_anew(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, GOOD)

    runs = [run(own_corner, extract, instance, declared) for _ in range(2)]

    versions = {materialized(one, extract)["data_version"] for one in runs}
    assert len(versions) == 2
    assert target(own_corner).revision == 2


class Forgetful(Application):
    """Loses the answer to its first publication, after that was committed."""

    lost = False

    def publish(self, data, request):
        published = super().publish(data, request)
        if not self.lost:
            self.lost = True
            raise ServiceUnavailableError("the answer was lost")
        return published


def test_a_retry_of_the_step_converges_after_a_lost_answer(own_corner, instance):
    declared = declare(own_corner)
    application = Forgetful(own_corner.application.settings)
    extract = returning(declared, GOOD, retry_policy=dg.RetryPolicy(max_retries=2))

    result = run(replace(own_corner, application=application), extract, instance, declared)
    application.close()

    found = materialized(result, extract)
    shown = instance.get_latest_materialization_event(current_key(declared.id))
    assert (result.success, result.retry_attempts_for_node("extract")) == (True, 1)
    assert (found["replayed"], target(own_corner).revision) == (True, 1)
    assert shown.asset_materialization.tags["dagster/data_version"] == target(own_corner).current


def test_a_rejected_output_is_not_retried(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, BAD, retry_policy=dg.RetryPolicy(max_retries=2))

    result = run(own_corner, extract, instance, declared)

    assert code_of(result) == "validation_failed"
    assert result.retry_attempts_for_node("extract") == 0


@pytest.mark.parametrize("partition", [None, "north"])
def test_what_is_replayed_and_no_longer_current_lies_on_top_of_nothing(
    own_corner, instance, partition
):
    declared = declare(own_corner)
    keys = ("one/{partition}", "two/{partition}") if partition else ("one", "two")
    keywords = {"partitions_def": WAREHOUSES} if partition else {}
    first, second = (
        returning(declared, output, idempotency_key=key, **keywords)
        for output, key in zip((GOOD, BETTER), keys, strict=True)
    )
    for extract in (first, second):
        run(own_corner, extract, instance, declared, partition_key=partition)
    on_top = [
        instance.get_latest_materialization_event(key)
        for key in (first.key, current_key(declared.id))
    ]

    result = run(own_corner, first, instance, declared, partition_key=partition)

    (event,) = result.get_asset_observation_events()
    assert result.success
    assert observed(result)["replayed"] is True
    assert event.event_specific_data.asset_observation.partition == partition
    assert (result.get_asset_materialization_events(), checks_of(result)) == ([], {})
    assert on_top == [
        instance.get_latest_materialization_event(key)
        for key in (first.key, current_key(declared.id))
    ]
    assert on_top[0].asset_materialization.tags["dagster/data_version"] == (
        target(own_corner, partition or "").current
    )


def test_each_partition_has_a_current_materialization_of_its_own(own_corner, instance):
    declared = declare(own_corner)

    @governed_asset(datasource=declared, partitions_def=WAREHOUSES)
    def extract(context: dg.AssetExecutionContext):
        return GOOD if context.partition_key == "north" else BETTER

    results = {
        key: run(own_corner, extract, instance, declared, partition_key=key)
        for key in WAREHOUSES.get_partition_keys()
    }

    found = {key: materialized(result, extract) for key, result in results.items()}
    assert {key: target(own_corner, key).current for key in found} == {
        key: one["data_version"] for key, one in found.items()
    }
    assert {key: one["partition"] for key, one in found.items()} == {
        key: key for key in WAREHOUSES.get_partition_keys()
    }
    assert {
        (key, check.partition)
        for key, result in results.items()
        for check in checks_of(result).values()
    } == {("north", "north"), ("south", "south")}
    assert found["north"]["key"] == f"{results['north'].run_id}/extract/north"


def test_a_run_about_several_partitions_publishes_nothing(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, GOOD, partitions_def=WAREHOUSES)
    tags = {
        "dagster/asset_partition_range_start": "north",
        "dagster/asset_partition_range_end": "south",
    }
    before = own_corner.count_rows()

    result = run(own_corner, extract, instance, declared, tags=tags)

    assert code_of(result) == "invalid_argument"
    assert own_corner.count_rows() == before


def test_a_rejected_partition_fails_the_checks_of_that_partition(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, BAD, partitions_def=WAREHOUSES)

    result = run(own_corner, extract, instance, declared, partition_key="south")

    assert code_of(result) == "validation_failed"
    assert {check.partition for check in checks_of(result).values()} == {"south"}


def test_a_downstream_asset_reads_what_was_published(own_corner, instance):
    declared = declare(own_corner)
    extract = returning(declared, GOOD)

    @dg.asset
    def report(extract):
        return dg.MaterializeResult(metadata={"rows": len(extract)})

    job = dg.define_asset_job("all", dg.AssetSelection.assets(extract, report))
    defs = replace_jobs(definitions(own_corner, declared, extract, report), job)

    result = defs.resolve_job_def("all").execute_in_process(instance=instance)

    assert materialized(result, report)["rows"] == 2


def test_a_supplied_policy_judges_where_the_datasource_allows_it(own_corner, instance, tmp_path):
    declared = declare(own_corner, allow_supplied_policy=True)
    policy = tmp_path / "policy.json"
    policy.write_bytes(canonical_bytes({"version": "mine", "rules": [AMOUNT | {"minimum": 15}]}))
    extract = returning(declared, GOOD, policy=policy)

    result = run(own_corner, extract, instance, declared)

    assert code_of(result) == "validation_failed"
    assert set(checks_of(result)) == {"amount", "quality_policy", "schema_classification"}


def test_declared_rules_that_are_not_in_force_have_no_result(own_corner, instance):
    declare(own_corner, {"version": "v2", "rules": [ID_UNIQUE]})
    declared = published(own_corner.datasource, POLICY)
    extract = returning(declared, GOOD)

    result = run(own_corner, extract, instance, declared)

    assert result.success
    assert materialized(result, extract)["policy_drift"] is True
    assert set(checks_of(result)) == {"id_unique", "quality_policy", "schema_classification"}


def parquet(path):
    pl.from_pandas(GOOD).write_parquet(path)
    return path


OUTPUTS = {
    "pandas": lambda _: GOOD,
    "polars": lambda _: pl.from_pandas(GOOD),
    "arrow": lambda _: pa.Table.from_pandas(GOOD),
    "lazy": lambda _: pl.from_pandas(GOOD).lazy(),
    "path": lambda directory: parquet(directory / "output.parquet"),
    "writer": lambda _: pl.from_pandas(GOOD).write_parquet,
}


@pytest.mark.parametrize("form", OUTPUTS)
def test_an_output_may_be_of_any_form(own_corner, instance, tmp_path, form):
    declared = declare(own_corner, artifact_evaluation="here")
    extract = returning(declared, OUTPUTS[form](tmp_path))

    result = run(own_corner, extract, instance, declared)

    found = materialized(result, extract)
    assert (found["state"], found["row_count"]) == ("published", 2)


def test_an_artifact_without_evidence_needs_review(own_corner, instance):
    declared = declare(own_corner)

    result = run(own_corner, returning(declared, OUTPUTS["writer"](None)), instance, declared)

    found = observed(result)
    assert result.success
    assert (found["state"], "decide" in found) == ("review_required", False)
    assert "with evidence" in found["next_step"]


def test_evidence_is_made_for_what_was_written(own_corner, instance):
    declared = declare(own_corner)
    output = GovernedOutput(
        OUTPUTS["writer"](None),
        evidence=lambda sha256: producer_evidence(declared.quality_policy, GOOD, sha256),
    )
    extract = returning(declared, output)

    result = run(own_corner, extract, instance, declared)

    assert materialized(result, extract)["state"] == "published"


def test_evidence_for_what_is_not_written_is_refused(own_corner, instance):
    declared = declare(own_corner)
    output = GovernedOutput(GOOD, evidence=lambda sha256: sha256)

    result = run(own_corner, returning(declared, output), instance, declared)

    assert code_of(result) == "invalid_argument"


def test_an_author_tells_more_with_metadata_and_checks_of_their_own(own_corner, instance):
    declared = declare(own_corner)
    output = GovernedOutput(
        GOOD,
        metadata={"pages": 3},
        check_results=[dg.AssetCheckResult(check_name="complete", passed=True)],
    )
    own = [dg.AssetCheckSpec("complete", asset="extract")]
    extract = returning(declared, output, check_specs=own)

    result = run(own_corner, extract, instance, declared)

    assert materialized(result, extract)["pages"] == 3
    assert checks_of(result)["complete"].passed


def passed(name="complete", **keys):
    return dg.AssetCheckResult(check_name=name, passed=True, **keys)


OURS = {"datasource_governance/approved_by": "pat"}
NOT_TO_BE_SHOWN = {
    "no result": GovernedOutput(GOOD),
    "two results": GovernedOutput(GOOD, check_results=[passed(), passed()]),
    "a result of an unknown check": GovernedOutput(GOOD, check_results=[passed(), passed("x")]),
    "a result without a name": GovernedOutput(GOOD, check_results=[passed(None)]),
    "a result of a check of ours": GovernedOutput(GOOD, check_results=[passed(), passed("amount")]),
    "a result about another asset": GovernedOutput(GOOD, check_results=[passed(asset_key="x")]),
    "a result with a key of ours": GovernedOutput(GOOD, check_results=[passed(metadata=OURS)]),
    "a key of ours": GovernedOutput(GOOD, metadata=OURS, check_results=[passed()]),
    "an unknown type": GovernedOutput(GOOD, metadata={"x": object()}, check_results=[passed()]),
}


@pytest.mark.parametrize("approval", [None, TWO_APPROVALS], ids=["published", "reviewed"])
def test_what_dagster_would_not_show_of_an_author_is_refused_before_it_is_published(
    own_corner, instance, approval
):
    declared = declare(own_corner, approval=approval)
    own = [dg.AssetCheckSpec("complete", asset="extract", blocking=True)]
    before = own_corner.count_rows()

    codes = {
        what: code_of(
            run(own_corner, returning(declared, output, check_specs=own), instance, declared)
        )
        for what, output in NOT_TO_BE_SHOWN.items()
    }

    assert codes == dict.fromkeys(NOT_TO_BE_SHOWN, "invalid_argument")
    assert own_corner.count_rows() == before


def test_a_text_is_no_path_and_is_told_to_nobody(own_corner, instance):
    declared = declare(own_corner)

    result = run(own_corner, returning(declared, f"{BAIT}.parquet"), instance, declared)

    assert code_of(result) == "invalid_argument"
    assert BAIT not in repr(result.all_events)


def test_one_function_for_many_datasources_is_told_which(own_corner, instance):
    declared, told = declare(own_corner), []

    def extract(context: dg.AssetExecutionContext, datasource: Datasource, config: "Pages"):
        told.append((context.asset_key, datasource, config.pages))
        return GOOD

    made = build_governed_asset(extract, declared)

    result = run(own_corner, made, instance, declared)

    assert result.success
    assert told == [(made.key, declared, 1)]


def test_returning_nothing_fails_unless_the_output_is_not_required(own_corner, instance):
    declared = declare(own_corner)
    before = own_corner.count_rows()

    required = run(own_corner, returning(declared, None), instance, declared)
    optional = run(own_corner, returning(declared, None, output_required=False), instance, declared)

    assert code_of(required) == "invalid_argument"
    assert (optional.success, optional.get_asset_materialization_events()) == (True, [])
    assert own_corner.count_rows() == before


def test_whoever_launched_the_job_is_behind_what_it_publishes(own_corner, instance, tmp_path):
    declared = declare(own_corner)
    own_corner.admit("pat", Role.PRODUCER)
    launch = RunLaunch(
        run_id=str(uuid4()),
        job=f"publish_{declared.id}",
        assets=(),
        config_hash=run_config_hash({}),
    )
    own_corner.launch(own_corner.gateway(tmp_path), "pat", launch)
    extract = returning(declared, GOOD)

    result = run(own_corner, extract, instance, declared, run_id=launch.run_id)

    assert materialized(result, extract)["published_by"] == "pat"


def test_a_producer_without_a_grant_publishes_nothing(own_corner, instance):
    own_corner.declare(POLICY, kind="published")
    declared = published(own_corner.datasource)
    before = own_corner.count_rows()

    result = run(own_corner, returning(declared, GOOD), instance, declared)

    assert code_of(result) == "not_authorised"
    assert own_corner.count_rows() == before
