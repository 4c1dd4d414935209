"""`publication list | show`: what producers brought in, and what became of it.

Source: SPEC sections 9 and 16.
"""

from typing import Annotated

import typer

from datasource_governance.cli.output import JsonOption, console, print_json
from datasource_governance.cli.render import publication_table, rule_table
from datasource_governance.cli.session import application
from datasource_governance.composition import Application
from datasource_governance.domain.notification import stage_page
from datasource_governance.domain.publication import Publication, PublicationState
from datasource_governance.services.publishing import Published
from datasource_governance.services.reviewing import without_counts

_LISTED = 100

app = typer.Typer(help="Outputs of producers.", no_args_is_help=True)


@app.command("list")
def list_publications(
    datasource: Annotated[str | None, typer.Argument(help="Default: all.")] = None,
    state: Annotated[list[PublicationState] | None, typer.Option(help="Only these states.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = _LISTED,
    json: JsonOption = False,
) -> int:
    """List publications, newest first."""
    with application().work() as work:
        found = work.publications.list(datasource, state or (), limit)
    if json:
        print_json([summary(one) for one in found])
    else:
        console().print(publication_table(found))
    return 0


@app.command()
def show(publication: str, json: JsonOption = False) -> int:
    """Show a publication: its state, its materialization, and where it is decided about."""
    session = application()
    with session.work() as work:
        found = work.publications.get(publication)
        stage = work.stages.of_publication(publication)
        published = Published(
            publication=found,
            materialization=work.materializations.get(found.materialization),
            stage=stage.id if stage else None,
            replayed=False,
        )
    if json:
        print_json(publication_document(session, published))
    else:
        show_publication(session, published)
    return 0


def summary(publication: Publication) -> dict[str, object]:
    """Return a publication without its validation, as JSON."""
    return {
        "publication": publication.id,
        "datasource": publication.datasource,
        "partition": publication.partition,
        "producer": publication.producer,
        "idempotency_key": publication.idempotency_key,
        "state": str(publication.state),
        "materialization": publication.materialization,
        "actor": publication.actor,
        "run": publication.run_id,
        "quality_policy_hash": publication.quality_policy_hash,
        "policy_source": str(publication.policy_source),
        "validation_hash": publication.validation_hash,
        "created_at": publication.created_at.isoformat(),
    }


def publication_document(session: Application, published: Published) -> dict[str, object]:
    """Return a publication as JSON, without counts; `decision_page` is where a quorum decides."""
    stage = published.stage
    return {
        **summary(published.publication),
        "revision": published.materialization.revision,
        "stage": stage,
        "decision_page": stage_page(session.settings.dagster_url, stage) if stage else None,
        "validation": without_counts(published.validation),
    }


def show_publication(session: Application, published: Published) -> None:
    """Show a publication to a person, and what is to be done where it is not current."""
    out, publication = console(), published.publication
    out.print(publication_table([publication]))
    rules = without_counts(published.validation)["rules"]
    if isinstance(rules, list):
        out.print(rule_table([one for one in rules if isinstance(one, dict)], detailed=False))
    out.print(f"materialization: {publication.materialization}", markup=False)
    if published.stage is not None:
        page = stage_page(session.settings.dagster_url, published.stage)
        out.print(f"waits for approval in stage {published.stage}: {page}", markup=False)
    elif not publication.state.is_current:
        again = "publish it again under a new key, with evidence for every rule of the policy"
        out.print(f"not current: {again}", markup=False)
