"""Every approval case, through the services, over a real database."""

from datetime import datetime

import pyarrow as pa
import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.strict_json import parse_json
from datasource_governance.errors import GovernanceError
from datasource_governance_tests import case_files
from datasource_governance_tests.refreshing import ToldOrigin, refreshed

pytestmark = pytest.mark.postgres


def pytest_generate_tests(metafunc):
    if "approval_case" not in metafunc.fixturenames:
        return
    cases = list(case_files.load_cases(metafunc.config.getoption("cases"), "approval"))
    metafunc.parametrize("approval_case", cases, ids=[case.id for case in cases])


class Timeline:
    """Plays the steps of one case."""

    def __init__(self, case, world):
        self.case = case
        self.world = world
        self.stages = {}
        self.materializations = []
        self.quality = case.input["quality_policy"]
        self.approval = case.input["approval_policy"]
        is_refreshed = any(step["do"] == "direct_refresh" for step in case.input["timeline"])
        self.kind = "cached" if is_refreshed else "static"
        for actor in {step.get("actor") for step in case.input["timeline"]} - {None}:
            world.admit(actor, Role.STEWARD, Role.OPERATOR)
        for actor in case.input["approvers"]:
            world.admit(actor, Role.STEWARD, Role.APPROVER)

    def play(self, step):
        self.world.set_clock(datetime.fromisoformat(step["at"]))
        try:
            state = getattr(self, "do_" + step["do"])(step)
        except GovernanceError as refusal:
            return {"result": "refused", "kind": refusal.code}
        return {"result": "ok", "state": state}

    def do_create_stage(self, step):
        table = pa.table({"id": pa.array([] if step.get("validation") == "failed" else [1, 2])})
        self.stages[step["stage"]] = self.world.stage(step["actor"], table)
        return {"failed": "blocked"}.get(str(self.stages[step["stage"]].state)) or str(
            self.stages[step["stage"]].state
        )

    def do_approve(self, step):
        self.world.decide(step["actor"], self.stages[step["stage"]], step["reason"])

    def do_promote(self, step):
        before = self.world.count_rows()
        promotion = self.world.promote(self.stages[step["stage"]], step["actor"])
        if not promotion.created:
            # The same materialization, and nothing written: what the case calls already promoted.
            assert promotion.materialization in self.materializations
            assert self.world.count_rows() == before
            raise GovernanceError("answered as already done", code="already_promoted")
        self.materializations.append(promotion.materialization)

    def do_direct_refresh(self, _step):
        origin = ToldOrigin()
        before = self.world.count_rows()
        try:
            refreshed(self.world, origin)
        finally:
            assert origin.asked == []
            assert self.world.count_rows() == before

    def do_set_quality_policy(self, step):
        self.quality = parse_json(step["policy_text"])
        self.world.declare(self.quality, self.approval)

    def do_set_approval_policy(self, step):
        self.approval = parse_json(step["policy_text"])
        self.world.declare(self.quality, self.approval)

    def do_alter_stage_content(self, step):
        stage = self.stages[step["stage"]].id
        self.world.as_superuser(
            "ALTER TABLE governance.stage_payload DISABLE TRIGGER ALL; "
            "UPDATE governance.stage_payload SET payload = payload || '\\x00' "
            f"WHERE stage = '{stage}'; "
            "ALTER TABLE governance.stage_payload ENABLE ALWAYS TRIGGER append_only; "
            "ALTER TABLE governance.stage_payload ENABLE ALWAYS TRIGGER disposed_of"
        )


def test_approval_case(approval_case, world):
    timeline = Timeline(approval_case, world)
    world.declare(timeline.quality, timeline.approval, kind=timeline.kind)

    found = [timeline.play(step) for step in approval_case.input["timeline"]]

    for expected, actual in zip(approval_case.expected["steps"], found, strict=True):
        assert actual["result"] == expected["result"], actual
        if "kind" in expected:
            assert actual["kind"] in expected["kind"]
        if "state" in expected:
            assert actual["state"] == expected["state"]
    promoted = {one.stage for one in timeline.materializations}
    assert promoted == {timeline.stages[name].id for name in approval_case.expected["promoted"]}
    for materialization in timeline.materializations:
        assert load_canonical(materialization.provenance)["stage"]["id"] == materialization.stage
