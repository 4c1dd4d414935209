"""The signer's side: Ed25519 keys in files, and what is signed with them.

A private key is a PKCS #8 PEM file of mode 0600 named after its actor; nothing but its owner's
command line needs it. The server knows public keys only.

Source: SPEC sections 7 and 16 (`key create`); RFC 8032, RFC 5958; RFC 7519 and 8725 for tokens.
"""

import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from datasource_governance import private_files
from datasource_governance.domain.actor import ActorId, person
from datasource_governance.domain.attestation import Action, Attestation, Claims, key_id
from datasource_governance.domain.canonical import Json, Sha256
from datasource_governance.errors import InvalidArgumentError

TOKEN_TYPE = "datasource-governance-actor+jwt"  # noqa: S105 - a type that everybody may know
"""The `typ` of a token that an actor signed; it tells such tokens from an issuer's."""
TOKEN_ALGORITHM = "Ed25519"  # noqa: S105 - as above
TOKEN_LIFETIME = timedelta(minutes=5)
"""How long a token holds at most."""


def create_key(directory: Path, actor: str) -> Path:
    """Create an actor's key pair: `<actor>.pem` (private, 0600) and `<actor>.pub.pem`.

    Raises:
        InvalidArgumentError: when the actor has a key there already; nothing is overwritten.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    path = _private_path(directory, actor)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    if not private_files.create(path, pem):
        raise InvalidArgumentError(f"{path} exists already; a key is never overwritten")
    public_path(directory, actor).write_bytes(
        private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return path


def public_path(directory: Path, actor: str) -> Path:
    """Return where an actor's public key is."""
    return directory / f"{person(actor)}.pub.pem"


def _private_path(directory: Path, actor: str) -> Path:
    return directory / f"{person(actor)}.pem"


def read_public_key(path: Path) -> bytes:
    """Return the 32 raw bytes of a public key in a PEM file.

    Raises:
        InvalidArgumentError: when the file is not a readable Ed25519 public key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except (OSError, ValueError):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgumentError(
            f"{path} is not an Ed25519 public key in PEM form; key create makes one"
        )
    return key.public_bytes_raw()


class Signer:
    """One actor's private key, ready to attest."""

    def __init__(self, directory: Path, actor: str, tenant: str) -> None:
        """Read the actor's key file.

        Raises:
            InvalidArgumentError: when there is none or it is not an Ed25519 key.
        """
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = _private_path(directory, actor)
        try:
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError, TypeError):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidArgumentError(
                f"{path} is no Ed25519 private key; make one: key create {actor}"
            )
        self._private = private
        self._tenant = tenant
        self.actor: ActorId = person(actor)
        self.public_key: bytes = private.public_key().public_bytes_raw()

    @property
    def key(self) -> Sha256:
        """Id of the public key."""
        return key_id(self.public_key)

    def sign(self, data: bytes) -> bytes:
        """Return the Ed25519 signature over exactly these bytes."""
        return self._private.sign(data)

    def attest(
        self, action: Action, subject: Mapping[str, Json], *, actor: str | None = None
    ) -> Attestation:
        """Sign that this actor does `action` to `subject`, once.

        `actor` is somebody else only for a gateway key, which the server checks.
        """
        claims = Claims(
            tenant=self._tenant,
            actor=self.actor if actor is None else person(actor),
            key=self.key,
            action=action,
            subject=dict(subject),
            # What the signer's clock says; no decision depends on it, the database's clock decides.
            issued_at=datetime.now(UTC).isoformat(),  # noqa: TID251
            nonce=secrets.token_hex(16),
        )
        return Attestation(claims=claims, signature=self.sign(claims.signed_bytes()))

    def bearer_token(self, audience: str, lifetime: timedelta = TOKEN_LIFETIME) -> str:
        """Return a token by which one governed webserver knows this actor for a short time.

        `audience` is the webserver's origin, such as `https://governance.example`: at any other the
        token is worthless. It is for GraphQL alone, and no attestation can be made from it. A
        webserver refuses what holds for longer than `TOKEN_LIFETIME`.
        """
        from joserfc import jwt
        from joserfc.jwk import OKPKey

        issued_at = int(time.time())
        claims: dict[str, object] = {
            "iss": self.actor,
            "sub": self.actor,
            "aud": audience,
            "iat": issued_at,
            "exp": issued_at + int(lifetime.total_seconds()),
            "jti": secrets.token_hex(16),
        }
        header = {"alg": TOKEN_ALGORITHM, "kid": self.key, "typ": TOKEN_TYPE}
        key = OKPKey.import_key(self._private)
        return jwt.encode(header, claims, key, algorithms=[TOKEN_ALGORITHM])
