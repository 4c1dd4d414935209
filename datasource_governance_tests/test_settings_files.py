"""Settings are TOML, secrets are their owner's, and a loopback address is known for one."""

import pytest

from datasource_governance.errors import InvalidArgumentError
from datasource_governance.settings_files import is_loopback, read_secret, read_toml


def test_a_file_says_what_is_in_it(tmp_path):
    (tmp_path / "settings.toml").write_text('[[receiver]]\nname = "é"\n', encoding="utf-8")

    assert read_toml(tmp_path / "settings.toml") == {"receiver": [{"name": "é"}]}


@pytest.mark.parametrize("content", [b"= 1", b"name = '\xff'"])
def test_what_is_not_toml_is_refused_without_quoting_it(tmp_path, content):
    (tmp_path / "settings.toml").write_bytes(content)

    with pytest.raises(InvalidArgumentError) as refused:
        read_toml(tmp_path / "settings.toml")

    assert str(refused.value).endswith("settings.toml cannot be read: it is not TOML")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError):
        read_toml(tmp_path / "settings.toml")


@pytest.mark.parametrize(
    ("text", "mode", "is_read"),
    [
        (" secret\n", 0o600, True),
        ("secret", 0o400, True),
        ("secre", 0o600, False),
        ("secret", 0o640, False),
        ("secret", 0o604, False),
        ("sécret", 0o600, False),
    ],
)
def test_a_secret_is_long_enough_ascii_and_private(tmp_path, text, mode, is_read):
    path = tmp_path / "secret"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)

    if is_read:
        assert read_secret(path, 6) == "secret"
        return
    with pytest.raises(InvalidArgumentError) as refused:
        read_secret(path, 6)
    assert "secre " not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - nothing listens here
        ("localhost.example", False),
        ("", False),
    ],
)
def test_loopback(host, is_one):
    assert is_loopback(host) is is_one
