"""A callable of an installed package, found by its entry point."""

import sys

import pytest

from datasource_governance.domain.event import event
from datasource_governance.errors import GuardError
from datasource_governance.receivers.entry_point import GROUP, Callable, find_entry_point
from datasource_governance_tests.domain.lifecycle import MIDDAY

CREATED = event("e", "stage.created", datasource="orders", facts={"stage": "s"}, now=MIDDAY)
MODULE = """
heard = []

def hear(document):
    heard.append(document)

def refuse(document):
    raise KeyError("zq-quoted")
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package is installed that offers callables `hear`, `refuse` and one that is not there."""
    (tmp_path / "listening_package.py").write_text(MODULE)
    metadata = tmp_path / "listening_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: listening-package\nVersion: 1.0\n")
    offered = "".join(f"{name} = listening_package:{name}\n" for name in ("hear", "refuse", "gone"))
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{offered}")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("listening_package", None)


def receiver(name: str) -> Callable:
    return Callable(entry_point=find_entry_point(name), public_url="https://governance.example")


def test_it_is_called_with_the_event_and_what_people_are_told(installed):
    receiver("hear").deliver(CREATED)

    (heard,) = sys.modules["listening_package"].heard
    assert heard == {
        "id": "e",
        "type": "datasource.stage.created",
        "datasource": "orders",
        "at": "2026-03-01T12:00:00+00:00",
        "facts": {"stage": "s"},
        "notification": None,
    }


@pytest.mark.parametrize(("name", "raised"), [("refuse", "KeyError"), ("gone", "AttributeError")])
def test_whatever_it_raises_refuses_the_event_and_is_named_by_its_type(installed, name, raised):
    with pytest.raises(GuardError) as refused:
        receiver(name).deliver(CREATED)

    assert refused.value.code == "receiver_refused"
    assert raised in str(refused.value)
    assert "zq-quoted" not in str(refused.value)
    assert (refused.value.__cause__, refused.value.__context__) == (None, None)


def test_what_nobody_offers_is_not_there(installed):
    assert find_entry_point("nobody") is None
