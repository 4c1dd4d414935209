"""Our own pages: templates that need no script, read well on a phone and escape what they show.

Source: SPEC section 16.
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from datasource_governance.web.identity import Identity

SIGN_IN = "/signin"
SIGN_OUT = "/signout"
_REFUSED = "Not allowed"
_TITLES = {404: "Not found", 503: "Not available"}

_TEMPLATES = Environment(
    loader=PackageLoader("datasource_governance.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_STYLE = _TEMPLATES.get_template("style.css").render()
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; form-action 'self'"


def _instant(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M") if moment else ""


_TEMPLATES.filters["instant"] = _instant
_TEMPLATES.globals.update(style=_STYLE, sign_in=SIGN_IN, sign_out=SIGN_OUT)


def page(template: str, facts: Mapping[str, object], status: int = 200) -> HTMLResponse:
    """Return a whole page: a template of this package filled in with facts, which it escapes."""
    content = _TEMPLATES.get_template(template).render(facts)
    return HTMLResponse(content, status, {"Content-Security-Policy": _POLICY})


def sign_in_page(
    token: str, destination: str, *, problem: str | None = None, status: int = 200
) -> HTMLResponse:
    """Return the sign-in form; `token` ties it to the session of the browser it is shown in."""
    facts = {"token": token, "destination": destination, "problem": problem}
    return page("sign_in.html", facts, status)


def signed_in_page(identity: Identity, token: str) -> HTMLResponse:
    """Return who is signed in, with a way on and a way out."""
    return page("signed_in.html", {"identity": identity, "token": token})


def refusal_page(reason: str, status: int) -> HTMLResponse:
    """Return one plain sentence that says what is refused and what would help."""
    facts = {"title": _TITLES.get(status, _REFUSED), "problem": reason}
    return page("refusal.html", facts, status)
