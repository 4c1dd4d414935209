"""Local accounts in a private file."""

import json

import pytest

from datasource_governance.errors import InvalidArgumentError, ServiceUnavailableError
from datasource_governance.web.accounts import (
    Accounts,
    canonical_name,
    make_account,
    read_accounts,
    write_accounts,
)
from datasource_governance_tests.web.serving import PASSWORD


@pytest.fixture
def path(tmp_path):
    account = make_account("Ann", "ann@example.org", PASSWORD)
    write_accounts(tmp_path / "web" / "accounts.json", {account.name: account})
    return tmp_path / "web" / "accounts.json"


def test_file_is_private_and_holds_an_argon2id_hash_only(path):
    content = path.read_text()

    assert path.stat().st_mode & 0o777 == 0o600
    assert "$argon2id$" in content
    assert PASSWORD not in content
    assert [each.name for each in path.parent.iterdir()] == ["accounts.json"]


@pytest.mark.parametrize("name", ["ann", "ANN", " Ann ", "\uff41nn"])
def test_an_account_is_found_in_any_spelling(path, name):
    assert Accounts(path).verify(name, PASSWORD).actor == "ann@example.org"


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", PASSWORD + " "), ("ann", ""), ("bob", PASSWORD), ("", PASSWORD), ("a\nb", PASSWORD)],
)
def test_wrong_names_and_passwords_find_nobody(path, name, password):
    assert Accounts(path).verify(name, password) is None


def test_the_work_is_the_same_for_unknown_names(path, monkeypatch):
    from argon2 import PasswordHasher

    verified = []
    verify = PasswordHasher.verify

    def counting(hasher, password_hash, password):
        verified.append(password_hash.split("$")[:4])
        return verify(hasher, password_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", counting)

    Accounts(path).verify("ann", "wrong")
    Accounts(path).verify("nobody", "wrong")

    assert len(verified) == 2
    assert verified[0] == verified[1]


def test_changes_are_seen_without_a_restart(path):
    accounts = Accounts(path)
    before = accounts.find("ann").fingerprint
    changed = make_account("ann", "ann@example.org", PASSWORD)

    write_accounts(path, {changed.name: changed})
    assert accounts.find("ann").fingerprint != before

    path.unlink()
    assert accounts.find("ann") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(path, mode):
    path.chmod(mode)

    with pytest.raises(InvalidArgumentError, match="mode 0600"):
        read_accounts(path)
    with pytest.raises(ServiceUnavailableError, match="mode 0600"):
        Accounts(path).find("ann")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "v2"},
        {"accounts": {}},
        {"accounts": [{"name": "ann", "actor": "ann", "password_hash": "zq-canary-plain-text"}]},
        {"accounts": [{"name": "Ann", "actor": "ann", "password_hash": "$argon2id$x"}]},
        {"accounts": [{"name": "ann", "actor": "system", "password_hash": "$argon2id$x"}]},
        {"more": 1},
    ],
)
def test_a_file_of_another_form_is_refused_without_quoting_it(path, change):
    path.write_text(json.dumps(json.loads(path.read_text()) | change))

    with pytest.raises(InvalidArgumentError) as refused:
        read_accounts(path)

    assert "zq-canary" not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("password", ["short", "x" * 11, "x" * 1025, "ü" * 513])
def test_passwords_have_a_length(password):
    with pytest.raises(InvalidArgumentError, match="at least 12 characters"):
        make_account("ann", "ann", password)


@pytest.mark.parametrize("actor", ["system", "unattested", "", "a b"])
def test_an_account_stands_for_a_person(actor):
    with pytest.raises(InvalidArgumentError):
        make_account("ann", actor, PASSWORD)


def test_no_repr_shows_a_hash(path):
    assert "argon2" not in repr(read_accounts(path))


def test_a_name_that_cannot_be_one_has_no_spelling():
    assert canonical_name("Ann") == "ann"
    assert canonical_name("a/b") == ""
