"""The settings file: everything wrong with it is said at once."""

import pytest

from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError
from datasource_governance.web.settings import read_web_settings
from datasource_governance_tests.web.serving import SECRET

FULL = """
directory = "web"
host = "0.0.0.0"
port = 8080
public_url = "https://governance.example/"
session_hours = 8

[proxy]
peers = ["10.0.0.4", "fd00::/8"]
actor_header = "X-Proxy-User"
secret_header = "X-Proxy-Secret"
secret_file = "secret"

[token]
issuer = "https://login.example"
audience = "governance"
keys = "https://login.example/keys"
claim = "email"
algorithms = ["ES256", "Ed25519"]

[metrics]
token_file = "secret"
"""


@pytest.fixture
def read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)

    def read(text: str, **options):
        (tmp_path / "web.toml").write_text(text)
        return read_web_settings(tmp_path / "web.toml", tmp_path / "state", **options)

    return read


def test_everything_can_be_said(read, tmp_path):
    settings = read(FULL)

    assert settings.directory == tmp_path / "web"
    assert (settings.host, settings.port, settings.session_hours) == ("0.0.0.0", 8080, 8)  # noqa: S104 - nothing listens here
    assert settings.origins == {"https://governance.example"}
    assert settings.is_secure
    assert [str(peer) for peer in settings.proxy.peers] == ["10.0.0.4/32", "fd00::/8"]
    assert settings.proxy.secret == SECRET
    assert settings.token.claim == "email"
    assert settings.token.header == "authorization"
    assert settings.token.algorithms == {"ES256", "Ed25519"}
    assert settings.metrics_token == SECRET
    assert SECRET not in repr(settings)


def test_without_a_file_it_is_for_this_machine(tmp_path):
    settings = read_web_settings(None, tmp_path, port=4000)

    assert settings.directory == tmp_path
    assert settings.host == "127.0.0.1"
    assert settings.origins >= {"http://127.0.0.1:4000", "http://localhost:4000"}
    assert not settings.is_secure
    assert settings.proxy is None
    assert settings.token is None


def test_options_override_the_file(read):
    assert read(FULL, host="127.0.0.1", port=1).port == 1


def test_relative_keys_are_below_the_file(read, tmp_path):
    text = '[token]\nissuer = "i"\naudience = "a"\nkeys = "keys.json"'

    assert read(text).token.keys == str(tmp_path / "keys.json")


def test_everything_wrong_is_said_at_once(read):
    text = """
    prot = 1
    port = 0
    public_url = "http://governance.example"
    [token]
    issuer = ""
    keys = "http://login.example/keys"
    algorithms = ["none", "HS256"]
    """
    with pytest.raises(InvalidPolicyError) as refused:
        read(text)

    assert {problem.pointer for problem in refused.value.problems} == {
        "/prot",
        "/port",
        "/public_url",
        "/token",
        "/token/issuer",
        "/token/keys",
        "/token/algorithms/0",
        "/token/algorithms/1",
    }


@pytest.mark.parametrize(
    "url",
    [
        "http://governance.example",
        "https://",
        "https://a/b",
        "https://user@a",
        "ftp://a",
        "a",
        "https://a?b",
        "https://[a",
        "http://127.0.0.1.example",
    ],
)
def test_a_public_url_is_an_origin_that_is_safe(read, url):
    with pytest.raises(InvalidPolicyError):
        read(f'public_url = "{url}"')


@pytest.mark.parametrize("url", ["http://localhost:3000", "http://127.0.0.1", "https://a:8443"])
def test_an_origin_may_have_a_port(read, url):
    assert read(f'public_url = "{url}"').origins == {url}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "governance.example"])  # noqa: S104 - nothing listens here
def test_being_reached_from_elsewhere_needs_a_public_url(tmp_path, host):
    with pytest.raises(InvalidArgumentError, match="public_url"):
        read_web_settings(None, tmp_path, host=host)


@pytest.mark.parametrize(("content", "mode"), [(SECRET, 0o640), (SECRET[:31], 0o600), ("", 0o600)])
def test_the_proxys_secret_is_long_and_private(read, tmp_path, content, mode):
    (tmp_path / "secret").write_text(content)
    (tmp_path / "secret").chmod(mode)

    with pytest.raises(InvalidArgumentError, match="mode 0600") as refused:
        read(FULL)

    assert "sssss" not in str(refused.value)


def test_a_file_that_is_missing_or_no_toml_is_refused(read, tmp_path):
    with pytest.raises(InvalidArgumentError, match="not TOML"):
        read("port = ")
    with pytest.raises(InvalidArgumentError, match="No such file"):
        read_web_settings(tmp_path / "missing.toml", tmp_path)
