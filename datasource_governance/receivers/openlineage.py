"""A receiver that is told as OpenLineage events, through a transport of openlineage-python.

Whatever the environment says of OpenLineage is left out: the transport is the one that the settings
name, and no other.

Source: SPEC sections 13 and 14; openlineage-python, "Transports".
"""

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from datasource_governance.domain.event import Event
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.lineage.events import lineage_events
from datasource_governance.ports import UnitOfWork
from datasource_governance.receivers.subscription import unavailable

TRANSPORTS: Final = ("http", "file", "kafka", "msk-iam", "composite", "console")
"""Transports of which is known here whether an event was taken; others answer before it is."""
_KAFKA = frozenset({"kafka", "msk-iam"})
_SECONDS = 4.0
"""Of the two events of a run each has so long, so that both end within a receiver's ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLineage:
    """Emits the run events of each event that is lineage; of all others it takes no notice.

    `transport` is the configuration as the library has it. For HTTP it has no retries and a time
    limit of its own: the outbox is what retries.
    """

    namespace: str
    transport: Mapping[str, Any] = field(repr=False)
    work: Callable[[], UnitOfWork] = field(repr=False)

    def deliver(self, event: Event) -> None:
        """Emit the events of a run, and return once all of them are taken.

        Raises:
            ServiceUnavailableError: when the transport did not take one; those before it come again
                and say the same.
        """
        with self.work() as work:
            found = lineage_events(event, work, self.namespace)
        if not found:
            return
        if failure := self._emitted(found):
            raise failure

    def _emitted(self, found: list[Any]) -> ServiceUnavailableError | None:
        if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
            return unavailable("OPENLINEAGE_DISABLED is set, so nothing would be told")
        try:
            transport = _transport(self.transport)
            try:
                for one in found:
                    transport.emit(one)
            finally:
                is_taken = transport.close(_SECONDS)
        except Exception as error:  # noqa: BLE001 - its text is the library's and may quote an address
            return unavailable(f"its transport raised {type(error).__name__}")
        return None if is_taken else unavailable("its transport did not take all events in time")


def _transport(configuration: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of a library that is imported when it is needed
    from openlineage.client.transport import get_default_factory

    made = get_default_factory().create(patient(configuration))
    _insist(made)
    return made


def _insist(transport: Any) -> None:  # noqa: ANN401 - of a library that is imported when it is needed
    """Make a transport, or each that it is composed of, raise where an event was not taken."""
    for inner in getattr(transport, "transports", ()):
        _insist(inner)
    if transport.kind == "http":
        session = transport.session
        # Otherwise an entry in a `.netrc` takes the place of the key that the settings name.
        session.auth = lambda request: request
        session.hooks["response"].append(_raise_unless_taken)
    if transport.kind in _KAFKA:
        transport.producer = ToldProducer(transport.producer)


def _raise_unless_taken(response: Any, **_given: object) -> None:  # noqa: ANN401 - of requests
    """Raise for all that is not 2xx: a redirect would end as a page that was read, and no event."""
    if response.status_code // 100 != HTTPStatus.OK // 100:
        raise ConnectionError(str(response.status_code))


class ToldProducer:
    """A producer of Kafka whose `flush` raises when a message was not delivered.

    The library only logs that, and waits for as long as a message lives.

    Args:
        producer: That of confluent-kafka.
    """

    def __init__(self, producer: Any) -> None:  # noqa: ANN401 - of a library that need not be installed
        self._producer = producer
        self._failures = 0

    def produce(self, *, on_delivery: object, **message: object) -> None:
        """Queue a message; what is told of it is kept here, and not given to `on_delivery`."""
        del on_delivery
        self._producer.produce(on_delivery=self._told, **message)

    def flush(self, timeout: float) -> int:
        """Wait until all is delivered, and return 0; a negative time is the longest there is.

        Raises:
            ConnectionError: when a message was refused, or is still under way.
        """
        waiting: int = self._producer.flush(timeout=timeout if timeout >= 0 else _SECONDS)
        if waiting or self._failures:
            raise ConnectionError(f"{waiting} waiting, {self._failures} refused")
        return 0

    def _told(self, error: object, _message: object) -> None:
        self._failures += error is not None


def patient(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a transport with what the outbox needs where it says nothing."""
    given = deepcopy(dict(configuration))
    if given.get("type") == "http":
        given.setdefault("timeout", _SECONDS)
        given.setdefault("retry", {"total": 0})
    if given.get("type") == "composite":
        given.setdefault("continue_on_failure", False)
        listed = given.get("transports")
        if isinstance(listed, list):
            given["transports"] = [patient(one) for one in listed]
        elif isinstance(listed, dict):
            given["transports"] = {name: patient(one) for name, one in listed.items()}
    return given
