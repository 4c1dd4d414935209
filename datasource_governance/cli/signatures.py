"""Whose key signed for a grant or a key, as lists show it.

Source: SPEC section 17.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from datasource_governance.domain.attestation import Attestation

SHORT = 12
"""How many characters of an id tables show, and commands take in its place."""
FOUNDING = "the founding"


class Attested(Protocol):
    """What an administrator signed for; None is how the tenant was founded."""

    @property
    def attestation_id(self) -> str | None:
        """Id of the attestation."""
        ...


def attestation_ids(rows: Iterable[Attested]) -> set[str]:
    """Return the ids of all attestations that these rest on."""
    return {one.attestation_id for one in rows if one.attestation_id is not None}


def author_of(one: Attested, signed: Mapping[str, Attestation]) -> dict[str, str | None]:
    """Return who signed for it and with which key, as JSON."""
    if one.attestation_id is None:
        return {"author": None, "author_key": None}
    claims = signed[one.attestation_id].claims
    return {"author": claims.actor, "author_key": claims.key}


def author_cells(one: Attested, signed: Mapping[str, Attestation]) -> tuple[str, str]:
    """Return who signed for it and the beginning of the key, as cells of a table."""
    author = author_of(one, signed)
    return author["author"] or FOUNDING, (author["author_key"] or "")[:SHORT]
