"""What the child does before and after a provider runs; its life is in `test_execution`."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from datasource_governance.domain.quality_expectation import expectations
from datasource_governance.domain.validation import Reason
from datasource_governance.quality.child import judged_by_shape
from datasource_governance.quality.targets import FrameTarget
from datasource_governance_tests.builders import quality_policy, rule

TARGET = FrameTarget(table=pa.table({"a": ["x"], "b": [1]}))


def judged(*rules):
    outcomes = judged_by_shape(expectations(quality_policy(*rules)), TARGET)
    return [(one.id, one.reason, one.fields) for one in outcomes]


def test_rules_that_name_a_missing_field_are_judged_and_no_others():
    assert judged(
        rule("unique", id="key", fields=["b", "gone", "a"]),
        rule("range", id="bounds", field="a", minimum=1),
        rule("referential", id="codes", field="A", allowed_values=["x"]),
        rule(id="rows", minimum=5),
    ) == [
        ("key", Reason.MISSING_FIELD, ("gone",)),
        ("codes", Reason.MISSING_FIELD, ("A",)),
    ]


def test_where_no_field_is_missing_nothing_is_judged():
    assert judged(rule("not_null", id="present", fields=["a", "b"]), rule(id="rows")) == []


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\0\0\0\0\2{}", b"no request at all"])
def test_a_process_that_is_asked_nothing_sensible_fails(sent, tmp_path):
    program = "from datasource_governance.quality.child import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", program, "0"],
        input=sent,
        cwd=tmp_path,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )

    assert ended.returncode == 1
    assert list(tmp_path.iterdir()) == []
