"""Signing in and out, as a browser does it."""

import base64
import json
import time

import pytest

from datasource_governance.domain.actor import Role
from datasource_governance.web.sign_in import local_path
from datasource_governance_tests.web.serving import PASSWORD, unique_actor, with_accounts

pytestmark = pytest.mark.postgres
HOUR = 3600


def test_signing_in_leads_to_where_one_wanted_to_go(governed):
    client = governed.client()
    wanted = client.get("/assets?x=1&y=2").headers["Location"]
    page = client.get(wanted).text

    answer = client.sign_in("viewer", next="/assets?x=1&y=2")

    assert 'value="/assets?x=1&amp;y=2"' in page
    assert (answer.status, answer.headers["Location"]) == (303, "/assets?x=1&y=2")
    assert client.get(answer.headers["Location"]).status == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(governed):
    client = governed.client()

    cookie = client.sign_in("viewer").headers["Set-Cookie"].lower()

    assert cookie.startswith("governance=")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert f"max-age={12 * HOUR}" in cookie
    assert "secure" not in cookie  # this one is on a loopback address


@pytest.mark.parametrize("name", ["VIEWER", " viewer ", "\uff36iewer"])
def test_any_spelling_of_a_name_is_the_same_account(governed, name):
    assert governed.client().sign_in(name).status == 303


@pytest.mark.parametrize(
    ("name", "password"),
    [("steward", "wrong password"), ("unknown", PASSWORD), ("", ""), ("a\nb", PASSWORD)],
)
def test_wrong_names_and_passwords_get_one_and_the_same_answer(governed, name, password):
    client = governed.client()

    answer = client.sign_in(name, password)

    assert answer.status == 401
    assert "do not belong together" in answer.text
    assert client.get("/", accept="*/*").status == 401


def test_guessing_is_slowed_down_per_account(web_world, governed):
    name = unique_actor()
    web_world.admit(name, Role.VIEWER)
    with_accounts(governed.settings, name)
    client = governed.client()
    statuses = [client.sign_in(name, "wrong password").status for _ in range(7)]

    paused = client.sign_in(name)

    assert statuses[:5] == [401] * 5
    assert 429 in statuses
    assert paused.status == 429
    assert int(paused.headers["Retry-After"]) >= 1
    assert governed.client().sign_in("viewer").status == 303
    time.sleep(2.1)
    assert client.sign_in(name).status == 303


@pytest.mark.parametrize("token", ["", "forged"])
def test_a_form_that_was_shown_to_another_browser_signs_nobody_in(governed, token):
    client = governed.client()
    another = governed.client().form_token()
    client.form_token()

    for given in (token, another):
        fields = {"token": given, "name": "viewer", "password": PASSWORD}
        answer = client.post_form("/signin", fields)

        assert answer.status == 403
        assert "too old" in answer.text


def test_without_a_cookie_the_form_signs_nobody_in(governed):
    client = governed.client()
    token = client.form_token()
    client.cookies.clear()

    fields = {"token": token, "name": "viewer", "password": PASSWORD}

    assert client.post_form("/signin", fields).status == 403


@pytest.mark.parametrize("body", [b"\xff", b"a=1&" * 11, b"x" * 9000])
def test_a_form_of_another_form_signs_nobody_in(governed, body):
    client = governed.client()
    client.form_token()

    assert client.fetch("POST", "/signin", body).status == 403


def test_signing_out_ends_the_session_of_the_browser(governed):
    client = governed.client("viewer")
    page = client.get("/signin")
    assert "You are <strong>viewer</strong>" in page.text

    answer = client.post_form("/signout", {"token": client.form_token()})

    assert (answer.status, answer.headers["Location"]) == (303, "/signin")
    assert client.get("/", accept="*/*").status == 401


def test_a_foreign_form_signs_nobody_out(governed):
    client = governed.client("viewer")

    client.post_form("/signout", {"token": "forged"})

    assert client.get("/").status == 200


def test_the_page_needs_no_script_and_is_not_stored(governed):
    answer = governed.client().get("/signin")

    assert answer.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in answer.headers.get_all("Content-Security-Policy")[0]
    assert "<script" not in answer.text
    for part in ('name="viewport"', 'lang="en"', 'for="name"', 'for="password"', "autofocus"):
        assert part in answer.text
    assert 'autocomplete="current-password"' in answer.text


def session_of(governed) -> dict[str, object]:
    signed = governed.client("viewer").cookies["governance"]
    return json.loads(base64.b64decode(signed.rpartition(".")[0].rpartition(".")[0]))


def payload(session: dict[str, object]) -> bytes:
    return base64.b64encode(json.dumps(session).encode())


def status_with(governed, cookie: str) -> int:
    client = governed.client()
    client.cookies["governance"] = cookie
    return client.get("/", accept="*/*").status


def test_a_session_that_is_signed_with_the_servers_key_holds(governed):
    assert status_with(governed, governed.forged_cookie(payload(session_of(governed)))) == 200


def test_a_session_holds_neither_password_nor_hash(governed):
    session = session_of(governed)

    assert set(session) == {"account", "password", "began"}
    assert len(session["password"]) == 32
    assert session["password"] not in governed.settings.accounts_file.read_text()


@pytest.mark.parametrize("key", ["", "x", "secret"])
def test_a_forged_session_is_nobodys(governed, key):
    forged = payload(session_of(governed) | {"account": "administrator"})

    assert status_with(governed, governed.forged_cookie(forged, key=key or "other")) == 401


def test_a_session_changed_anywhere_is_nobodys(governed):
    signed = governed.client("viewer").cookies["governance"]

    for position in range(0, len(signed) - 1, 9):
        changed = "A" if signed[position] != "A" else "B"
        assert status_with(governed, signed[:position] + changed + signed[position + 1 :]) == 401


def test_an_unsigned_session_is_nobodys(governed):
    assert status_with(governed, payload(session_of(governed)).decode()) == 401


@pytest.mark.parametrize("age", [12 * HOUR + 1, 400 * 24 * HOUR])
def test_a_cookie_that_is_too_old_is_nobodys(governed, age):
    cookie = governed.forged_cookie(payload(session_of(governed)), age=age)

    assert status_with(governed, cookie) == 401


def test_a_sign_in_that_is_too_old_is_nobodys_however_new_its_cookie(governed):
    session = session_of(governed)
    session["began"] -= 12 * HOUR

    assert status_with(governed, governed.forged_cookie(payload(session))) == 401


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/", "/"),
        ("/assets?x=1#y", "/assets?x=1#y"),
        ("", "/"),
        ("assets", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("/\t/evil.example", "/"),
        ("http://[", "/"),
        (" /a", "/"),
    ],
)
def test_nobody_is_led_elsewhere(text, path):
    assert local_path(text) == path
