"""Writing a checkpoint: recorded, then kept, by whoever may see all chains and nobody else."""

import json
import threading
from dataclasses import dataclass, field

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.domain.checkpoint import (
    CHECKPOINTED,
    KeptCheckpoints,
    TrustedKey,
    open_checkpoint,
)
from datasource_governance.domain.evidence import TENANT_CHAIN
from datasource_governance.errors import ServiceUnavailableError
from datasource_governance.services.checkpointing import write_checkpoint
from datasource_governance.signing import Signer, create_key
from datasource_governance_tests.world import World

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@dataclass
class Shelf:
    """A place in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    full: bool = False

    def put(self, name: str, content: bytes) -> None:
        if self.full:
            raise ServiceUnavailableError("the shelf is full")
        assert name not in self.files
        self.files[name] = content

    def kept(self) -> KeptCheckpoints:
        return KeptCheckpoints(files=sorted(self.files.items()))


def checkpointer(world: World) -> Signer:
    return world.admit("checkpointer", Role.VIEWER)


def write(world: World, signer: Signer, shelf: Shelf):
    return write_checkpoint(world.application.work(), signer, shelf)


def test_it_lists_every_chain_in_order_and_is_evidence_itself(world):
    world.declare()
    world.stage()
    signer, shelf = checkpointer(world), Shelf()
    with world.application.work() as work:
        heads = work.evidence.heads()

    checkpoint = write(world, signer, shelf)

    assert {head.chain: head for head in checkpoint.heads} == heads
    assert [head.chain for head in checkpoint.heads] == ["datasource/orders", "tenant"]
    with world.application.work() as work:
        (entry,) = work.evidence.segment(TENANT_CHAIN, checkpoint.id)
    assert (entry.kind, entry.sequence, entry.at) == (
        CHECKPOINTED,
        checkpoint.sequence,
        checkpoint.at,
    )
    facts = json.loads(entry.body)["facts"]
    assert facts == {
        "checkpoint": checkpoint.id,
        "chains": 2,
        "key": signer.key,
        "actor": "checkpointer",
    }


def test_what_is_kept_opens_with_the_signers_key(world):
    signer, shelf = checkpointer(world), Shelf()

    checkpoint = write(world, signer, shelf)

    keys = {signer.key: TrustedKey(public_key=signer.public_key)}
    ((name, content),) = shelf.files.items()
    assert name == checkpoint.name
    assert open_checkpoint(name, content, tenant="default", keys=keys) == checkpoint


def test_each_covers_the_one_before(world):
    signer, shelf = checkpointer(world), Shelf()

    first, second = write(world, signer, shelf), write(world, signer, shelf)

    (head,) = second.heads
    assert head.sequence == first.sequence == second.sequence - 1
    verification = world.application.verify_evidence(kept=shelf.kept())
    assert verification.holds
    assert (verification.checkpoints, verification.recorded) == (2, 2)
    assert verification.newest == second


def test_one_that_could_not_be_kept_is_recorded_and_covered_by_the_next(world):
    signer, shelf = checkpointer(world), Shelf(full=True)
    with pytest.raises(ServiceUnavailableError):
        write(world, signer, shelf)

    shelf.full = False
    write(world, signer, shelf)

    verification = world.application.verify_evidence(kept=shelf.kept())
    assert verification.holds
    assert (verification.checkpoints, verification.recorded) == (1, 2)


def test_whoever_sees_one_datasource_only_writes_none(world):
    world.declare()
    signer = world.admit("checkpointer")
    world.grant("checkpointer", Role.VIEWER, "orders")

    with world.refuses("not_authorised"):
        write(world, signer, Shelf())


def test_a_withdrawn_grant_and_a_revoked_key_write_none(world):
    signer = world.admit("checkpointer")
    grant = world.grant("checkpointer", Role.VIEWER)
    write(world, signer, Shelf())

    world.withdraw(grant)
    with world.refuses("not_authorised"):
        write(world, signer, Shelf())

    world.grant("checkpointer", Role.VIEWER)
    world.revoke(signer.key)
    with world.refuses("attestation_invalid"):
        write(world, signer, Shelf())


def test_an_unregistered_key_writes_none(world, tmp_path):
    create_key(tmp_path, "checkpointer")

    with world.refuses("attestation_invalid"):
        write(world, Signer(tmp_path, "checkpointer", "default"), Shelf())


def test_whoever_has_not_the_private_key_writes_none(world):
    signer, creator = checkpointer(world), world.signer("creator")

    class Pretender:
        key = signer.key
        sign = staticmethod(creator.sign)

    with world.refuses("attestation_invalid"):
        write(world, Pretender(), Shelf())


def test_a_key_that_speaks_for_others_writes_none(world):
    signer = world.admit("gateway", Role.VIEWER)
    world.tamper(
        "actor_key",
        f"UPDATE governance.actor_key SET kind = '{KeyKind.GATEWAY}' WHERE actor = 'gateway'",
    )

    with world.refuses("attestation_invalid"):
        write(world, signer, Shelf())


def test_two_at_once_and_work_beside_them_lose_nothing(world):
    world.declare()
    signer, shelf = checkpointer(world), Shelf()
    failures: list[Exception] = []

    def run(step) -> None:
        try:
            for _ in range(4):
                step()
        except Exception as error:  # noqa: BLE001 - told by the assertion
            failures.append(error)

    steps = (
        lambda: write(world, signer, shelf),
        lambda: write(world, signer, shelf),
        world.stage,
    )
    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    verification = world.application.verify_evidence(kept=shelf.kept())
    assert verification.holds, verification.breaks
    assert (verification.checkpoints, verification.recorded) == (8, 8)
