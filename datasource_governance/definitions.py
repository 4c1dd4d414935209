"""The code location: the registered datasources as Dagster definitions.

Reads the environment once; connects to nothing. `GOVERNANCE_DATASOURCES` names the directory of
declarations; without it this is the demo, with its example of a downstream asset.

Source: SPEC section 15.
"""

import dagster as dg

from datasource_governance.composition import read_settings
from datasource_governance.declarations import read_declarations
from datasource_governance.demo.assets import airport_countries, count_airport_countries
from datasource_governance.orchestration.registry import governed_definitions

_declarations = read_declarations(read_settings().datasources)
_has_airports = any(one.id == "airports" for one in _declarations)

defs = dg.Definitions.merge(
    governed_definitions(_declarations),
    dg.Definitions(
        assets=[airport_countries] if _has_airports else [],
        jobs=[count_airport_countries] if _has_airports else [],
    ),
)
