"""OpenID Connect tokens, verified with an issuer's published keys.

Source: SPEC section 16; RFC 7519, RFC 8725; OpenID Connect Core, section 3.1.3.7; threat T-04.
"""

import json
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from datasource_governance.domain.actor import ActorId, person
from datasource_governance.errors import GuardError, InvalidArgumentError
from datasource_governance.web.settings import TokenSettings

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

LEEWAY_SECONDS = 30
FRESH_SECONDS = 300.0
"""How long published keys are used before they are read again."""
PAUSE_SECONDS = 30.0
"""How long an unknown key, or a place that cannot be read, causes no further reading."""
STALE_SECONDS = 3600.0
"""How long keys are used although they can no longer be read."""
MAXIMUM_KEYS_BYTES = 1024 * 1024
_TIMEOUT_SECONDS = 5
_KEY_TYPES = frozenset({"RSA", "EC", "OKP"})


class _Signed(Protocol):
    def headers(self) -> dict[str, object]: ...


class PublishedKeys:
    """An issuer's JWK set, from a file or an address; asymmetric keys only."""

    def __init__(self, place: str, clock: Callable[[], float]) -> None:
        """Take the place, and a clock in seconds that never jumps. Nothing is read yet."""
        self._place = place
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._read_at = self._tried_at = float("-inf")

    def for_token(self, token: _Signed) -> "KeySet":
        """Return the keys that may have signed a token; an unknown key id makes them read again."""
        with self._lock:
            now = self._clock()
            is_old = now - self._read_at > FRESH_SECONDS
            is_unknown = token.headers().get("kid") not in (None, *self._key_ids())
            if (is_old or is_unknown) and now - self._tried_at > PAUSE_SECONDS:
                self._tried_at = now
                self._renew(now)
            if self._keys is None or now - self._read_at > STALE_SECONDS:
                raise GuardError("the issuer's keys cannot be read", code="not_authorised")
            return self._keys

    def _key_ids(self) -> list[str | None]:
        return [key.kid for key in self._keys] if self._keys else []

    def _renew(self, now: float) -> None:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            published = json.loads(_read(self._place))
            # A shared secret among published keys would let whoever reads them sign.
            keys = [key for key in published["keys"] if key.get("kty") in _KEY_TYPES]
            self._keys = KeySet.import_key_set({"keys": keys})
            self._read_at = now
        except (OSError, ValueError, TypeError, KeyError, AttributeError, JoseError):
            pass  # what was read before is used until it is stale


class TokenVerifier:
    """Tells whom a token names, if everything about it is right."""

    def __init__(
        self, settings: TokenSettings, clock: Callable[[], float], now: Callable[[], float]
    ) -> None:
        """Take two clocks in seconds: `clock` never jumps, `now` counts from the epoch."""
        self._settings = settings
        self._keys = PublishedKeys(settings.keys, clock)
        self._now = now

    def actor(self, token: str) -> ActorId:
        """Return the actor that a token names.

        Signature and algorithm, issuer, audience, expiry, not-before and the actor's claim must
        hold, within half a minute for clocks that differ.

        Raises:
            GuardError: code `not_authorised`; it tells which kind of check failed, and no value.
        """
        try:
            return self._verified(token)
        except Exception as error:  # noqa: BLE001 - whatever hostile bytes provoke is a refusal
            kind = type(error).__name__
        raise GuardError(f"the token is refused: {kind}", code="not_authorised")

    def _verified(self, token: str) -> ActorId:
        from joserfc import jwt

        settings = self._settings
        decoded = jwt.decode(
            token,
            self._keys.for_token,
            algorithms=sorted(settings.algorithms),
        )
        jwt.JWTClaimsRegistry(
            now=int(self._now()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.audience},
            exp={"essential": True},
        ).validate(decoded.claims)
        claimed = decoded.claims[settings.claim]
        # An issuer may know two people whose names a principal's spelling would make one.
        if not isinstance(claimed, str) or not claimed.isascii() or claimed != claimed.strip():
            raise InvalidArgumentError("the claim that names the actor is no plain text")
        if settings.claim == "email" and decoded.claims.get("email_verified") is not True:
            raise InvalidArgumentError("the issuer has not verified the address")
        return person(claimed)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _read(place: str) -> bytes:
    if not place.startswith(("https:", "http:")):
        return Path(place).read_bytes()
    opener = urllib.request.build_opener(_NoRedirects)
    with opener.open(place, timeout=_TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read(MAXIMUM_KEYS_BYTES + 1)
    if len(content) > MAXIMUM_KEYS_BYTES:
        raise ValueError
    return content
