"""Sign in with a local account, and out.

Source: SPEC section 16.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

import anyio
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from datasource_governance.web.accounts import Account, Accounts, canonical_name
from datasource_governance.web.attempts import Attempts
from datasource_governance.web.audit import record
from datasource_governance.web.forms import form_token, is_shown_here, read_form
from datasource_governance.web.identity import Authenticator, peer, session_of
from datasource_governance.web.pages import SIGN_IN, SIGN_OUT, sign_in_page, signed_in_page

# Each verification takes 64 MiB and a processor for tens of milliseconds.
_VERIFICATIONS_AT_ONCE = 2
_WRONG = "That account and password do not belong together."


class SignIn:
    """The routes of signing in and out.

    The gate has checked that a posted form comes from a page of ours; the token in it says that it
    was shown to the same browser.
    """

    def __init__(
        self,
        accounts: Accounts,
        authenticator: Authenticator,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        """Take two clocks in seconds: `clock` never jumps, `now` counts from the epoch."""
        self._accounts = accounts
        self._authenticator = authenticator
        self._clock = clock
        self._now = now
        self._attempts = Attempts()
        self._limiter = CapacityLimiter(_VERIFICATIONS_AT_ONCE)

    @property
    def routes(self) -> list[Route]:
        """The routes, to be put before Dagster's."""
        return [
            Route(SIGN_IN, self.show, methods=["GET"]),
            Route(SIGN_IN, self.sign_in, methods=["POST"]),
            Route(SIGN_OUT, self.sign_out, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Show the form, or who is signed in."""
        identity = request.state.identity
        token = form_token(request.session)
        if identity is not None:
            return signed_in_page(identity, token)
        return sign_in_page(token, local_path(request.query_params.get("next", "")))

    async def sign_in(self, request: Request) -> Response:
        """Begin a session, or show the form again with what is wrong."""
        form = await read_form(request)
        destination = local_path(form.get("next", ""))
        if not is_shown_here(request.session, form):
            problem = "This form was too old. Please try again."
            return self._again(request, destination, problem, 403)
        name = canonical_name(form.get("name", ""))
        pause = self._attempts.pause(name, self._clock())
        if pause > 0:
            record("sign_in_paused", account=name, peer=peer(request.scope))
            problem = f"Too many attempts. Please wait {pause:.0f} seconds and try again."
            answer = self._again(request, destination, problem, 429)
            answer.headers["Retry-After"] = str(int(pause) + 1)
            return answer
        account = await self._verified(name, form.get("password", ""))
        if account is None:
            record("sign_in_failed", account=name, peer=peer(request.scope))
            return self._again(request, destination, _WRONG, 401)
        request.session.clear()
        request.session.update(session_of(account, self._now()))
        record("signed_in", account=name, actor=account.actor, peer=peer(request.scope))
        return RedirectResponse(destination, 303)

    async def sign_out(self, request: Request) -> Response:
        """End the session of this browser."""
        form = await read_form(request)
        if is_shown_here(request.session, form):
            request.session.clear()
            record("signed_out", peer=peer(request.scope))
        return RedirectResponse(SIGN_IN, 303)

    async def _verified(self, name: str, password: str) -> Account | None:
        # Counted before the work, so that many attempts at once are not all considered.
        self._attempts.failed(name, self._clock())
        verify = self._accounts.verify
        account = await anyio.to_thread.run_sync(verify, name, password, limiter=self._limiter)
        if account is not None:
            self._attempts.succeeded(name)
        return account

    def _again(self, request: Request, destination: str, problem: str, status: int) -> Response:
        token = form_token(request.session)
        return sign_in_page(token, destination, problem=problem, status=status)


def local_path(text: str) -> str:
    """Return where to go after sign-in: a path on this server, else its first page."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "/"
    is_local = not parts.scheme and not parts.netloc and text.isprintable()
    # Browsers read a backslash as a slash, and two slashes as the beginning of a host.
    return text if is_local and text.startswith("/") and text[1:2] not in ("/", "\\") else "/"
