"""Every retention case through the services, with real stages and materializations."""

from dataclasses import replace
from datetime import datetime

import pytest

from datasource_governance.domain.hold import HoldScope
from datasource_governance.domain.retention import RetentionClass, TargetKind
from datasource_governance.errors import GovernanceError
from datasource_governance.services.retention import PlanRequest, plan_retention
from datasource_governance_tests import case_files
from datasource_governance_tests.retiring import (
    admit_keeper,
    apply_plan,
    declare_kept,
    freeze_as_evidence,
    hold,
    publish_at,
    release,
    stage_at,
)
from datasource_governance_tests.world import ONE_ROW_AT_LEAST, World

pytestmark = pytest.mark.postgres

APPROVAL = {"version": "v1", "required": True}
BEFORE_ALL = datetime.fromisoformat("2000-01-01T00:00:00Z")


def pytest_generate_tests(metafunc):
    case_files.parametrise(metafunc, retention_case="retention")


class Keeping:
    """Plays one case: stages are delivered to `orders`, materializations published to `outputs`.

    What a producer publishes has no stage that would be due beside it.
    """

    def __init__(self, case, world: World) -> None:
        self.orders, self.outputs = world, replace(world, datasource="outputs")
        self.policy = case.input["retention_policy"]
        self.names: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.scopes: dict[str, HoldScope] = {}
        self.holds: dict[str, str] = {}
        self.plans = []
        admit_keeper(world)
        declare_kept(self.orders, self.policy, BEFORE_ALL)
        declare_kept(self.outputs, self.policy, BEFORE_ALL, kind="published")
        self._create(case.input["objects"])

    def _create(self, objects) -> None:
        waiting = [one for one in objects if one.get("pending_approval")]
        for one in objects:
            if one not in waiting:
                self._create_one(one)
        if waiting:
            # What was there before is bound to no approval policy, so that it waits for nobody.
            self.orders.declare(ONE_ROW_AT_LEAST, APPROVAL, retention=self.policy)
        for one in waiting:
            self._create_one(one)
        for one in objects:
            if one.get("legal_hold"):
                self._hold(one["id"])

    def _create_one(self, one) -> None:
        name, at = one["id"], datetime.fromisoformat(one["created_at"])
        if one["class"] == RetentionClass.STAGE:
            made, scope = stage_at(self.orders, at), HoldScope.STAGE
        else:
            made, scope = publish_at(self.outputs, at), HoldScope.MATERIALIZATION
            # Nobody gets it any more; what they get is not due.
            publish_at(self.outputs, datetime.fromisoformat("2024-06-29T00:00:00Z"))
        self.ids[name], self.names[made.id], self.scopes[name] = made.id, name, scope
        if one["class"] == RetentionClass.FROZEN_EVIDENCE:
            freeze_as_evidence(self.outputs, made.id)

    def _owner(self, name) -> World:
        return self.orders if self.scopes[name] is HoldScope.STAGE else self.outputs

    def _hold(self, name) -> None:
        self.holds[name] = hold(self._owner(name), self.ids[name], self.scopes[name]).id

    def play(self, step):
        try:
            return {"result": "ok", **(getattr(self, "do_" + step["do"])(step) or {})}
        except GovernanceError as refusal:
            return {"result": "refused", "kind": refusal.code}

    def do_plan(self, step):
        self.orders.set_clock(datetime.fromisoformat(step["at"]))
        work = self.orders.application.work()
        self.plans.append(plan_retention(work, PlanRequest(actor="operator")))
        lines = [
            {
                "target": self.names[target.id],
                "eligible_at": target.eligible_at.isoformat(),
                "eligible": not target.is_blocked,
                "blockers": [str(blocker.kind) for blocker in target.blockers],
            }
            for target in self.plans[-1].targets
        ]
        return {"plan": sorted(lines, key=lambda line: line["target"])}

    def do_change_object(self, step):
        name = step["id"]
        for key, value in step["set"].items():
            match key, value:
                case "legal_hold", True:
                    self._hold(name)
                case "legal_hold", False:
                    release(self._owner(name), self.holds[name])
                case "current", True:
                    # What takes a publication back is not part of the product.
                    self.orders.tamper(
                        "datasource",
                        "UPDATE governance.datasource "
                        f"SET current_materialization = '{self.ids[name]}' WHERE id = 'outputs'",
                    )

    def do_change_policy(self, step):
        for world, kind in ((self.orders, "static"), (self.outputs, "published")):
            world.declare(ONE_ROW_AT_LEAST, retention=step["policy"], kind=kind)

    def do_apply(self, step):
        plan = self.plans[step.get("plan", -1)].hash
        if step.get("plan_hash_altered"):
            plan = plan[:-1] + ("0" if plan[-1] != "0" else "1")
        apply_plan(self.orders, plan, [self.ids[name] for name in step["targets"]])

    def destroyed(self, kind):
        table, gone = {
            TargetKind.STAGE: ("stage", "state = 'deleted'"),
            TargetKind.MATERIALIZATION: ("materialization", "disposition = 'purged'"),
        }[kind]
        found = self.orders.query(f"SELECT id FROM governance.{table} WHERE {gone}")
        return sorted(self.names[str(name)] for (name,) in found)


def test_retention_case(retention_case, world):
    keeping = Keeping(retention_case, world)

    found = [keeping.play(step) for step in retention_case.input["steps"]]

    for expected, actual in zip(retention_case.expected["steps"], found, strict=True):
        assert actual["result"] == expected["result"], actual
        if "kind" in expected:
            assert actual["kind"] in expected["kind"]
        if "plan" in expected:
            assert actual["plan"] == expected["plan"]
    assert keeping.destroyed(TargetKind.STAGE) == sorted(retention_case.expected["deleted"])
    assert keeping.destroyed(TargetKind.MATERIALIZATION) == sorted(
        retention_case.expected["purged"]
    )
