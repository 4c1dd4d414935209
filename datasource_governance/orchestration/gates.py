"""Quality gates while a code location loads: before anything is deployed, without data.

Source: SPEC section 14; ADR-0044, "Compile-time".
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from datasource_governance.composition import Application
from datasource_governance.domain.datasource import Datasource
from datasource_governance.domain.datasource_manifest import datasource_manifest
from datasource_governance.domain.quality_gates import check_gates
from datasource_governance.domain.tier import Enforcement
from datasource_governance.errors import InvalidPolicyError

_LOG = logging.getLogger(__name__)


def enforce_gates(declarations: Sequence[Datasource], application: Application) -> None:
    """Hold declarations to the gates of the platform manifest, as far as it enforces them.

    Where it warns, each violation is logged. Without a manifest, or with `off`, nothing is asked.

    Raises:
        InvalidPolicyError: with every violation, where it is strict; and whatever the manifest
            itself is refused for, so that `dg check defs` fails.
        InvalidArgumentError: the manifest chooses a provider that nobody declares.
    """
    manifest = application.platform.manifest
    if manifest is None:
        return
    _ = application.platform.plugin
    if manifest.enforcement is Enforcement.OFF:
        return
    found = check_gates(
        datasource_manifest(declarations),
        manifest.gates,
        technical_fields=manifest.technical_fields,
        waivers=manifest.waivers,
        today=datetime.now(UTC).date(),  # noqa: TID251 - a waiver expires by the calendar of CI
    )
    if found.problems and manifest.enforcement is Enforcement.STRICT:
        raise InvalidPolicyError("the quality gates of the platform", found.problems)
    for problem in found.problems:
        _LOG.warning("quality gate: %s", problem.line())
