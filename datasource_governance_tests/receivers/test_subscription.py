"""What is passed over, what is given up, and what of a receiver's own words comes through."""

import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from datasource_governance.domain.event import event
from datasource_governance.errors import GovernanceError, GuardError
from datasource_governance.receivers.subscription import Subscription, refused, unavailable
from datasource_governance_tests.domain.lifecycle import MIDDAY

CREATED = event("e", "stage.created", datasource="orders", facts={"stage": "s"}, now=MIDDAY)
CANARY = "zq-canary-31"


@dataclass
class Recording:
    got: list = field(default_factory=list)

    def deliver(self, event):
        self.got.append(event)


@dataclass
class Raising:
    error: BaseException

    def deliver(self, _):
        raise self.error


def subscription(transport, **options) -> Subscription:
    return Subscription(name="them", transport=transport, **options)


def test_without_a_choice_every_event_is_handed_over():
    transport = Recording()

    subscription(transport).deliver(CREATED)

    assert transport.got == [CREATED]


@pytest.mark.parametrize(
    ("options", "is_handed_over"),
    [
        ({"events": frozenset({"datasource.stage.created"})}, True),
        ({"events": frozenset({"datasource.stage.promoted"})}, False),
        ({"since": MIDDAY}, True),
        ({"since": MIDDAY + timedelta(microseconds=1)}, False),
    ],
)
def test_what_was_not_asked_for_is_passed_over(options, is_handed_over):
    transport = Recording()

    subscription(transport, **options).deliver(CREATED)

    assert bool(transport.got) is is_handed_over


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (refused("no"), "receiver_refused"),
        (unavailable("not now"), "receiver_unavailable"),
        (ValueError(CANARY), "receiver_refused"),
        (SystemExit(CANARY), "receiver_refused"),
        (GovernanceError(CANARY), "receiver_refused"),
    ],
)
def test_whatever_is_raised_becomes_our_own_error_and_is_not_chained(error, code):
    with pytest.raises(GovernanceError) as raised:
        subscription(Raising(error)).deliver(CREATED)

    assert raised.value.code == code
    assert "'them'" in str(raised.value)
    assert CANARY not in str(raised.value)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_a_receiver_that_hangs_is_given_up():
    released = threading.Event()

    class Hanging:
        def deliver(self, _):
            released.wait()

    with pytest.raises(GovernanceError) as raised:
        subscription(Hanging(), timeout_seconds=0.05).deliver(CREATED)
    released.set()

    assert raised.value.code == "receiver_unavailable"


def test_a_type_that_nobody_knows_yet_is_not_asked_for_by_default():
    transport = Recording()

    subscription(transport).deliver(replace(CREATED, type="datasource.unheard.of"))

    assert transport.got == []


def test_a_refusal_is_a_guards():
    with pytest.raises(GuardError):
        subscription(Raising(refused("no"))).deliver(CREATED)
