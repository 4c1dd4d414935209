from dataclasses import replace

import pytest

from datasource_governance.domain.approval import check_reason
from datasource_governance.domain.hold import Hold, HoldRelease, HoldScope, check_release
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import MIDDAY

HOLD = Hold(
    id="h1",
    datasource="orders",
    scope=HoldScope.STAGE,
    subject="s1",
    reason="litigation",
    actor="ann",
    grant_id="g1",
    attestation_id="a1",
    placed_at=MIDDAY,
)
RELEASE = HoldRelease(
    hold="h1",
    actor="ben",
    grant_id="g2",
    reason="settled",
    attestation_id="a2",
    released_at=MIDDAY,
)


def test_a_hold_is_active_until_it_is_released():
    assert HOLD.is_active
    assert not replace(HOLD, released=RELEASE).is_active


def test_a_second_actor_releases_a_hold():
    check_release(HOLD, "ben")


def test_whoever_placed_a_hold_cannot_release_it():
    with pytest.raises(GuardError, match="another administrator") as caught:
        check_release(HOLD, "ann")

    assert caught.value.code == "second_actor_required"


@pytest.mark.parametrize("releaser", ["ann", "ben", "cy"])
def test_a_hold_is_released_once(releaser):
    with pytest.raises(GuardError) as caught:
        check_release(replace(HOLD, released=RELEASE), releaser)

    assert caught.value.code == "hold_released"


@pytest.mark.parametrize("reason", ["x", "x" * 2000, " é "], ids=len)
def test_a_hold_has_a_reason_of_up_to_2000_characters(reason):
    check_reason(reason, "a hold")


@pytest.mark.parametrize("reason", ["", " \n", "x" * 2001, "a\0b", "\ud800"], ids=repr)
def test_a_blank_long_or_unstorable_reason_is_refused(reason):
    with pytest.raises(GuardError, match="a hold needs a reason") as caught:
        check_reason(reason, "a hold")

    assert caught.value.code == "reason_missing"
