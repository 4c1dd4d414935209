"""The few pages of the gate: plain HTML that needs no script and reads well on a phone.

Source: SPEC section 16.
"""

import base64
import hashlib
from html import escape

from starlette.responses import HTMLResponse

from datasource_governance.web.identity import Identity

SIGN_IN = "/signin"
SIGN_OUT = "/signout"

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5 }
body { max-width: 26rem; margin: 10vh auto; padding: 0 1rem }
label { display: block; margin-top: 1rem; font-weight: 600 }
input, button { font: inherit; box-sizing: border-box; width: 100%; padding: .6rem;
  border: 1px solid; border-radius: .4rem }
button { margin-top: 1.5rem; font-weight: 600; cursor: pointer }
:focus-visible { outline: 3px solid #2563eb; outline-offset: 2px }
[role=alert] { border-left: .3rem solid #dc2626; padding: .3rem .8rem }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; form-action 'self'"


def page(title: str, content: str, status: int = 200) -> HTMLResponse:
    """Return a whole page; `content` is HTML, `title` is text."""
    document = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{content}
</main>
</body>
</html>
"""
    return HTMLResponse(document, status, {"Content-Security-Policy": _POLICY})


def sign_in_page(
    token: str, destination: str, *, problem: str | None = None, status: int = 200
) -> HTMLResponse:
    """Return the sign-in form; `token` ties it to the session of the browser it is shown in."""
    alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return page(
        "Sign in",
        f"""{alert}
<form method="post" action="{SIGN_IN}">
<input type="hidden" name="token" value="{escape(token)}">
<input type="hidden" name="next" value="{escape(destination)}">
<label for="name">Account</label>
<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false"
 maxlength="128" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Sign in</button>
</form>""",
        status,
    )


def signed_in_page(identity: Identity, token: str) -> HTMLResponse:
    """Return who is signed in, with a way on and a way out."""
    return page(
        "Signed in",
        f"""<p>You are <strong>{escape(identity.actor)}</strong>,
authenticated by {escape(identity.authentication)}.</p>
<p><a href="/">Go to Dagster</a></p>
{_sign_out(token)}""",
    )


def refusal_page(reason: str, status: int) -> HTMLResponse:
    """Return one plain sentence that says what is refused and what would help."""
    return page(
        "Not allowed",
        f"""<p role="alert">{escape(reason)}</p>
<p><a href="{SIGN_IN}">Who am I, and sign out</a></p>""",
        status,
    )


def _sign_out(token: str) -> str:
    return f"""<form method="post" action="{SIGN_OUT}">
<input type="hidden" name="token" value="{escape(token)}">
<button>Sign out</button>
</form>"""
