"""Publish an output from any program, with the application of its environment.

Source: SPEC section 9.
"""

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.attestation import Attestation
from datasource_governance.domain.producer_evidence import ProducerEvidence
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.services.publishing import PublicationRequest, Published


def publish(  # noqa: PLR0913 - the facts of a publication, all by name
    data: object,
    *,
    producer: str,
    idempotency_key: str,
    datasource: str,
    partition: str = "",
    evidence: ProducerEvidence | None = None,
    attestation: Attestation | None = None,
    supplied_policy: QualityPolicy | None = None,
) -> Published:
    """Publish an output of a producer, once and only once; publishing again gives the first result.

    Args:
        data: A pandas or Polars frame, an Arrow table, a Polars LazyFrame, the path of a Parquet or
            Arrow IPC file, or the reference of an artifact. What is too large to keep inline
            becomes an artifact.
        producer: Who publishes, as the key is scoped.
        idempotency_key: By which the same output is known again.
        datasource: Id of a datasource of kind `published`.
        partition: Which partition of it becomes current; empty without partitions.
        evidence: What the producer found in an artifact.
        attestation: Of somebody who signs for just this output; without one it is `system`.
        supplied_policy: In place of the datasource's quality policy, where that is allowed.

    Raises:
        PublicationRejectedError: it did not pass; nothing was written and the key is free.
        GovernanceError: as `Application.publish`; InvalidArgumentError where the environment names
            no database.
    """
    request = PublicationRequest(
        producer=producer,
        idempotency_key=idempotency_key,
        datasource=datasource,
        partition=partition,
        evidence=evidence,
        attestation=attestation,
        supplied_policy=supplied_policy,
    )
    application = Application(read_settings())
    try:
        return application.publish(data, request)
    finally:
        application.close()
