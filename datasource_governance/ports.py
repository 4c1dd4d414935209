"""What services need from the outside, as Protocols. Adapters live in their own packages.

Source: DESIGN section 5, "Dependency direction".
"""

from typing import Protocol

from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.validation import Validation


class Payload(Protocol):
    """One typed table on its way through a service, which cannot look into it."""

    def encoded(self) -> bytes:
        """Return the stored form: one Arrow IPC stream, zstd, typed as SPEC section 3 says."""
        ...


class Evaluator(Protocol):
    """Validates a payload; the only thing that looks inside one."""

    def validate(
        self, policy: QualityPolicy, payload: Payload, previous: TableSchema | None
    ) -> Validation:
        """Return the validation; raise nothing that holds a value."""
        ...
