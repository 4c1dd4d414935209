"""Headers that keep browsers from doing with our pages what we do not want.

Source: SPEC section 16; OWASP Secure Headers; CSP Level 3.
"""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A second policy only narrows the first, and Dagster's own has one that its scripts need.
_POLICY = "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
_HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: browsers would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATIC = ("/_next/", "/vendor/", "/favicon")


class SecurityHeaders:
    """Adds the headers to every answer; nothing but static files may be stored by anyone."""

    def __init__(self, app: ASGIApp, *, is_secure: bool) -> None:
        self._app = app
        self._is_secure = is_secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, with the headers in the answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                self._add(MutableHeaders(scope=message), scope["path"])
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _add(self, headers: MutableHeaders, path: str) -> None:
        headers.append("Content-Security-Policy", _POLICY)
        for name, value in _HEADERS.items():
            headers[name] = value
        if not path.startswith(_STATIC):
            headers["Cache-Control"] = "no-store"
        if self._is_secure:
            headers["Strict-Transport-Security"] = "max-age=31536000"
