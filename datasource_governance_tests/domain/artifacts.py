"""Artifact references and producer evidence for tests, valid by default."""

from datasource_governance.domain.artifact import ArtifactReference, MediaType
from datasource_governance.domain.producer_evidence import (
    ProducerEvidence,
    ResultStatus,
    RuleResult,
)
from datasource_governance_tests.builders import schema

SHA256 = "a" * 64


def reference(**facts):
    """Return a reference to an artifact of three rows."""
    return ArtifactReference(
        **{
            "backend": "local",
            "locator": f"orders/{SHA256}",
            "sha256": SHA256,
            "schema": schema(id="integer"),
            "datasource_fingerprint": "f" * 64,
            "row_count": 3,
            "byte_count": 512,
            "media_type": MediaType.PARQUET,
            **facts,
        }
    )


def evidence(policy, artifact_sha256=SHA256, policy_hash=None, **statuses):
    """Return evidence with a status by rule id; `passed` for every rule that is not named."""
    given = {rule.id: "passed" for rule in policy.rules} | statuses
    return ProducerEvidence(
        artifact_sha256=artifact_sha256,
        policy_hash=policy_hash or policy.hash,
        evaluator="tests 1",
        results=tuple(
            RuleResult(id=rule, status=ResultStatus(status))
            for rule, status in given.items()
            if status is not None
        ),
    )
