"""Close stages that were compared with what is no longer current.

Source: SPEC section 6.
"""

from collections.abc import Sequence

from datasource_governance.domain.stage import OPEN_STATES, Stage, StageState
from datasource_governance.domain.target import Target
from datasource_governance.ports import UnitOfWork


def supersede_open(
    work: UnitOfWork, target: Target, *, promoted: str | None = None
) -> Sequence[Stage]:
    """Close the open stages of a partition, but the one that was promoted; return those."""
    others = [
        stage
        for stage in work.stages.list(target.datasource, OPEN_STATES, target.partition)
        if stage.id != promoted
    ]
    for other in others:
        work.stages.change_state(other, StageState.SUPERSEDED)
    return others
