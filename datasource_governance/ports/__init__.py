"""What services need from the outside, as Protocols: one module for each part of it."""

from datasource_governance.ports.evidence import CheckpointPlace, EnvelopeSigner
from datasource_governance.ports.lifecycle import Evaluator, Payload, UnitOfWork

__all__ = ["CheckpointPlace", "EnvelopeSigner", "Evaluator", "Payload", "UnitOfWork"]
