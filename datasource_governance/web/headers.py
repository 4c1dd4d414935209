"""Headers of a request: read once each, and taken away before anything behind could trust them.

Source: SPEC section 16; threats T-03 and T-04.
"""

from collections.abc import Collection, Iterable

from starlette.types import Scope

Headers = Iterable[tuple[bytes, bytes]]

_CONTENT_TYPE = b"content-type"
_IDENTITY_NAMES = frozenset(
    {
        b"authorization",
        b"cookie",
        b"forwarded",
        b"proxy-authorization",
        b"remote-user",
        b"remote-groups",
        b"remote-email",
        b"remote-name",
        b"x-remote-user",
        b"x-real-ip",
        b"x-user",
        b"x-user-id",
    }
)
_IDENTITY_BEGINNINGS = (
    b"x-amzn-oidc-",
    b"x-auth-",
    b"x-authenticated-",
    b"x-authentik-",
    b"x-forwarded-",
    b"x-goog-",
    b"x-governance-",
    b"x-ms-client-principal",
    b"x-ms-token-",
    b"cf-access-",
)


def single_header(headers: Headers, name: str) -> str | None:
    """Return a header's value; None when it is missing, given twice or not ASCII.

    Two values for one name mean that something between the client and here was fooled.
    """
    wanted = name.lower().encode()
    values = [value for key, value in headers if key.lower() == wanted]
    if len(values) != 1 or not values[0].isascii():
        return None
    return values[0].decode().strip()


def without_identity(scope: Scope, also: Collection[str]) -> Scope:
    """Return a copy of a scope without credentials or headers that claim an identity.

    Nothing behind the gate reads an identity from a header, hence all that are known to carry one
    go, whoever sent them; `also` are those of this deployment. A name spelled with underscores goes
    like the one with hyphens: some servers take both for one.
    """
    names = _IDENTITY_NAMES | {name.lower().encode() for name in also}
    kept = [
        (key, value)
        for key, value in scope["headers"]
        if not _claims_identity(key.lower().replace(b"_", b"-"), names)
    ]
    return {**scope, "headers": kept}


def asked_in_the_body(scope: Scope) -> Scope:
    """Return a copy of a scope that says nothing but: the body is JSON, and all there is.

    What comes behind reads the media type by rules of its own and, where those do not find JSON,
    takes the request from the address instead, which nobody has looked at.
    """
    others = [(key, value) for key, value in scope["headers"] if key.lower() != _CONTENT_TYPE]
    headers = [*others, (_CONTENT_TYPE, b"application/json")]
    return {**scope, "headers": headers, "query_string": b""}


def is_unusable(headers: Headers, name: str) -> bool:
    """Tell whether a header is there in a form of which `single_header` makes nothing."""
    return has_header(headers, name) and single_header(headers, name) is None


def has_header(headers: Headers, name: str) -> bool:
    """Tell whether a header is there at all, even in a form that nobody can use."""
    wanted = name.lower().encode()
    return any(key.lower() == wanted for key, _ in headers)


def _claims_identity(name: bytes, names: Collection[bytes]) -> bool:
    return name in names or name.startswith(_IDENTITY_BEGINNINGS)
