"""Two examples of downstream assets: one reads what is in force, one publishes what it makes of it.

Their parameters have no annotation, since a frame's type would import the engine when the code
location loads. The IO manager sits on `airports/current`.
"""

import dagster as dg

from datasource_governance.domain.datasource import Datasource
from datasource_governance.orchestration.governed_asset import governed_asset

_IN_FORCE = ["airports", "current"]


@dg.asset(
    ins={"airports": dg.AssetIn(key=_IN_FORCE)},
    group_name="airports",
    kinds={"pandas"},
    description="How many countries have an airport, from the materialization in force.",
)
def airport_countries(airports) -> dg.MaterializeResult[object]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - see the module's docstring
    """Count countries and airports; counts are no cell values."""
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(airports),
            "countries": int(airports["country"].nunique()),
        }
    )


count_airport_countries = dg.define_asset_job(
    "count_airport_countries",
    selection=dg.AssetSelection.assets(airport_countries),
    description="Read what is in force and count its countries.",
)


def airport_zones_asset(declaration: Datasource) -> dg.AssetsDefinition:
    """Return the asset that publishes to the demo's datasource of kind `published`."""

    @governed_asset(
        datasource=declaration,
        ins={"airports": dg.AssetIn(key=_IN_FORCE, metadata={"columns": ["country", "tz"]})},
    )
    def airport_zones(airports):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - see the module's docstring
        """Count the airports of each country in each time zone, from the register in force."""
        counted = airports.groupby(["country", "tz"], as_index=False).size()
        return counted.rename(columns={"size": "airports"})

    return airport_zones
