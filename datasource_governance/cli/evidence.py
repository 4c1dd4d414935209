"""`evidence verify | checkpoint | export | produce | schema`.

Source: SPEC sections 10, 13 and 16.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from datasource_governance.cli.output import (
    ActorOption,
    JsonOption,
    console,
    counting,
    instant,
    print_json,
    write_new,
)
from datasource_governance.cli.session import application, signer
from datasource_governance.cli.validate import MemoryOption, PolicyOption, read_document
from datasource_governance.composition import Application
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.checkpoint import KeptCheckpoints
from datasource_governance.domain.document_schemas import producer_evidence_schema
from datasource_governance.domain.evidence import Break
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.statement_schema import statement_schema
from datasource_governance.errors import EXIT_NO, InvalidArgumentError
from datasource_governance.services.checkpointing import write_checkpoint
from datasource_governance.services.exporting import export_promotion
from datasource_governance.signing import Signer, read_public_key
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.limits import MEBIBYTE

if TYPE_CHECKING:
    from datasource_governance.persistence.verification import Verification

app = typer.Typer(help="The record of everything, and the proof that it holds.")

CheckpointOption = Annotated[
    str | None,
    typer.Option("--checkpoint", help="A kept checkpoint, or the directory or address of several."),
]
PublicKeyOption = Annotated[
    Path | None,
    typer.Option(help="PEM file of the key that signed the checkpoints, kept by yourself."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", help="PEM file of the private key, named after its actor."),
]


@app.command()
def verify(
    checkpoint: CheckpointOption = None,
    public_key: PublicKeyOption = None,
    json: JsonOption = False,
) -> int:
    """Verify every chain and every governed row. Exit 1: something is broken."""
    session = application()
    kept = _kept(session, checkpoint, public_key)
    with counting("{task.completed:.0f} entries") as progress:
        verification = session.verify_evidence(progress, kept)
    if json:
        print_json(verification.document())
        return 0 if verification.holds else EXIT_NO
    _show(verification)
    return 0 if verification.holds else EXIT_NO


def _show(verification: "Verification") -> None:
    out = console()
    if verification.breaks:
        out.print(_break_table(verification.breaks))
    verdict = "holds" if verification.holds else f"is BROKEN in {len(verification.breaks)} places"
    out.print(
        f"evidence {verdict}: {verification.entries} entries in {verification.chains} chains, "
        f"{verification.rows} rows",
        markup=False,
    )
    out.print(_limits(verification), markup=False)


def _limits(verification: "Verification") -> str:
    """Return what a verification that holds does not prove."""
    newest = verification.newest
    if newest is None:
        return (
            "not proved without a checkpoint that is kept elsewhere: that no chain was cut off "
            "together with its head, dropped or rewritten, and that this is no old backup; "
            "one is written by: evidence checkpoint"
        )
    return (
        f"held against {verification.checkpoints} of {verification.recorded} recorded checkpoints; "
        f"not proved is what came after the newest of them, {newest.sequence} of "
        f"{instant(newest.at)} UTC"
    )


def _kept(
    session: Application, checkpoint: str | None, public_key: Path | None
) -> KeptCheckpoints | None:
    if checkpoint is None:
        if public_key is not None:
            raise InvalidArgumentError("--public-key needs --checkpoint")
        return None
    return KeptCheckpoints(
        files=session.checkpoint_files(checkpoint).read(),
        public_key=read_public_key(public_key) if public_key else None,
    )


def _break_table(breaks: tuple[Break, ...]) -> Table:
    table = Table("break", "table", "key", "what")
    for one in breaks:
        table.add_row(one.kind, one.table, escape("/".join(one.key)), one.message)
    return table


@app.command("checkpoint")
def write(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            envvar="GOVERNANCE_CHECKPOINTS",
            help="Directory or fsspec address, out of reach of who owns the database.",
        ),
    ] = None,
    key: KeyOption = None,
    actor: Annotated[
        str | None, typer.Option("--actor", help="Whose key signs; default: checkpointer.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Sign the heads of all chains and keep them outside the database."""
    session = application()
    place = session.checkpoint_files(to)
    author = _signer(session, key, actor or session.settings.checkpoint_actor)
    checkpoint = write_checkpoint(session.work(), author, place)
    if json:
        print_json({"checkpoint": checkpoint.name, "hash": checkpoint.id, **checkpoint.document()})
    else:
        text = f"checkpoint {checkpoint.name} of {len(checkpoint.heads)} chains is kept"
        console().print(text, markup=False)
    return 0


@app.command()
def export(
    materialization: Annotated[str, typer.Argument(help="Id of the materialization.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="New file to write to; default: print.")
    ] = None,
    key: KeyOption = None,
    actor: ActorOption = None,
    json: JsonOption = False,
) -> int:
    """Write what proves a promotion: an in-toto statement in a signed DSSE envelope."""
    session = application()
    envelope = export_promotion(session.work(), materialization, _signer(session, key, actor))
    if out is None:
        print_json(envelope.document())
        return 0
    write_new(out, envelope.encoded())
    if json:
        print_json({"materialization": materialization, "file": str(out), "key": envelope.key})
    else:
        text = f"evidence of materialization {materialization} is in {out}"
        console().print(text, markup=False)
    return 0


@app.command()
def produce(
    file: Annotated[Path, typer.Argument(help="The artifact, a Parquet or Arrow IPC file.")],
    policy: PolicyOption,
    out: Annotated[
        Path | None, typer.Option("--out", help="New file to write to; default: print.")
    ] = None,
    memory: MemoryOption = DEFAULT_MEMORY_BYTES // MEBIBYTE,
    json: JsonOption = False,
) -> int:
    """Validate an artifact where it is made. Exit 0 whatever is found: the document says it."""
    quality_policy = parse_quality_policy(read_document(policy))
    from datasource_governance.evaluation.producing import file_evidence

    with counting("{task.completed:,} rows") as on_rows:
        evidence = file_evidence(
            quality_policy, file, memory_bytes=memory * MEBIBYTE, on_rows=on_rows
        )
    if out is None:
        print_json(evidence.document())
        return 0
    write_new(out, canonical_bytes(evidence.document()))
    if json:
        print_json({"artifact_sha256": evidence.artifact_sha256, "file": str(out)})
    else:
        text = f"producer evidence about {evidence.artifact_sha256} is in {out}"
        console().print(text, markup=False)
    return 0


class EvidenceKind(StrEnum):
    """Which evidence: a promotion's, which `export` signs, or a producer's, which he sends."""

    PROMOTION = "promotion"
    PRODUCER = "producer"


@app.command("schema")
def show_schema(
    kind: Annotated[
        EvidenceKind, typer.Option("--kind", help="Which evidence.")
    ] = EvidenceKind.PROMOTION,
    json: JsonOption = False,
) -> int:
    """Print the JSON Schema of what `export` signs, or of what `produce` prints."""
    is_promotion = kind is EvidenceKind.PROMOTION
    schema = statement_schema() if is_promotion else producer_evidence_schema()
    if json:
        print_json(schema)
    else:
        console().print_json(data=schema)
    return 0


def _signer(session: Application, key: Path | None, actor: str | None) -> Signer:
    if key is None:
        return signer(session, actor)
    return Signer(key.parent, key.stem, session.settings.tenant)
