"""The component for YAML: what it builds and what is refused.

What `dg` does with it in a fresh project, `docs/how-to/govern-an-asset.md` shows and test_docs.py
runs.
"""

from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster.components.testing.utils import create_defs_folder_sandbox

from datasource_governance.components import GovernedDatasource
from datasource_governance.domain.datasource import Datasource
from datasource_governance.errors import InvalidPolicyError

# What Dagster itself does to read YAML, and to show where it is.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]
SHARED = {"approval_quorum", "outbox_delivery", "reconciliation"}


@pytest.fixture
def project():
    """An empty project; components are scaffolded into it."""
    with create_defs_folder_sandbox() as sandbox:
        yield sandbox


def scaffold(project, name="orders", kind="published", **attributes) -> Path:
    """Scaffold a component as `dg` does; attributes are added to those that it has."""
    folder = project.scaffold_component(GovernedDatasource, name, {"kind": kind})
    path = folder / "defs.yaml"
    document = yaml.safe_load(path.read_text())
    document["attributes"] |= attributes
    kept = {key: value for key, value in document["attributes"].items() if value is not None}
    path.write_text(yaml.safe_dump(document | {"attributes": kept}))
    return folder


def refusal(project) -> InvalidPolicyError:
    """Return the refusal by which the project does not load."""
    with (
        pytest.raises(Exception, match="Error while building") as caught,
        project.build_all_defs(),
    ):
        pass
    cause = caught.value.__cause__
    assert isinstance(cause, InvalidPolicyError)
    return cause


def test_what_is_scaffolded_loads_and_publishes_an_output(project):
    scaffold(project)

    with project.build_all_defs() as defs:
        dg.Definitions.validate_loadable(defs)
        keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}

    assert keys == {"orders", "orders/stage", "orders/current", "governance/retention_plan"}
    assert {job.name for job in defs.jobs} >= {
        "publish_orders",
        "stage_orders",
        "promote_orders",
    }


def test_a_static_datasource_is_scaffolded_without_an_output(project):
    scaffold(project, kind="static")

    with project.build_all_defs() as defs:
        dg.Definitions.validate_loadable(defs)
        keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}

    assert keys == {"orders/stage", "orders/current", "governance/retention_plan"}


def test_many_share_one_set_of_sensors_and_resources(project):
    for name, kind in (("orders", "published"), ("users", "published"), ("visits", "static")):
        scaffold(project, name, kind)

    with project.build_all_defs() as defs:
        dg.Definitions.validate_loadable(defs)
        sensors = {sensor.name for sensor in defs.sensors}
        targets = {job.name for job in defs.resolve_sensor_def("approval_quorum").jobs}

    assert sensors > SHARED
    assert targets == {"promote_orders", "promote_users", "promote_visits"}


def test_attributes_say_what_the_decorator_says(project):
    scaffold(
        project,
        producer="shop",
        idempotency_key="daily-{partition}",
        asset={
            "key": "shop/daily",
            "group_name": "mine",
            "kinds": ["polars"],
            "tags": {"tier": "gold"},
            "partitions_def": {"type": "daily", "start_date": "2026-01-01"},
        },
    )

    with project.build_all_defs() as defs:
        spec = defs.resolve_asset_graph().get(dg.AssetKey(["shop", "daily"])).to_asset_spec()

    assert (spec.group_name, spec.kinds, spec.tags["tier"]) == ("mine", {"polars"}, "gold")
    assert spec.metadata["datasource_governance/producer"] == "shop"
    assert isinstance(spec.partitions_def, dg.DailyPartitionsDefinition)


def test_an_output_may_be_a_function_of_any_module(project):
    scaffold(project, output=f"{__name__}.made_elsewhere")

    with project.build_all_defs() as defs:
        inputs = defs.resolve_assets_def("orders").keys_by_input_name

    assert inputs == {}


def made_elsewhere(datasource: Datasource):
    return datasource.id


def test_problems_of_all_declarations_are_told_at_once_by_file_and_pointer(project):
    for name in ("orders", "users"):
        folder = scaffold(project, name)
        (folder / "quality_policy.json").write_text('{"version": "v1", "rules": [{"id": "r"}]}')

    problems = refusal(project).problems

    assert [(one.pointer, one.message.split(": ")[:2]) for one in problems] == [
        (
            "/governance/quality_policy",
            [f"{name}/datasource.json", "quality_policy.json/rules/0"],
        )
        for name in ("orders", "users")
    ]


def test_what_is_about_an_output_needs_one(project):
    scaffold(project, output=None, producer="shop", idempotency_key="{run}")

    (problem,) = refusal(project).problems

    assert problem.names == ("producer", "idempotency_key")


def test_a_bad_template_is_told_when_the_project_loads(project):
    scaffold(project, idempotency_key="{user}")

    (problem,) = refusal(project).problems

    assert "names user" in problem.message
