"""`python -m benchmarks.approval`: how many decisions a server takes, beside its raw commits.

On a server of its own that waits for the disk. Every client is a process with a connection of its
own; all begin at one instant. A decision is signed, verified, checked under locks, and written with
its attestation, event and evidence. The raw commit is a hand-written loop that inserts one row of
as many bytes as an evidence entry has, and commits.
"""

import hashlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final, Protocol

import psycopg
import typer

from benchmarks.sensor_ticks import approve
from benchmarks.servers import served
from datasource_governance.cli.founding import admit, signer_of
from datasource_governance.composition import Application, Settings
from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import Action
from datasource_governance.domain.canonical import Sha256, canonical_bytes
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.subjects import apply_subject, delivery_subject
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.persistence.administration import administrative_url, connect
from datasource_governance.services.authority import found_tenant
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.staging import (
    StageRequest,
    create_stage,
    store_delivery_attestation,
)
from datasource_governance.signing import Signer

COMMITS: Final = "raw commits of one row"
APART: Final = "decisions, each client in a datasource of its own"
TOGETHER: Final = "decisions, all clients in one datasource"
_CONTENDED: Final = "contended"
_APPROVER: Final = "approver"
_COMMITS_PER_DECISION: Final = 10
_ROW: Final = b"\0" * 1024
_POLICIES: Final = {
    "quality_policy": {
        "version": "v1",
        "rules": [{"id": "some", "type": "row_count", "minimum": 1}],
    },
    "approval_policy": {"version": "v1", "required": True, "required_approvals": 2},
}
# Copies behind the application's back: a decision reads the stage's row, not its commitment.
_COPIES: Final = """
INSERT INTO governance.stage SELECT copy.* FROM governance.stage original,
    generate_series(1, {number}) n,
    LATERAL jsonb_populate_record(original, jsonb_build_object(
        'id', original.id || '-' || n, 'attestation_id', NULL)) copy
WHERE original.id = '{stage}'
"""


class Barrier(Protocol):
    """Where processes wait for each other."""

    def wait(self) -> int:
        """Return when all have come."""
        ...

    def abort(self) -> None:
        """Let nobody wait who waits now or later: their waiting fails."""
        ...


def rate(client: Callable[..., None], shares: Sequence[tuple[object, ...]], acts: int) -> float:
    """Return how many acts are done in a second, when each client does so many of its share.

    Counted from the instant on which all begin, until the last one is done.
    """
    # Forks of a process that has one thread and nothing open.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__"])
    start, end = context.Barrier(len(shares) + 1), context.Barrier(len(shares) + 1)
    processes = [context.Process(target=_run, args=(client, start, end, *one)) for one in shares]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    elapsed = time.perf_counter() - began
    for process in processes:
        process.join()
    return len(shares) * acts / elapsed


def _run(client: Callable[..., None], start: Barrier, end: Barrier, *share: object) -> None:
    """Run a client; where it fails, nobody waits for it."""
    try:
        client(start, end, *share)
    except BaseException:
        start.abort()
        end.abort()
        raise


def _commit(start: Barrier, end: Barrier, url: str, acts: int) -> None:
    with psycopg.connect(url) as connection:
        start.wait()
        for _ in range(acts):
            connection.execute("INSERT INTO public.raw (body) VALUES (%s)", [_ROW])
            connection.commit()
        end.wait()


def _decide(start: Barrier, end: Barrier, settings: Settings, ids: Sequence[str]) -> None:
    application = Application(settings)
    approver = Signer(settings.keys, _APPROVER, settings.tenant)
    with application.work() as work:
        first, *others = [work.stages.get(one) for one in ids]
    approve(application, approver, first)  # imports, connects and is not counted
    start.wait()
    for stage in others:
        approve(application, approver, stage)
    end.wait()
    application.close()


def main(
    clients: Annotated[int, typer.Option(min=1, help="How many decide at once.")] = 16,
    decisions: Annotated[int, typer.Option(min=1, help="Decisions of each client.")] = 40,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds behind each median.")] = 5,
) -> None:
    """Print a table of rates; each round measures all of them, one after the other."""
    with _office(clients) as office:
        found = [office.rates(clients, decisions) for _ in range(rounds)]
        typer.echo(f"{clients} clients, {rounds} rounds, fsync {office.fsync()}\n")
    typer.echo("| what | per second | to raw commits |")
    typer.echo("| --- | ---: | ---: |")
    for what in (COMMITS, APART, TOGETHER):
        rates = [one[what] for one in found]
        ratios = [one[what] / one[COMMITS] for one in found]
        typer.echo(f"| {what} | {_middle(rates, 0)} | {_middle(ratios, 2)} |")


def _middle(values: Sequence[float], digits: int) -> str:
    """Return the median, and the least and the greatest value."""
    middle, least, greatest = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({least:,.{digits}f} to {greatest:,.{digits}f})"


class Office:
    """Governed datasources on a server of their own, with somebody who may approve."""

    def __init__(self, settings: Settings, admin_url: str, clients: int) -> None:
        self._settings = settings
        self._admin_url = administrative_url(admin_url).set(database="governance")
        self._application = Application(settings)
        administrator = signer_of(self._application, "admin")
        found_tenant(self._application.work(), "admin", administrator.public_key)
        creator = admit(self._application, "creator", Role.STEWARD)
        admit(self._application, _APPROVER, Role.APPROVER)
        self._apart = [f"client_{number}" for number in range(clients)]
        self._originals = {
            name: self._stage(name, administrator, creator) for name in (*self._apart, _CONTENDED)
        }
        with connect(self._admin_url) as connection:
            connection.execute("CREATE TABLE public.raw (id bigserial PRIMARY KEY, body bytea)")

    def _stage(self, datasource: str, administrator: Signer, creator: Signer) -> Stage:
        """Declare a datasource and return a stage of it that waits."""
        import pyarrow as pa

        application = self._application
        declaration = parse_datasource(
            canonical_bytes(
                {
                    "id": datasource,
                    "kind": "static",
                    "source": {"folder": "deliveries"},
                    "governance": _POLICIES,
                }
            ),
            lambda name: Path(name).read_bytes(),
        )
        applied = administrator.attest(Action.DATASOURCE_APPLY, apply_subject(declaration))
        apply_datasource(application.work(), declaration, applied)
        payload = TypedPayload(pa.table({"id": [1, 2]}))
        sha256 = Sha256(hashlib.sha256(payload.encoded()).hexdigest())
        attestation = creator.attest(Action.STAGE_CREATE, delivery_subject(datasource, sha256))
        request = StageRequest(
            datasource=datasource,
            delivery="delivery.csv",
            file_sha256=sha256,
            attestation_id=store_delivery_attestation(
                application.work(), datasource, sha256, attestation
            ),
        )
        return create_stage(application.work(), application.evaluator(), payload, request).stage

    def rates(self, number: int, decisions: int) -> dict[str, float]:
        """Measure one round; every decision is about a stage that nobody has decided about."""
        # One more each, for the one that is not counted.
        apart = [self._waiting(name, decisions + 1) for name in self._apart]
        together = self._waiting(_CONTENDED, number * (decisions + 1))
        commits = decisions * _COMMITS_PER_DECISION
        url = self._admin_url.set(drivername="postgresql").render_as_string(hide_password=False)
        return {
            COMMITS: rate(_commit, [(url, commits)] * number, commits),
            APART: rate(_decide, [(self._settings, ids) for ids in apart], decisions),
            TOGETHER: rate(
                _decide,
                [(self._settings, together[client::number]) for client in range(number)],
                decisions,
            ),
        }

    def _waiting(self, datasource: str, number: int) -> list[str]:
        """Return the ids of new stages that wait, copies of one."""
        original = self._originals[datasource].id
        with connect(self._admin_url) as connection, connection.transaction():
            known = connection.execute(
                "SELECT count(*) FROM governance.stage WHERE datasource = %s", [datasource]
            ).fetchone()
            first = known[0] if known else 0
            copies = _COPIES.replace("(1, {number})", f"({first}, {first + number - 1})")
            connection.execute(copies.format(stage=original).encode())
        return [f"{original}-{n}" for n in range(first, first + number)]

    def close(self) -> None:
        """Give back the connections."""
        self._application.close()

    def fsync(self) -> str:
        """Return whether the server waits for the disk."""
        with connect(self._admin_url) as connection:
            (found,) = connection.execute("SHOW fsync").fetchone() or ("unknown",)
        return str(found)


@contextmanager
def _office(clients: int) -> Iterator[Office]:
    with served() as server, closing(Office(server.settings, server.url, clients)) as office:
        yield office


if __name__ == "__main__":
    typer.run(main)
