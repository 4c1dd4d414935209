"""`python -m benchmarks.approval`: how many decisions a server takes, beside its raw commits.

On a server of its own that waits for the disk. Every client is a process with a connection of its
own; all begin at one instant. A decision is signed, verified, checked under locks, and written with
its attestation, event and evidence. The raw commit is a hand-written loop that inserts one row of
as many bytes as an evidence entry has, and commits.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.clients import COMMITS, Barrier, RawCommits, echo_rates, rate
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
from datasource_governance.persistence.administration import connect
from datasource_governance.services.authority import found_tenant
from datasource_governance.services.creating import store_delivery_attestation
from datasource_governance.services.declaring import apply_datasource
from datasource_governance.services.staging import StageRequest, create_stage
from datasource_governance.signing import Signer

APART: Final = "decisions, each client in a datasource of its own"
TOGETHER: Final = "decisions, all clients in one datasource"
_CONTENDED: Final = "contended"
_APPROVER: Final = "approver"
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
        typer.echo(f"{clients} clients, {rounds} rounds, fsync {office.raw.fsync()}\n")
    echo_rates((COMMITS, APART, TOGETHER), found)


class Office:
    """Governed datasources on a server of their own, with somebody who may approve."""

    def __init__(self, settings: Settings, admin_url: str, clients: int) -> None:
        self._settings = settings
        self.raw = RawCommits(admin_url)
        self._application = Application(settings)
        administrator = signer_of(self._application, "admin")
        found_tenant(self._application.work(), "admin", administrator.public_key)
        creator = admit(self._application, "creator", Role.STEWARD)
        admit(self._application, _APPROVER, Role.APPROVER)
        self._apart = [f"client_{number}" for number in range(clients)]
        self._originals = {
            name: self._stage(name, administrator, creator) for name in (*self._apart, _CONTENDED)
        }

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
        return {
            COMMITS: self.raw.rate(number, decisions),
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
        with connect(self.raw.url) as connection, connection.transaction():
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


@contextmanager
def _office(clients: int) -> Iterator[Office]:
    with served() as server, closing(Office(server.settings, server.url, clients)) as office:
        yield office


if __name__ == "__main__":
    typer.run(main)
