"""The IO manager by which downstream assets read what is in force.

Nothing is written through it. Every load asks Postgres again: is the reader still authorised, is
the payload the one that was promoted, is it small enough.

Source: SPEC section 15 ("readers load through a governed IO manager").
"""

from typing import TYPE_CHECKING

import dagster as dg
from typing_extensions import override

from datasource_governance.composition import Application
from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.services.reading import read_current

if TYPE_CHECKING:
    import pandas as pd


class GovernedIOManager(dg.IOManager):
    """Loads `<datasource>/current` as a pandas DataFrame with Arrow dtypes.

    The reader is the actor under whose grant as steward pipelines read, by default `system`.
    """

    def __init__(self, application: Application, reader: ActorId = SYSTEM) -> None:
        self._application = application
        self._reader = reader

    @override
    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Refuse to store anything: only promotion makes a materialization."""
        if obj is not None:
            raise dg.Failure(
                description=f"{context.asset_key.to_user_string()} is written by promotion only",
                allow_retries=False,
            )

    @override
    def load_input(self, context: dg.InputContext) -> "pd.DataFrame":
        """Return the current materialization, and record which one was read."""
        from datasource_governance.evaluation.payload import to_pandas

        datasource = context.asset_key.path[0]
        with business_refusals():
            reading = read_current(self._application.work(), datasource, self._reader)
        context.add_input_metadata(
            {
                "datasource_governance/materialization_id": reading.materialization.id,
                "datasource_governance/revision": reading.materialization.revision,
            }
        )
        return to_pandas(reading.payload)
