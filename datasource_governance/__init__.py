"""Governed datasets on open-source Dagster: stage, check, approve, promote, prove.

The public names are imported when they are first used, so that importing the package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasource_governance.declarations import read_declarations
    from datasource_governance.domain.quality_policy import parse_quality_policy
    from datasource_governance.errors import GovernanceError
    from datasource_governance.evaluation.compile import pandera_schema
    from datasource_governance.evaluation.evaluate import validate, validate_file
    from datasource_governance.evaluation.producing import producer_evidence
    from datasource_governance.orchestration.governed_asset import (
        build_governed_asset,
        governed_asset,
    )
    from datasource_governance.orchestration.publication import GovernedOutput
    from datasource_governance.orchestration.registry import governed_definitions
    from datasource_governance.publishing import publish
    from datasource_governance.reading import read_current
    from datasource_governance.sources.origins.function import NOT_MODIFIED, OriginData
    from datasource_governance.sources.sql.read import SqlSource

_HOMES = {
    "GovernanceError": "datasource_governance.errors",
    "GovernedOutput": "datasource_governance.orchestration.publication",
    "NOT_MODIFIED": "datasource_governance.sources.origins.function",
    "OriginData": "datasource_governance.sources.origins.function",
    "SqlSource": "datasource_governance.sources.sql.read",
    "build_governed_asset": "datasource_governance.orchestration.governed_asset",
    "governed_asset": "datasource_governance.orchestration.governed_asset",
    "governed_definitions": "datasource_governance.orchestration.registry",
    "pandera_schema": "datasource_governance.evaluation.compile",
    "parse_quality_policy": "datasource_governance.domain.quality_policy",
    "producer_evidence": "datasource_governance.evaluation.producing",
    "publish": "datasource_governance.publishing",
    "read_current": "datasource_governance.reading",
    "read_declarations": "datasource_governance.declarations",
    "validate": "datasource_governance.evaluation.evaluate",
    "validate_file": "datasource_governance.evaluation.evaluate",
}

__all__ = [
    "NOT_MODIFIED",
    "GovernanceError",
    "GovernedOutput",
    "OriginData",
    "SqlSource",
    "build_governed_asset",
    "governed_asset",
    "governed_definitions",
    "pandera_schema",
    "parse_quality_policy",
    "producer_evidence",
    "publish",
    "read_current",
    "read_declarations",
    "validate",
    "validate_file",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
