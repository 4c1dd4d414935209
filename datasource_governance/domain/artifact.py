"""References to payloads that are too large to keep inline, and what backends hold of them.

A reference is an immutable pointer: which object of which backend, what bytes it must have, and
what is in them. Locators are made by backends, out of the datasource and the object's own digest.

Source: SPEC section 10; facts 2.8 and T-13.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from datasource_governance.domain.canonical import (
    MAXIMUM_EXACT_INTEGER,
    Sha256,
    canonical_bytes,
    digest,
)
from datasource_governance.domain.policy_keys import Key, Record, Tag, read_document
from datasource_governance.domain.policy_values import Choice, Text, Whole
from datasource_governance.domain.schema import DataType, TableSchema
from datasource_governance.domain.schema_document import SCHEMA
from datasource_governance.errors import GuardError

FORMAT = "datasource_governance/artifact_reference/v1"
DATASOURCE_DOMAIN = "datasource_governance/datasource_fingerprint/v1"
MAXIMUM_RESUME_CHECKPOINT_BYTES = 4096
BACKEND = re.compile(r"[a-z][a-z0-9+.-]{0,31}")
"""How backends are named: by a word, or the protocol of an address."""


class MediaType(StrEnum):
    """What an artifact is stored as, by the names that IANA registered; never a pickle."""

    PARQUET = "application/vnd.apache.parquet"
    ARROW_FILE = "application/vnd.apache.arrow.file"
    ARROW_STREAM = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """An object that a backend has taken in: where it is, and which bytes it has."""

    backend: str
    locator: str
    sha256: Sha256
    byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactReference(StoredArtifact):
    """The immutable pointer to an artifact, complete with what is in it.

    `sha256` and `byte_count` are of the object as stored. `resume_checkpoint` is a text of the
    producer, which is kept and never interpreted.
    """

    schema: TableSchema
    datasource_fingerprint: Sha256
    row_count: int
    media_type: MediaType
    resume_checkpoint: str | None = field(default=None, repr=False)

    def document(self) -> dict[str, object]:
        """Return the JSON form; a checkpoint that is not there has no key."""
        checkpoint = self.resume_checkpoint
        return {
            "format": FORMAT,
            "backend": self.backend,
            "locator": self.locator,
            "sha256": self.sha256,
            "schema": self.schema.document(),
            "datasource_fingerprint": self.datasource_fingerprint,
            "row_count": self.row_count,
            "byte_count": self.byte_count,
            "media_type": str(self.media_type),
            **({} if checkpoint is None else {"resume_checkpoint": checkpoint}),
        }

    @property
    def hash(self) -> Sha256:
        """Digest of the canonical bytes of the document."""
        return digest(FORMAT, canonical_bytes(self.document()))

    def is_of(self, tenant: str, datasource: str) -> bool:
        """Tell whether the reference was made for this datasource of this tenant."""
        expected = datasource_fingerprint(tenant, datasource, self.schema)
        return self.datasource_fingerprint == expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a file says of itself: its fields and its number of rows.

    A field is nullable where nulls are there, or are not counted; `with_nulls` are those of which
    it is certain. Of Parquet nobody has looked at the rows, and NaN in them, which is null, is not
    seen.
    """

    schema: TableSchema
    row_count: int
    with_nulls: frozenset[str]

    def contradicts(self, artifact: ArtifactReference) -> str | None:
        """Return what a reference says otherwise, in words; None where it may be right."""
        if self.row_count != artifact.row_count:
            return f"it has {self.row_count} rows"
        return self.contradicts_schema(artifact.schema)

    def contradicts_schema(self, schema: TableSchema) -> str | None:
        """Return what a schema says otherwise, in words; None where it may be right.

        That a field without nulls is nullable is no contradiction: a policy may declare it so.
        """
        if _types(self.schema) != _types(schema):
            return "it has other fields"
        if any(one.name in self.with_nulls and not one.nullable for one in schema.fields):
            return "it has nulls in fields that have none"
        return None


def _types(schema: TableSchema) -> list[tuple[str, DataType]]:
    return [(one.name, one.type) for one in schema.fields]


def datasource_fingerprint(tenant: str, datasource: str, schema: TableSchema) -> Sha256:
    """Return the digest of tenant, datasource id and schema, by which a reference is theirs."""
    parts = (tenant.encode(), datasource.encode(), canonical_bytes(schema.document()))
    return digest(DATASOURCE_DOMAIN, *parts)


def parse_artifact_reference(document: object) -> ArtifactReference:
    """Read a reference from JSON text, bytes or an already parsed object.

    It says nothing yet about an object: whether one is there, and is this one, the backend tells.

    Raises:
        InvalidPolicyError: with every problem at once.
    """
    return read_document(ARTIFACT_REFERENCE, document, what="artifact reference")


DIGEST = Text(expected="a SHA-256, 64 lower-case hexadecimal digits", pattern="[0-9a-f]{64}")
"""A digest as documents spell it."""
_COUNT = Whole(minimum=0, maximum=MAXIMUM_EXACT_INTEGER)

ARTIFACT_REFERENCE = Record(
    keys=(
        Key("format", Tag((FORMAT,), "invalid_value"), required=True, meaning="This format."),
        Key(
            "backend",
            Text(expected="the name of a backend", pattern=BACKEND.pattern),
            required=True,
            meaning="The backend that has the object.",
        ),
        Key(
            "locator",
            Text(
                expected="a locator of 1 to 200 characters, as a backend made it",
                pattern=r"[a-z0-9_-]+(?:/[a-z0-9_-]+)*",
                maximum=200,
            ),
            required=True,
            meaning="The object, as the backend named it; nobody else makes one.",
        ),
        Key("sha256", DIGEST, required=True, meaning="Of the object's bytes."),
        Key("schema", SCHEMA, required=True, meaning="The fields, in column order."),
        Key(
            "datasource_fingerprint",
            DIGEST,
            required=True,
            meaning="Digest of tenant, datasource id and schema.",
        ),
        Key("row_count", _COUNT, required=True, meaning="Rows in the object."),
        Key("byte_count", _COUNT, required=True, meaning="Bytes of the object."),
        Key("media_type", Choice(MediaType), required=True, meaning="How the object is written."),
        Key(
            "resume_checkpoint",
            Text(
                expected=f"a text of 1 to {MAXIMUM_RESUME_CHECKPOINT_BYTES} bytes in UTF-8",
                pattern=r"[\s\S]+",
                maximum_bytes=MAXIMUM_RESUME_CHECKPOINT_BYTES,
                allows_control_characters=True,
            ),
            meaning="Whatever the producer wants to find again; it is never interpreted.",
        ),
    ),
    build=lambda format, schema, **facts: ArtifactReference(  # noqa: A006, ARG005 - the key's name
        schema=TableSchema(schema), **facts
    ),
)
"""The keys of an artifact reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptObject:
    """What a backend lists: an artifact, or an upload that was never finished.

    `changed_at` is when it was last written to, by the clock of the store.
    """

    locator: str
    byte_count: int
    changed_at: datetime


def orphans(
    kept: Iterable[KeptObject], referenced: Collection[str], *, before: datetime
) -> tuple[KeptObject, ...]:
    """Return what no reference names and nobody has written to since `before`, oldest first.

    What was written at that very instant is not old enough. Only somebody who has looked at all
    references of the tenant can say this; nothing is deleted by it.
    """
    found = (one for one in kept if one.locator not in referenced and one.changed_at < before)
    return tuple(sorted(found, key=lambda one: (one.changed_at, one.locator)))


def tampered(locator: str, what: str) -> GuardError:
    """Return the refusal of an object that is not what its reference says."""
    return GuardError(
        f"artifact {locator} is not what its reference says: {what}; nothing of it is given out",
        code="artifact_tampered",
        locator=locator,
    )


def missing(locator: str) -> GuardError:
    """Return the refusal of a reference whose object is gone."""
    return GuardError(
        f"artifact {locator} is not in its store; nothing is given out",
        code="artifact_missing",
        locator=locator,
    )


def foreign(what: str) -> GuardError:
    """Return the refusal of a reference that does not belong where it is used."""
    return GuardError(
        f"the artifact reference does not belong here: {what}; nothing was looked for",
        code="artifact_foreign",
    )
