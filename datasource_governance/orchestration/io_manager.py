"""The IO manager by which downstream assets read what is in force.

Nothing is written through it. Every load asks Postgres again: is the reader still authorised, is
the payload the one that was made current, is it small enough.

Source: SPEC section 15 ("readers load through a governed IO manager").
"""

from typing import Any

import dagster as dg
from typing_extensions import override

from datasource_governance.composition import Application
from datasource_governance.domain.actor import SYSTEM, ActorId
from datasource_governance.orchestration.inputs import Asked, asked_by, record_loaded
from datasource_governance.orchestration.refusals import business_refusals
from datasource_governance.reading import Loaded, Reader
from datasource_governance.services.reading import DEFAULT_BOUNDS, Bounds


class GovernedIOManager(dg.IOManager):
    """Loads a governed asset as pandas, Polars or Arrow, or as a lazy scan, as an input asks.

    Args:
        application: Whose database.
        reader: The actor under whose grant as steward pipelines read.
        bounds: How much one input may be, all its partitions together. A lazy scan has none.
    """

    def __init__(
        self,
        application: Application,
        reader: ActorId = SYSTEM,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._reader = Reader(application=application, actor=reader, bounds=bounds)

    @override
    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Refuse to store anything: only promotion makes a materialization."""
        if obj is not None:
            raise dg.Failure(
                description=f"{context.asset_key.to_user_string()} is written by promotion only",
                allow_retries=False,
            )

    @override
    def load_input(self, context: dg.InputContext) -> Any:
        """Return what an input asks for, and record which materialization it was given.

        Of several partitions it is a dict by partition key.
        """
        with business_refusals():
            asked = asked_by(context)
            loaded = self._load(asked)
        record_loaded(context, {key: one.materialization for key, one in loaded.items()})
        frames = {key: one.frame for key, one in loaded.items()}
        return frames if asked.by_partition else next(iter(frames.values()))

    def _load(self, asked: Asked) -> dict[str, Loaded]:
        loaded, reader = {}, self._reader
        for wanted in asked.wanted:
            one = loaded[wanted.partition] = reader.load(asked.datasource, wanted, asked.form)
            reader = reader.having_given(one)
        return loaded
