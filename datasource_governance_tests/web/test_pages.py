"""The pages of the gate are plain, and nothing in them is taken for HTML."""

import base64
import hashlib
import re

import pytest

from datasource_governance.domain.actor import ActorId
from datasource_governance.web.identity import Authentication, Identity
from datasource_governance.web.pages import refusal_page, sign_in_page, signed_in_page

HOSTILE = "\"><script>alert('x')</script>"


def pages():
    ann = Identity(actor=ActorId("ann"), authentication=Authentication.PROXY)
    yield sign_in_page("token", "/")
    yield sign_in_page(HOSTILE, HOSTILE, problem=HOSTILE, status=401)
    yield signed_in_page(ann, HOSTILE)
    yield refusal_page(HOSTILE, 403)


@pytest.mark.parametrize("page", [*pages()], ids=range(4))
def test_a_page_has_one_style_that_its_policy_names_and_no_script(page):
    content = page.body.decode()
    style = re.search("<style>(.*?)</style>", content, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    policy = page.headers["content-security-policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert "<script" not in content
    assert "style=" not in content


@pytest.mark.parametrize("page", [*pages()], ids=range(4))
def test_a_page_reads_well_on_a_phone_and_aloud(page):
    content = page.body.decode()

    assert '<html lang="en">' in content
    assert 'name="viewport" content="width=device-width, initial-scale=1"' in content
    assert content.count("<h1>") == content.count("<main>") == 1
    for identifier in re.findall('<input id="([a-z]+)"', content):
        assert f'<label for="{identifier}">' in content


@pytest.mark.parametrize(
    ("status", "title"), [(403, "Not allowed"), (404, "Not found"), (503, "Not available")]
)
def test_a_refusal_is_headed_by_what_kind_it_is(status, title):
    page = refusal_page("There is no such stage.", status)

    assert f"<h1>{title}</h1>" in page.body.decode()
    assert page.status_code == status


def test_a_refusal_is_one_sentence_with_a_way_out():
    page = refusal_page("Reading needs the role viewer.", 403)

    assert page.status_code == 403
    assert b'<p role="alert">Reading needs the role viewer.</p>' in page.body
    assert b'href="/signin"' in page.body
