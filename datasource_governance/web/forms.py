"""Forms of our own pages: what a browser posted, and that it was shown to that browser.

Source: SPEC section 16 (CSRF guard).
"""

import hmac
import secrets
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from datasource_governance.errors import GovernanceError
from datasource_governance.web.messages import read_body

MAXIMUM_FORM_BYTES = 8 * 1024
"""What a sign-in may hold, unless a page says that it takes more."""
_MAXIMUM_FIELDS = 20
_FORM_TOKEN = "form"  # noqa: S105 - the name of the token in the session

Session = MutableMapping[str, Any]


def form_token(session: Session) -> str:
    """Return the token that ties a form to the session of the browser it is shown in."""
    token: str = session.setdefault(_FORM_TOKEN, secrets.token_urlsafe(24))
    return token


def is_shown_here(session: Session, form: dict[str, str]) -> bool:
    """Tell whether a posted form was shown to the browser that posts it: its field `token`."""
    expected, given = str(session.get(_FORM_TOKEN) or ""), form.get("token", "")
    return bool(expected) and hmac.compare_digest(expected.encode(), given.encode())


async def read_form(request: Request, maximum: int = MAXIMUM_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a posted form; one that cannot be read has none.

    `maximum` is in bytes, as posted.
    """
    try:
        body = await read_body(request.receive, maximum)
        return dict(parse_qsl(body.decode("ascii"), max_num_fields=_MAXIMUM_FIELDS))
    except (GovernanceError, ValueError):
        return {}
