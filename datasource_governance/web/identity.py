"""Who makes a request: the one place where that is decided.

Source: SPEC sections 7 and 16; threats T-03, T-04 and T-32.
"""

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from starlette.types import Scope

from datasource_governance.domain.actor import ActorId, person
from datasource_governance.errors import GovernanceError, InvalidArgumentError
from datasource_governance.web.accounts import Account, Accounts
from datasource_governance.web.actor_tokens import ActorTokens, is_actor_token
from datasource_governance.web.audit import record
from datasource_governance.web.headers import has_header, is_unusable, single_header
from datasource_governance.web.settings import ProxySettings, WebSettings
from datasource_governance.web.tokens import TokenVerifier

_BEARER = "bearer "
_AUTHORIZATION = "authorization"


class Authentication(StrEnum):
    """How somebody was authenticated."""

    ACCOUNT = "account"
    KEY = "key"
    PROXY = "proxy"
    TOKEN = "token"  # noqa: S105 - the name of a way, not a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An authenticated actor. `is_bearer`: a client added its token itself, as no browser does."""

    actor: ActorId
    authentication: Authentication
    is_bearer: bool = False


class Authenticator:
    """Tells who makes a request; the first way that claims somebody decides alone."""

    def __init__(
        self,
        settings: WebSettings,
        accounts: Accounts,
        actor_tokens: ActorTokens,
        verifier: TokenVerifier | None,
        now: Callable[[], float],
    ) -> None:
        """Take `now`, a clock in seconds since the epoch."""
        self._settings = settings
        self._accounts = accounts
        self._actor_tokens = actor_tokens
        self._verifier = verifier
        self._now = now

    @property
    def own_headers(self) -> frozenset[str]:
        """The headers of this deployment that claim an identity or hold a secret."""
        proxy, token = self._settings.proxy, self._settings.token
        named = (proxy.actor_header, proxy.secret_header) if proxy else ()
        return frozenset((*named, *((token.header,) if token else ())))

    def identify(self, scope: Scope) -> Identity | None:
        """Return who makes a request, or None for nobody.

        A claim that does not hold is nobody, whatever other claims there are: neither an expired
        token nor a proxy's unreadable name falls back to a cookie. Whose token it is, an actor's
        own or an issuer's, it says itself, and only that is tried.

        Raises:
            GuardError: when an actor's own token does not hold; its sender reads why.
            ServiceUnavailableError: when the accounts cannot be read or the database not be asked.
        """
        proxy, headers = self._settings.proxy, scope["headers"]
        if proxy is not None and _is_proxied(proxy, scope):
            return self._from_proxy(proxy, scope)
        if any(is_unusable(headers, name) for name in self._token_headers):
            record("token_refused", reason="its header cannot be read")
            return None
        bearer = _bearer(scope)
        if bearer is not None and is_actor_token(bearer):
            actor = self._actor_tokens.actor(bearer)
            return Identity(actor=actor, authentication=Authentication.KEY, is_bearer=True)
        token, is_bearer = self._issued(scope, bearer)
        if token is not None:
            return self._from_token(token, is_bearer=is_bearer)
        return self._from_session(scope.get("session") or {})

    @property
    def _token_headers(self) -> frozenset[str]:
        """The headers that may hold a token."""
        token = self._settings.token
        return frozenset({_AUTHORIZATION, *((token.header,) if token else ())})

    def _from_proxy(self, proxy: ProxySettings, scope: Scope) -> Identity | None:
        secret = single_header(scope["headers"], proxy.secret_header) or ""
        if not hmac.compare_digest(secret, proxy.secret):
            record("proxy_refused", reason="secret", peer=peer(scope))
            return None
        return _known(single_header(scope["headers"], proxy.actor_header) or "")

    def _issued(self, scope: Scope, bearer: str | None) -> tuple[str | None, bool]:
        """Return what is to be an issuer's token, and whether it is a bearer token."""
        settings = self._settings.token
        if settings is None:
            return None, False
        if settings.header.lower() != _AUTHORIZATION:
            return single_header(scope["headers"], settings.header), False
        return bearer, bearer is not None

    def _from_token(self, token: str, *, is_bearer: bool) -> Identity | None:
        if self._verifier is None:
            return None
        try:
            actor = self._verifier.actor(token)
        except GovernanceError as error:
            record("token_refused", reason=str(error))
            return None
        return Identity(actor=actor, authentication=Authentication.TOKEN, is_bearer=is_bearer)

    def _from_session(self, session: Mapping[str, object]) -> Identity | None:
        name, fingerprint, began = (session.get(key) for key in ("account", "password", "began"))
        if not isinstance(name, str) or not isinstance(began, int):
            return None
        age = self._now() - began
        account = self._accounts.find(name)
        # A changed password or a removed account ends every sign-in that was made before.
        if account is None or account.fingerprint != fingerprint:
            return None
        if not 0 <= age < self._settings.session_hours * 3600:
            return None
        return Identity(actor=account.actor, authentication=Authentication.ACCOUNT)


def session_of(account: Account, now: float) -> dict[str, object]:
    """Return what a session keeps of a sign-in: nothing that grants anything without its key."""
    return {"account": account.name, "password": account.fingerprint, "began": int(now)}


def peer(scope: Scope) -> str | None:
    """Return the address that a connection comes from."""
    client = scope.get("client")
    return str(client[0]) if client else None


def _is_proxied(proxy: ProxySettings, scope: Scope) -> bool:
    """Tell whether a request comes from where the proxy is and says so."""
    said = (proxy.actor_header, proxy.secret_header)
    return _is_peer(proxy, scope) and any(has_header(scope["headers"], name) for name in said)


def _bearer(scope: Scope) -> str | None:
    value = single_header(scope["headers"], _AUTHORIZATION)
    if value is None or not value.lower().startswith(_BEARER):
        return None
    return value[len(_BEARER) :].strip()


def _known(claimed: str) -> Identity | None:
    try:
        return Identity(actor=person(claimed), authentication=Authentication.PROXY)
    except InvalidArgumentError:
        record("proxy_refused", reason="actor")
        return None


def _is_peer(proxy: ProxySettings, scope: Scope) -> bool:
    try:
        address = ipaddress.ip_address(peer(scope) or "")
    except ValueError:
        return False
    return any(address in network for network in proxy.peers)
