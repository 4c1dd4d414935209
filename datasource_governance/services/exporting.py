"""Gather what proves a promotion, and seal it so that it can leave the database.

Source: SPEC section 13.
"""

from collections.abc import Iterable, Sequence

from datasource_governance.domain.actor import Role
from datasource_governance.domain.attestation import ActorKey, Attestation
from datasource_governance.domain.envelope import Envelope
from datasource_governance.domain.evidence import (
    TENANT_CHAIN,
    Entry,
    check_unbroken,
    datasource_chain,
)
from datasource_governance.domain.materialization import Materialization, provenance_of
from datasource_governance.domain.policy_version import PolicyKind, PolicySource, PolicyVersion
from datasource_governance.domain.stage import Stage
from datasource_governance.domain.statement import PAYLOAD_TYPE, PromotionEvidence
from datasource_governance.errors import GuardError
from datasource_governance.ports import EnvelopeSigner, UnitOfWork
from datasource_governance.services.sealing import sealed, sealing_key

_ATTESTATION = "attestation"


def export_promotion(work: UnitOfWork, materialization_id: str, signer: EnvelopeSigner) -> Envelope:
    """Return the evidence of a promotion as an in-toto statement in an envelope.

    It holds counts and row numbers, so whoever signs must be a steward of the datasource; it holds
    neither cell values nor reasons. Nothing is written.

    Raises:
        NotFoundError: for an unknown materialization.
        GuardError: `not_authorised`, `attestation_invalid`, or `evidence_chain_broken`.
    """
    with work:
        materialization = work.materializations.get(materialization_id)
        key = sealing_key(work, signer, Role.STEWARD, materialization.datasource)
        stage = work.stages.get(_promoted(materialization))
        check_unbroken(work.evidence.breaks_about(datasource_chain(stage.datasource), stage.id))
        policies, segment = _policies(work, stage), _segment(work, stage)
        authority = _Authority(work)
        authority.follow(_attested(entry for entry in segment if entry.subject == stage.id))
        # A launch was attested before, and in the tenant's chain.
        named = (
            *(one.attestation_id for one in policies),
            _creation(work, stage),
            provenance_of(materialization).get("promotion_attestation"),
        )
        authority.follow(str(one) for one in named if one is not None)
        evidence = PromotionEvidence(
            tenant=work.tenant,
            materialization=materialization,
            stage=stage,
            policies=policies,
            segment=tuple(segment),
            authority=authority.entries(),
            attestations=tuple(sorted(authority.attestations.values(), key=lambda one: one.id)),
            keys=tuple(sorted(authority.keys.values(), key=lambda one: one.id)),
        )
    return sealed(signer, key, PAYLOAD_TYPE, evidence.payload())


def _promoted(materialization: Materialization) -> str:
    """Return the stage that was promoted.

    Raises:
        GuardError: code `not_promoted` for what a publication became without one.
    """
    if materialization.stage is None:
        raise GuardError(
            f"materialization {materialization.id} was published, not promoted; its evidence is "
            f"that of publication {materialization.publication}",
            code="not_promoted",
        )
    return materialization.stage


def _creation(work: UnitOfWork, stage: Stage) -> str | None:
    """Return the attestation that proves who created a stage, or published what waits in it."""
    if stage.publication is None:
        return stage.attestation_id
    return work.publications.get(stage.publication).attestation_id


def _policies(work: UnitOfWork, stage: Stage) -> tuple[PolicyVersion, ...]:
    bound = {
        PolicyKind.QUALITY: (stage.quality_policy_hash, PolicySource(stage.policy_source)),
        PolicyKind.APPROVAL: (stage.approval_policy_hash, PolicySource.INHERITED),
    }
    return tuple(
        work.datasources.policy(stage.datasource, kind, policy_hash, source)
        for kind, (policy_hash, source) in bound.items()
        if policy_hash is not None
    )


def _segment(work: UnitOfWork, stage: Stage) -> Sequence[Entry]:
    """Return every link from the stage's first entry to its promotion."""
    chain = datasource_chain(stage.datasource)
    about = work.evidence.segment(chain, stage.id)
    promoted = [entry.sequence for entry in about if entry.kind == "stage.promoted"]
    if not promoted:
        raise GuardError(
            f"no evidence speaks of the promotion of stage {stage.id}; run: evidence verify",
            code="evidence_chain_broken",
        )
    return work.evidence.span(chain, about[0].sequence, promoted[0])


def _attested(entries: Iterable[Entry]) -> list[str]:
    """Return the attestations that were stored together with entries."""
    return [row.key[-1] for entry in entries for row in entry.rows() if row.table == _ATTESTATION]


class _Authority:
    """What attestations rest on: keys, and the tenant's entries about these and their actors.

    Those entries rest on attestations of administrators in turn, back to the tenant's founding.
    """

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._entries: dict[int, Entry] = {}
        self._subjects: set[str] = set()
        self.attestations: dict[str, Attestation] = {}
        self.keys: dict[str, ActorKey] = {}

    def follow(self, attestation_ids: Iterable[str]) -> None:
        """Gather attestations, and everything that they rest on."""
        pending = list(attestation_ids)
        while pending:
            attestation_id = pending.pop()
            if attestation_id in self.attestations:
                continue
            attestation, key = self._attestation(attestation_id)
            self.attestations[attestation_id] = attestation
            self.keys[key.id] = key
            for subject in (key.id, key.actor, attestation.claims.actor):
                pending += _attested(self._about(subject))

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of the tenant's chain that were met, in order."""
        return tuple(self._entries[sequence] for sequence in sorted(self._entries))

    def _attestation(self, attestation_id: str) -> tuple[Attestation, ActorKey]:
        attestation = self._work.authority.attestation(attestation_id)
        key = self._work.authority.key(attestation.claims.key) if attestation else None
        if attestation is None or key is None:
            raise GuardError(
                f"attestation {attestation_id[:12]} or its key is gone; run: evidence verify",
                code="evidence_chain_broken",
            )
        return attestation, key

    def _about(self, subject: str) -> Sequence[Entry]:
        """Return the tenant's entries about a key or an actor, the first time only."""
        if subject in self._subjects:
            return ()
        self._subjects.add(subject)
        found = self._work.evidence.segment(TENANT_CHAIN, subject)
        self._entries.update({entry.sequence: entry for entry in found})
        return found
