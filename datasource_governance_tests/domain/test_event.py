from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.event import event
from datasource_governance_tests.domain.lifecycle import MIDDAY


def test_an_event_says_what_happened_where_and_when():
    made = event("e", "stage.created", datasource="orders", facts={"stage": "s"}, now=MIDDAY)

    assert (made.id, made.type, made.datasource) == ("e", "datasource.stage.created", "orders")
    assert made.created_at == MIDDAY
    assert made.body == canonical_bytes(
        {
            "id": "e",
            "type": "datasource.stage.created",
            "datasource": "orders",
            "at": "2026-03-01T12:00:00+00:00",
            "facts": {"stage": "s"},
        }
    )
