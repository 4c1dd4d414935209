"""Declared origins as services read them: typed, with the digest of what was read.

Source: SPEC section 11.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.origin import Origin, origin_hash
from datasource_governance.ports.origins import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOrigin:
    """See ports.origins.OriginReader. `environment` has the variables that declarations name."""

    origin: Origin
    csv: CsvOptions
    environment: Mapping[str, str] = field(repr=False)

    @property
    def definition(self) -> Sha256:
        """Hash of what is read from where, and how."""
        return origin_hash(self.origin, self.csv)

    def read(self) -> Reading:
        """Return what the origin says."""
        reading = self._read(None)
        if reading is None:
            from datasource_governance.sources.refusal import refused

            message = "it says that nothing changed, although it was told of no version"
            raise refused("the origin", "unreadable", message)
        return reading

    def read_unless(self, version: str) -> Reading | None:
        """Return what the origin says, or None where it is still in this version."""
        return self._read(version)

    def _read(self, version: str | None) -> Reading | None:
        from datasource_governance.evaluation.payload import TypedPayload
        from datasource_governance.sources.origins.read import read_origin

        answer = read_origin(self.origin, self.csv, self.environment, version)
        if answer is None:
            return None
        payload = TypedPayload(answer.table, answer.rows_numbered)
        sha256 = answer.sha256 or Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        return Reading(name=answer.name, payload=payload, sha256=sha256, version=answer.version)
