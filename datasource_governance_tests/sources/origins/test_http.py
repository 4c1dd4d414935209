"""HTTP addresses, asked of a real server."""

from itertools import pairwise

import pytest

from datasource_governance.domain.origin import MAXIMUM_VERSION_CHARACTERS
from datasource_governance.sources.limits import Limits
from datasource_governance.sources.origins import http
from datasource_governance.sources.origins.http import MAXIMUM_REDIRECTS, Fetched, fetch_http
from datasource_governance_tests.sources.origin_server import origin_server
from datasource_governance_tests.sources.refusals import CANARY, kinds_and_names, refusal_of

LIMITS = Limits()
YESTERDAY = "Mon, 30 Nov 2026 10:00:00 GMT"


@pytest.fixture
def server():
    with origin_server() as serving:
        yield serving


def fetch(server, version=None, path="/rows.csv", limits=LIMITS):
    return fetch_http(f"{server.address}{path}", "rows.csv", version, limits)


@pytest.mark.parametrize(
    "named",
    [
        {"etag": '"one"'},
        {"etag": 'W/"one"'},
        {"last_modified": YESTERDAY},
        {"etag": '"one"', "last_modified": YESTERDAY},
    ],
)
def test_what_did_not_change_is_not_sent_again(server, named):
    vars(server).update(named)
    first = fetch(server)

    assert first.stored == server.content
    assert fetch(server, first.version) is None


def test_what_changed_is_sent_in_its_new_version(server):
    server.etag = '"one"'
    first = fetch(server)
    server.etag, server.content = '"two"', b"a\n3\n"

    second = fetch(server, first.version)

    assert second.stored == b"a\n3\n"
    assert second.version != first.version


def test_a_first_question_names_no_version(server):
    server.etag = '"one"'

    fetch(server)

    assert not {"If-None-Match", "If-Modified-Since"} & server.asked[0].keys()


@pytest.mark.parametrize("etag", [None, '"' + "x" * MAXIMUM_VERSION_CHARACTERS + '"'])
def test_a_server_that_names_no_version_that_can_be_kept_is_read_each_time(server, etag):
    server.etag = etag

    assert fetch(server) == Fetched(server.content, None)


def test_a_version_of_another_kind_of_origin_asks_for_whatever_is_there(server):
    assert fetch(server, '"no object"').stored == server.content


def test_an_answer_that_nothing_changed_is_refused_where_no_version_was_named(server):
    server.status, server.content = 304, b""

    assert kinds_and_names(lambda: fetch(server)) == [("unreadable", ("304",))]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, ("not_found", ())),
        (410, ("not_found", ())),
        (403, ("unreadable", ("403",))),
        (500, ("unreadable", ("500",))),
    ],
)
def test_a_refusal_tells_the_status_and_nothing_that_the_server_said(server, status, expected):
    server.status, server.content = status, CANARY.encode()

    assert kinds_and_names(lambda: fetch(server, path=f"/{CANARY}?key={CANARY}")) == [expected]


def test_redirects_are_followed_up_to_a_limit(server):
    names = [f"/{place}" for place in range(MAXIMUM_REDIRECTS + 2)]
    server.moved = dict(pairwise(names[:-1]))
    assert fetch(server, path="/0").stored == server.content

    server.moved = dict(pairwise(names))
    assert kinds_and_names(lambda: fetch(server, path="/0")) == [("unreadable", ("302",))]


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/rows.csv", "file:///etc/hostname", "/loop"])
def test_redirects_lead_nowhere_but_to_http_and_not_in_circles(server, target):
    server.moved = {"/rows.csv": target, "/loop": "/loop"}

    assert [problem.kind for problem in refusal_of(lambda: fetch(server))] == ["unreadable"]


@pytest.mark.parametrize(("most", "is_refused"), [(6, False), (5, True)])
def test_as_many_bytes_as_the_limit_are_read_and_no_more(server, most, is_refused):
    limits = Limits(file_bytes=most)
    assert len(server.content) == 6

    if is_refused:
        assert kinds_and_names(lambda: fetch(server, limits=limits)) == [("too_large", ())]
    else:
        assert fetch(server, limits=limits).stored == server.content


def test_an_answer_that_breaks_off_is_refused(server):
    server.promised_bytes = len(server.content) + 1

    assert kinds_and_names(lambda: fetch(server)) == [("unreadable", ())]


def test_an_answer_in_an_encoding_is_refused(server):
    server.headers = {"Content-Encoding": "gzip"}

    assert kinds_and_names(lambda: fetch(server)) == [("unreadable", ())]


def test_an_answer_may_take_only_so_long(server, monkeypatch):
    monkeypatch.setattr(http, "TRANSFER_SECONDS", -1.0)

    assert kinds_and_names(lambda: fetch(server)) == [("too_slow", ())]


def test_where_nobody_answers_is_refused(server):
    server.address = "http://127.0.0.1:1"

    assert kinds_and_names(lambda: fetch(server)) == [("unreadable", ())]
