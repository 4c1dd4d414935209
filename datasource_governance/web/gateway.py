"""The webserver's own key, which attests for whoever the gate authenticated.

The private key is a file that only the webserver reads; an administrator registers the public one.

Source: SPEC section 7 ("gateway key").
"""

from collections.abc import Mapping
from pathlib import Path

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.attestation import Action, Attestation
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.signing import Signer, create_key, public_path

GATEWAY = "gateway"
"""The actor that owns the key; it holds no role and never acts for itself."""


class Gateway:
    """Signs for others. Nothing that it signs is accepted before its key is registered."""

    def __init__(self, directory: Path, tenant: str) -> None:
        """Read the key below a directory; it is made on the first start.

        Raises:
            InvalidArgumentError: when the key is there and cannot be used.
        """
        self.public_key_file = public_path(directory, GATEWAY)
        if not self.public_key_file.exists():
            create_key(directory, GATEWAY)
        self._signer = Signer(directory, GATEWAY, tenant)

    @property
    def key(self) -> Sha256:
        """Id of the public key."""
        return self._signer.key

    def attest(self, actor: ActorId, action: Action, subject: Mapping[str, Json]) -> Attestation:
        """Sign that an authenticated actor does `action` to `subject`, once."""
        return self._signer.attest(action, subject, actor=actor)
