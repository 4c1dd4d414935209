"""Write a checkpoint: list every chain's head, sign it, record it, keep it elsewhere.

Source: SPEC section 13; facts on checkpoints (6.4).
"""

from collections.abc import Mapping

from datasource_governance.domain.actor import Role
from datasource_governance.domain.checkpoint import CHECKPOINTED, PAYLOAD_TYPE, Checkpoint
from datasource_governance.domain.evidence import TENANT_CHAIN, Head
from datasource_governance.ports import CheckpointPlace, EnvelopeSigner, UnitOfWork
from datasource_governance.services.sealing import sealed, sealing_key


def write_checkpoint(
    work: UnitOfWork, signer: EnvelopeSigner, place: CheckpointPlace
) -> Checkpoint:
    """Write a checkpoint of the tenant and return it.

    Whoever signs needs no more than a viewer's grant on all datasources. The checkpoint is recorded
    before it is kept: one that the place did not take shows in the chain as missing, and the next
    one covers all that it said; whereas one kept without a record would look like a lost entry.

    Raises:
        GuardError: `not_authorised` or `attestation_invalid`.
        ServiceUnavailableError: when it could not be kept.
    """
    with work:
        key = sealing_key(work, signer, Role.VIEWER, None)
        heads = work.evidence.heads_with_lock(TENANT_CHAIN)
        now = work.now()
        checkpoint = Checkpoint(
            tenant=work.tenant,
            sequence=heads[TENANT_CHAIN].sequence + 1,
            at=now,
            heads=_in_order(heads),
        )
        envelope = sealed(signer, key, PAYLOAD_TYPE, checkpoint.payload())
        facts = {
            "checkpoint": checkpoint.id,
            "chains": len(checkpoint.heads),
            "key": key.id,
            "actor": key.actor,
        }
        work.evidence.append(
            TENANT_CHAIN, kind=CHECKPOINTED, subject=checkpoint.id, facts=facts, at=now
        )
        work.commit()
    place.put(checkpoint.name, envelope.encoded())
    return checkpoint


def _in_order(heads: Mapping[str, Head]) -> tuple[Head, ...]:
    return tuple(heads[chain] for chain in sorted(heads))
