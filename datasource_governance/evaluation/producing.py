"""Producer evidence from this package's own engine, where the data is made.

Source: SPEC section 10 ("producer evidence").
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from datasource_governance.domain.canonical import Sha256
from datasource_governance.domain.producer_evidence import ProducerEvidence, evidence_of
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.evaluation.evaluate import validate, validate_open
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.open_files import media_type_of
from datasource_governance.sources.opening import changed, opened, stamp_of
from datasource_governance.sources.refusal import refused, shielded


def producer_evidence(
    policy: QualityPolicy, data: object, artifact_sha256: str
) -> ProducerEvidence:
    """Validate data where it is made, and return the evidence about the artifact it is written to.

    That the artifact holds this very data is the caller's word; of a file that is written already
    `file_evidence` knows.

    Args:
        policy: The quality policy of the datasource; evidence is bound to its hash.
        data: What `validate` takes: a frame, an Arrow table, a LazyFrame, a `SqlSource`.
        artifact_sha256: Of the artifact's bytes, 64 lower-case hexadecimal digits.

    Raises:
        InvalidArgumentError: the digest is none, or the data is of another class.
        UnreadableSourceError: as `validate`.
        EvaluationError: as `validate`.
    """
    if not re.fullmatch("[0-9a-f]{64}", artifact_sha256):
        raise InvalidArgumentError("artifact_sha256: expected 64 lower-case hexadecimal digits")
    return evidence_of(validate(policy, data), Sha256(artifact_sha256))


def file_evidence(
    policy: QualityPolicy,
    path: str | os.PathLike[str],
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    on_rows: Callable[[int], object] = lambda _: None,
) -> ProducerEvidence:
    """Validate a Parquet or Arrow IPC file, and return the evidence about its very bytes.

    Raises:
        InvalidArgumentError: it is a file of another kind, by its name.
        UnreadableSourceError: as `validate_file`; also when the file changes meanwhile.
        EvaluationError: as `validate_file`.
    """
    path = Path(path)
    media_type = media_type_of(path.name)
    with opened(path) as file:
        before = stamp_of(file)
        otherwise = refused(path.name, "unreadable", "the file cannot be opened or read")
        sha256 = shielded(lambda: _sha256(file), otherwise)
        validation = validate_open(
            policy, file, media_type, memory_bytes=memory_bytes, on_rows=on_rows
        )
        if not before.still_holds(stamp_of(file)):
            raise changed(path.name)
    return evidence_of(validation, Sha256(sha256))


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # a file has readinto
    return digest.hexdigest()
