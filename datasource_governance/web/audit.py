"""What the gate tells the log: one line of JSON per event, never a secret.

Source: SPEC section 16.
"""

import logging

from datasource_governance.domain.canonical import canonical_bytes

LOGGER = "datasource_governance.web"


def record(event: str, **facts: str | None) -> None:
    """Log an event; JSON keeps whatever a client chose to one line."""
    known = {name: fact for name, fact in facts.items() if fact is not None}
    logging.getLogger(LOGGER).info(canonical_bytes({"event": event, **known}).decode())
