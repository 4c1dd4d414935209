"""A receiver that is a Python callable of an installed package.

Source: SPEC section 13; the Python packaging specification of entry points.
"""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from datasource_governance.domain.event import Event
from datasource_governance.domain.notification import document
from datasource_governance.receivers.subscription import refused

GROUP = "datasource_governance.receivers"


def find_entry_point(name: str) -> EntryPoint | None:
    """Return the entry point of that name in our group; nothing is imported."""
    found = entry_points(group=GROUP, name=name)
    return next(iter(found), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callable:
    """Calls `callable(document)` with the JSON of an event; whatever it raises refuses the event.

    It gets what a webhook gets, as a dictionary, and has ten seconds. What it returns is ignored.
    """

    entry_point: EntryPoint
    public_url: str

    def deliver(self, event: Event) -> None:
        """Call it.

        Raises:
            GuardError: when it cannot be imported or raises anything.
        """
        raised = None
        try:
            self.entry_point.load()(document(event, self.public_url))
        except Exception as error:  # noqa: BLE001 - somebody else's code, whose words stay there
            raised = type(error).__name__
        if raised is not None:
            raise refused(f"{self.entry_point.value} raised {raised}")
