"""The CSRF guard, as a table."""

import pytest

from datasource_governance.web.origins import is_from

OURS = "https://governance.example"


@pytest.mark.parametrize(
    ("site", "origin", "cookie", "bearer"),
    [
        ("same-origin", OURS, True, True),
        ("same-origin", None, True, True),
        (None, OURS, True, True),
        (None, None, False, True),
        ("cross-site", OURS, False, False),
        ("same-site", OURS, False, False),
        ("none", OURS, False, False),
        ("none", None, False, False),
        ("", OURS, False, False),
        ("cross-site", None, False, False),
        ("cross-site", "https://evil.example", False, False),
        ("same-origin", "https://evil.example", False, False),
        (None, "https://evil.example", False, False),
        (None, "null", False, False),
        (None, "", False, False),
        (None, "http://governance.example", False, False),
        (None, f"{OURS}:8443", False, False),
        (None, f"{OURS}.evil.example", False, False),
        (None, f"{OURS}/", False, False),
        (None, "https://GOVERNANCE.example", False, False),
    ],
)
def test_request_is_from_a_page_of_ours(site, origin, cookie, bearer):
    given = {b"sec-fetch-site": site, b"origin": origin}
    headers = [(name, value.encode()) for name, value in given.items() if value is not None]

    assert is_from(headers, {OURS}, bearer=False) is cookie
    assert is_from(headers, {OURS}, bearer=True) is bearer


@pytest.mark.parametrize("name", [b"origin", b"Origin", b"sec-fetch-site"])
def test_a_header_given_twice_is_foreign(name):
    value = OURS.encode() if name.lower() == b"origin" else b"same-origin"

    assert is_from([(name, value)], {OURS}, bearer=True)
    assert not is_from([(name, value), (name, value)], {OURS}, bearer=True)
