"""Tokens that actors sign with their own registered keys, as the command line does.

The server needs no secret for them: it looks the public key up where attestations are verified,
too. Whether a token is one of these is told by its `typ` before anything is verified.

Source: SPEC sections 7 and 16; RFC 7519, RFC 8725 (3.11); threat T-04.
"""

import re
from collections.abc import Callable, Collection

from datasource_governance.domain.actor import ActorId
from datasource_governance.domain.attestation import ActorKey, KeyKind
from datasource_governance.domain.canonical import Sha256
from datasource_governance.errors import GuardError
from datasource_governance.ports import UnitOfWork
from datasource_governance.signing import TOKEN_ALGORITHM, TOKEN_LIFETIME, TOKEN_TYPE
from datasource_governance.web.tokens import LEEWAY_SECONDS

_KEY_ID = re.compile(r"[0-9a-f]{64}")


class ActorTokens:
    """Tells which actor signed a token, if everything about it is right."""

    def __init__(
        self,
        begin: Callable[[], UnitOfWork],
        audiences: Collection[str],
        now: Callable[[], float],
    ) -> None:
        """Take what makes units of work, this server's origins, and a clock since the epoch."""
        self._begin = begin
        self._audiences = sorted(audiences)
        self._now = now

    def actor(self, token: str) -> ActorId:
        """Return the actor that signed a token for this server.

        The key must be registered as an actor key and not revoked, its owner be issuer and subject,
        the audience be this server, and the token hold now and for at most `TOKEN_LIFETIME`, within
        half a minute for clocks that differ.

        Raises:
            GuardError: code `not_authorised`; it tells which kind of check failed, and no value.
            ServiceUnavailableError: when the database cannot be asked.
        """
        key = self._key(_header(token, "kid"))
        if key is None:
            raise _refusal("unknown key")
        try:
            _verify(token, key, self._audiences, self._now())
        except Exception as error:  # noqa: BLE001 - whatever hostile bytes provoke is a refusal
            kind = " ".join((type(error).__name__, str(getattr(error, "claim", "")))).strip()
        else:
            return key.actor
        raise _refusal(kind)

    def _key(self, key_id: object) -> ActorKey | None:
        if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
            return None
        with self._begin() as work:
            key = work.authority.key(Sha256(key_id))
        is_live = key is not None and key.kind is KeyKind.ACTOR and key.revoked_at is None
        return key if is_live else None


def is_actor_token(token: str) -> bool:
    """Tell whether a token says that an actor signed it; nothing of it is verified yet."""
    return _header(token, "typ") == TOKEN_TYPE


def _header(token: str, name: str) -> object:
    from joserfc import jws

    try:
        return jws.extract_compact(token.encode()).headers().get(name)
    except Exception:  # noqa: BLE001 - whatever hostile bytes provoke means: it says nothing
        return None


def _verify(token: str, key: ActorKey, audiences: list[str], now: float) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from joserfc import jwt
    from joserfc.errors import InvalidClaimError
    from joserfc.jwk import OKPKey

    public_key = OKPKey.import_key(Ed25519PublicKey.from_public_bytes(key.public_key))
    decoded = jwt.decode(token, public_key, algorithms=[TOKEN_ALGORITHM])
    jwt.JWTClaimsRegistry(
        now=int(now),
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": key.actor},
        sub={"essential": True, "value": key.actor},
        aud={"essential": True, "values": audiences},
        iat={"essential": True},
        exp={"essential": True},
        jti={"essential": True},
    ).validate(decoded.claims)
    if decoded.claims["exp"] - decoded.claims["iat"] > TOKEN_LIFETIME.total_seconds():
        raise InvalidClaimError("exp")


def _refusal(kind: str) -> GuardError:
    return GuardError(
        f"the token is refused ({kind}): its key must be registered here and not revoked, it must "
        "be for the address by which browsers reach this server, and both clocks must agree",
        code="not_authorised",
    )
