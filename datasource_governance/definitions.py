"""The code location: the registered datasources as Dagster definitions.

Reads the environment once; connects to nothing. `GOVERNANCE_DATASOURCES` names the directory of
declarations; without it this is the demo, with its examples of downstream assets.

Source: SPEC section 15.
"""

import dagster as dg

from datasource_governance.composition import read_settings
from datasource_governance.declarations import read_declarations
from datasource_governance.demo.assets import (
    airport_countries,
    airport_zones_asset,
    count_airport_countries,
)
from datasource_governance.orchestration.registry import governed_definitions

_declarations = {one.id: one for one in read_declarations(read_settings().datasources)}
_has_airports = "airports" in _declarations
_publishes_zones = _has_airports and "airport_zones" in _declarations

defs = dg.Definitions.merge(
    governed_definitions(
        [*_declarations.values()],
        producers=[airport_zones_asset(_declarations["airport_zones"])] if _publishes_zones else [],
    ),
    dg.Definitions(
        assets=[airport_countries] if _has_airports else [],
        jobs=[count_airport_countries] if _has_airports else [],
    ),
)
