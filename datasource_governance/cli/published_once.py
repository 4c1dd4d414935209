"""A chapter of the demo's story: what a producer's retries leave behind, which is nothing more.

Source: SPEC section 9; issue "Governed outputs: published once, large or small".
"""

from dataclasses import dataclass

from datasource_governance.composition import Application
from datasource_governance.domain.launch import publication_job_name
from datasource_governance.domain.materialization import Materialization
from datasource_governance.domain.publication import Publication
from datasource_governance.errors import NotFoundError
from datasource_governance.orchestration.client import DagsterClient
from datasource_governance.orchestration.launching import launch, launch_again, wait_for_run
from datasource_governance.orchestration.runs import replayed_by

DATASOURCE = "airport_zones"
RETRIES = 2
_LOOKED_AT = 100
"""Among so many newest rows of the datasource a second one would be found."""
_PUBLISHED = "datasource.publication.published"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedOnce:
    """What is there of one output, by count; `replays` are what the retries say they were."""

    publication: Publication
    materialization: Materialization
    replays: tuple[bool, ...]
    publications: int
    materializations: int
    events: int

    @property
    def is_kept(self) -> bool:
        """Whether it was published once, and every retry gave that."""
        once = (self.publications, self.materializations, self.events)
        return once == (1, 1, 1) and self.replays == (True,) * RETRIES

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "publication": self.publication.id,
            "state": str(self.publication.state),
            "producer": self.publication.producer,
            "idempotency_key": self.publication.idempotency_key,
            "actor": self.publication.actor,
            "materialization": self.materialization.id,
            "published": self.publications,
            "replayed": sum(self.replays),
            "materializations": self.materializations,
            "events": self.events,
        }


def publish_by_run(client: DagsterClient) -> tuple[str, bool]:
    """Run the asset that publishes; return the run, and whether it succeeded."""
    run_id = launch(client, publication_job_name(DATASOURCE), {})
    return run_id, wait_for_run(client, run_id) == "SUCCESS"


def retry_run(client: DagsterClient, run_id: str) -> tuple[bool, ...]:
    """Execute a run again, several times at once; return of each whether it was a replay."""
    again = [launch_again(client, run_id) for _ in range(RETRIES)]
    ended = [wait_for_run(client, one) for one in again]
    return tuple(
        status == "SUCCESS" and replayed_by(client, one) == [True]
        for one, status in zip(again, ended, strict=True)
    )


def publication_of(application: Application, run_id: str) -> Publication:
    """Return what the asset published under the key of its run.

    Raises:
        NotFoundError: when it published nothing.
    """
    with application.work() as work:
        found = work.publications.find(DATASOURCE, f"{run_id}/{DATASOURCE}")
    if found is None:
        raise NotFoundError(f"run {run_id} published nothing")
    return found


def counted(
    application: Application, publication: Publication, replays: tuple[bool, ...]
) -> PublishedOnce:
    """Return how often one output is there."""
    with application.work() as work:
        publications = work.publications.list(DATASOURCE, (), _LOOKED_AT)
        materializations = work.materializations.page(DATASOURCE, before=None, limit=_LOOKED_AT)
        current = work.materializations.get(publication.materialization)
    key = publication.idempotency_key
    return PublishedOnce(
        publication=publication,
        materialization=current,
        replays=replays,
        publications=sum(one.idempotency_key == key for one in publications),
        materializations=sum(one.publication == publication.id for one in materializations),
        events=_events(application, publication),
    )


def _events(application: Application, publication: Publication) -> int:
    """Return how many events for other systems tell of a publication."""
    told, number = 0, 1
    with application.work() as work:
        while (event := work.outbox.at(DATASOURCE, number)) is not None:
            told += event.type == _PUBLISHED and publication.id.encode() in event.body
            number += 1
    return told
