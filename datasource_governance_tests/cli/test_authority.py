"""`key` and `actor`: who may sign for whom, and who may do what."""

import stat

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def test_a_new_key_pair_is_kept_where_only_its_owner_reads_it(command, tmp_path):
    answer = command("key", "create", "Dana", "--json")

    private, public = tmp_path / "keys" / "dana.pem", tmp_path / "keys" / "dana.pub.pem"
    assert answer.document == {"actor": "dana", "private": str(private), "public": str(public)}
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert "PRIVATE" not in public.read_text()


def test_a_key_is_never_overwritten(command, tmp_path):
    command("key", "create", "dana")
    before = (tmp_path / "keys" / "dana.pem").read_bytes()

    answer = command("key", "create", "DANA")

    assert answer.code == 2
    assert "never overwritten" in answer.err
    assert (tmp_path / "keys" / "dana.pem").read_bytes() == before


@pytest.mark.parametrize("name", ["../dana", "a/b", "", "-x", ".hidden"])
def test_a_name_that_is_none_is_refused_before_a_file_is_made(command, tmp_path, name):
    answer = command("key", "create", "--", name)

    assert answer.code == 2
    assert not (tmp_path / "keys").exists()


def test_a_key_directory_that_cannot_be_written_is_named(command, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOVERNANCE_KEYS", str(tmp_path / "file" / "keys"))

    answer = command("key", "create", "dana")

    assert (answer.code, answer.out) == (2, "")
    assert str(tmp_path / "file") in answer.err
    assert "unforeseen" not in answer.err


def test_a_registered_key_makes_its_owner_an_actor(office):
    office("key", "create", "dana")

    answer = office("key", "register", "dana", "--json", by="admin")

    key = answer.document["key"]
    assert answer.document == {"actor": "dana", "key": key, "kind": "actor"}
    assert key[:12] in office("key", "list").out
    assert {"id": "dana", "name": "dana"} in office("actor", "list", "--json").document["actors"]


def test_registering_again_is_harmless_and_taking_anothers_key_is_refused(office, tmp_path):
    casey = tmp_path / "keys" / "casey.pub.pem"

    again = office("key", "register", "casey", by="admin")
    taken = office("key", "register", "mallory", "--public-key", casey, by="admin")

    assert (again.code, taken.code) == (0, 1)
    assert "registered or revoked already" in taken.err


def test_only_an_administrator_registers_keys_and_grants_roles(office):
    office("key", "create", "dana")

    register = office("key", "register", "dana", by="casey")
    grant = office("actor", "grant", "casey", "administrator", by="casey")

    assert (register.code, grant.code) == (1, 1)
    assert "dana" not in office("actor", "list").out


def test_what_a_revoked_key_signs_is_refused(office):
    stage = office.stage()
    keys = office("key", "list", "--json").document
    (key,) = [one["key"] for one in keys if one["actor"] == "approver-1"]

    revoked = office("key", "revoke", key[:12], by="admin")
    answer = office("approve", stage, "--reason", "fine", by="approver-1")
    again = office("key", "revoke", key, by="admin")

    assert (revoked.code, answer.code, again.code) == (0, 1, 1)
    (found,) = [one for one in office("key", "list", "--json").document if one["key"] == key]
    assert found["revoked"] is True


@pytest.mark.parametrize("digits", ["", "no such key"])
def test_a_key_is_revoked_by_digits_that_name_exactly_one(office, digits):
    answer = office("key", "revoke", digits, by="admin")

    assert answer.code == 2
    assert "keys begin with" in answer.err


def test_a_grant_gives_and_its_withdrawal_takes(office):
    given = office("actor", "grant", "casey", "operator", "--json", by="admin").document
    again = office("actor", "grant", "casey", "operator", "--json", by="admin").document

    withdrawn = office("actor", "withdraw", given["grant"], by="admin")

    assert given == again
    assert withdrawn.code == 0
    assert given["grant"] not in office("actor", "list").out
    assert office("actor", "withdraw", given["grant"], by="admin").code == 2


def test_a_grant_can_be_for_one_datasource(office):
    answer = office(
        "actor", "grant", "casey", "operator", "--datasource", "orders", "--json", by="admin"
    )
    unknown = office("actor", "grant", "casey", "operator", "--datasource", "nope", by="admin")

    assert answer.document["datasource"] == "orders"
    assert unknown.code == 2


def test_nobody_grants_to_a_stranger_and_the_system_never_approves(office):
    stranger = office("actor", "grant", "stranger", "viewer", by="admin")
    system = office("actor", "grant", "system", "approver", by="admin")

    assert stranger.code == 2
    assert "register a key first" in stranger.err
    assert system.code in (1, 2)
    assert "approver" not in [
        one["role"]
        for one in office("actor", "list", "--json").document["grants"]
        if one["actor"] == "system"
    ]


@pytest.mark.parametrize(
    "content", [b"", b"not a key", bytes(range(64))], ids=["empty", "text", "bytes"]
)
def test_a_key_file_that_is_none_is_refused(office, tmp_path, content):
    (tmp_path / "keys" / "casey.pem").write_bytes(content)

    answer = office("actor", "grant", "casey", "viewer", by="casey")

    assert (answer.code, answer.out) == (2, "")
    assert "is no Ed25519 private key" in answer.err


def test_who_signs_may_be_exported_and_must_be_somebody(office, monkeypatch):
    nobody = office("actor", "grant", "casey", "viewer")
    monkeypatch.setenv("GOVERNANCE_ACTOR", "admin")
    exported = office("actor", "grant", "casey", "viewer")

    assert (nobody.code, exported.code) == (2, 0)
    assert "--actor NAME" in nobody.err
