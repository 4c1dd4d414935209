"""`publish`: bring an output in, once for each idempotency key.

Source: SPEC sections 9 and 16.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from datasource_governance.cli.output import (
    ActorOption,
    JsonOption,
    console,
    counting,
    print_json,
    refusal_document,
)
from datasource_governance.cli.publication import publication_document, show_publication
from datasource_governance.cli.render import change_table, rule_table
from datasource_governance.cli.session import application, signer
from datasource_governance.cli.validate import read_document
from datasource_governance.composition import Application
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.producer_evidence import parse_producer_evidence
from datasource_governance.domain.publication import PublicationRejectedError
from datasource_governance.domain.subjects import publication_subject
from datasource_governance.domain.validation import Validation
from datasource_governance.errors import EXIT_NO
from datasource_governance.services.publishing import PublicationRequest, Published
from datasource_governance.signing import Signer


def publish(
    datasource: str,
    file: Annotated[Path, typer.Argument(help="The output: a Parquet or Arrow IPC file.")],
    producer: Annotated[str, typer.Option(help="Who publishes; keys are this producer's.")],
    key: Annotated[str, typer.Option(help="By which the same output is known again.")],
    evidence: Annotated[
        Path | None, typer.Option(help="What the producer found in it: evidence produce.")
    ] = None,
    partition: Annotated[str, typer.Option(help="Which partition becomes current.")] = "",
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Publish an output. Exit 0: it is current, 1: it needs review, is rejected or a conflict.

    The actor signs for just this output; where nobody is named, it is `system` who publishes.
    """
    session = application()
    said = parse_producer_evidence(read_document(evidence)) if evidence else None
    request = PublicationRequest(
        producer=producer,
        idempotency_key=key,
        datasource=datasource,
        partition=partition,
        evidence=said,
    )
    by = signer(session, actor) if actor else None
    try:
        published = _publish(session, file, request, by)
    except PublicationRejectedError as rejected:
        return _show_rejected(rejected, json=json)
    if json:
        document = publication_document(session, published)
        print_json({**document, "replayed": published.replayed})
    else:
        show_publication(session, published)
        if published.replayed:
            console().print("It was published before; nothing was written.", markup=False)
    return 0 if published.publication.state.is_current else EXIT_NO


def _publish(
    session: Application, file: Path, request: PublicationRequest, by: Signer | None
) -> Published:
    outlet = session.outlet()
    if by is not None:
        outlet = replace(outlet, sign=partial(attest_output, by), signer=by.actor)
    with counting("{task.completed:,} bytes are kept") as on_bytes:
        return replace(outlet, on_bytes=on_bytes).publish(file, request)


def attest_output(by: Signer, request: PublicationRequest, checksum: Sha256) -> Attestation:
    """Return what an actor signs for an output with that checksum."""
    subject = publication_subject(
        datasource=request.datasource,
        partition=request.partition,
        producer=request.producer,
        idempotency_key=request.idempotency_key,
        checksum=checksum,
        supplied_policy=request.supplied_policy.hash if request.supplied_policy else None,
        evidence=request.evidence.hash if request.evidence else None,
    )
    return by.attest(Action.PUBLICATION_CREATE, subject)


def _show_rejected(rejected: PublicationRejectedError, *, json: bool) -> int:
    """Show whoever has the file what is wrong with it; nothing of this is stored anywhere."""
    if json:
        validation = rejected.validation.document()
        print_json({**refusal_document(rejected), "validation": validation})
    else:
        _show(rejected.validation)
        typer.echo(str(rejected), err=True)
    return rejected.exit_code


def _show(validation: Validation) -> None:
    out = console()
    out.print(rule_table([rule.document() for rule in validation.rules]))  # type: ignore[misc]  # JSON values
    if validation.schema_diff is not None and validation.schema_diff.changes:
        out.print(change_table([one.document() for one in validation.schema_diff.changes]))  # type: ignore[misc]  # JSON values
