"""An example of a downstream asset: it reads what is in force, and nothing else.

Its parameter has no annotation, since a frame's type would import the engine when the code location
loads. The IO manager sits on `airports/current`.
"""

import dagster as dg


@dg.asset(
    ins={"airports": dg.AssetIn(key=["airports", "current"])},
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
