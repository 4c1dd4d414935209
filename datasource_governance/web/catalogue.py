"""What the loaded code says its assets are: which of them publish, and to which datasource.

An author names an asset that publishes as he likes, so that only its definition tells whose data
it shows. Of an asset that no loaded code defines it cannot be told.

Source: SPEC sections 5, 15 ("publication") and 17; threat T-11.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import dagster as dg

from datasource_governance.orchestration.metadata import DATASOURCE
from datasource_governance.web.policy import READ_COUNTS, Launch, Need
from datasource_governance.web.visibility import (
    need_of_asset,
    need_of_launch,
    need_of_step,
    need_of_steward,
)

_REMEMBERED = 2
"""So many states of the workspace; one is in use, and one just was."""


class AssetNode(Protocol):
    """What is known of one asset's definition; Dagster's node of the asset graph is one."""

    @property
    def key(self) -> dg.AssetKey:
        """Its key."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its definition metadata."""
        ...


class Catalogue:
    """Tells what seeing counts needs, by what an asset is named and by what defines it.

    None where nothing governed is shown.
    """

    def __init__(self, nodes: Iterable[AssetNode]) -> None:
        self._assets: dict[tuple[str, ...], Need | None] = {}
        self._steps: dict[str, Need] = {}
        for node in nodes:
            need = _need_by_definition(node.metadata)
            self._assets[tuple(node.key.path)] = need
            if need is not None:
                self._steps[node.key.to_python_identifier()] = need

    def need_of_asset(self, path: tuple[str, ...]) -> Need | None:
        """Return what seeing the counts of an asset needs; strictly of one that is not defined."""
        return need_of_asset(path) or self._assets.get(path, READ_COUNTS)

    def need_of_step(self, step_key: str) -> Need | None:
        """Return what seeing the counts of a step needs; None for one that is not known."""
        return need_of_step(step_key) or self._steps.get(step_key)

    def need_of_launch(self, launch: Launch | None) -> Need | None:
        """Return what seeing the counts of a whole run needs, of all that was selected for it."""
        named = need_of_launch(launch)
        selected = map(self.need_of_asset, launch.assets if launch else ())
        needs = {named, *selected} - {None}
        return READ_COUNTS if len(needs) > 1 else next(iter(needs), None)


@lru_cache(_REMEMBERED)
def catalogue_of(graph: Any) -> Catalogue:  # noqa: ANN401 - Dagster exports no name for its asset graph
    """Return the catalogue of an asset graph, which Dagster makes anew when code is loaded."""
    return Catalogue(graph.asset_nodes)


def _need_by_definition(metadata: Mapping[str, Any]) -> Need | None:
    told = metadata.get(DATASOURCE)
    if told is None:
        return None
    return need_of_steward(str(told.value if isinstance(told, dg.MetadataValue) else told))
