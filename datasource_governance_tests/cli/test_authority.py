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


def test_lists_say_who_signed_with_which_key(office):
    admin = office.world.signer("admin").key
    grants = office("actor", "list", "--json").document["grants"]
    keys = office("key", "list", "--json").document

    signed = {(one["actor"], one["role"]): (one["author"], one["author_key"]) for one in grants}
    registered = {one["actor"]: (one["author"], one["author_key"]) for one in keys}

    assert signed["admin", "administrator"] == registered["admin"] == (None, None)
    assert signed["casey", "approver"] == registered["casey"] == ("admin", admin)
    for table in (office("actor", "list").out, office("key", "list").out):
        assert "the founding" in table
        assert admin[:12] in table


def test_actors_without_a_role_are_listed_too(office):
    office("key", "create", "dana")
    office("key", "register", "dana", by="admin")

    (line,) = [line for line in office("actor", "list").out.splitlines() if "dana" in line]

    assert "none" in line


def test_a_grant_is_withdrawn_by_what_the_list_shows_of_it(office):
    given = office("actor", "grant", "casey", "operator", "--json", by="admin").document["grant"]

    assert given[:12] in office("actor", "list").out
    assert office("actor", "withdraw", given[:12], by="admin").code == 0
    assert given[:12] not in office("actor", "list").out


@pytest.mark.parametrize("characters", ["", "no such grant"])
def test_a_grant_is_withdrawn_by_characters_that_name_exactly_one(office, characters):
    answer = office("actor", "withdraw", characters, by="admin")

    assert answer.code == 2
    assert "grants begin with" in answer.err


def test_who_leaves_loses_every_key_and_grant_at_once(office):
    stage = office.stage()
    office("approve", stage, "--reason", "fine", by="approver-1")

    left = office("actor", "offboard", "Approver-1", "--json", by="admin").document
    again = office("actor", "offboard", "approver-1", "--json", by="admin").document

    held = office("actor", "list", "--json").document["grants"]
    keys = office("key", "list", "--json").document
    assert (left["actor"], len(left["keys"]), len(left["grants"])) == ("approver-1", 1, 1)
    assert again == {"actor": "approver-1", "keys": [], "grants": []}
    assert "approver-1" not in [one["actor"] for one in held]
    assert [one["revoked"] for one in keys if one["actor"] == "approver-1"] == [True]
    assert "0 of 2 approvals hold" in office("stage", "show", stage).out


@pytest.mark.parametrize(
    ("leaver", "by", "code", "told"),
    [
        ("admin", "admin", 2, "somebody else must sign this"),
        ("stranger", "admin", 2, "there is no actor 'stranger'"),
        ("system", "admin", 2, "is reserved"),
        ("approver-1", "casey", 1, "has no grant as administrator"),
    ],
)
def test_who_cannot_be_offboarded_keeps_everything(office, leaver, by, code, told):
    before = office("actor", "list", "--json").document, office("key", "list", "--json").document

    answer = office("actor", "offboard", leaver, by=by)

    assert (answer.code, answer.out) == (code, "")
    assert told in answer.err
    assert before == (
        office("actor", "list", "--json").document,
        office("key", "list", "--json").document,
    )


def test_the_last_administrator_is_told_what_to_do_first(office):
    grants = office("actor", "list", "--json").document["grants"]
    (grant,) = [one["grant"] for one in grants if one["role"] == "administrator"]

    answer = office("actor", "withdraw", grant, by="admin")

    assert (answer.code, answer.out) == (1, "")
    assert "first make somebody else administrator" in answer.err


def test_what_a_key_attested_is_listed_newest_first(office):
    key = office.world.signer("approver-1").key
    nothing = office("key", "show", key[:12], "--json").document
    stages = [office.stage(), office.stage("id,amount\n3,1\n4,1\n")]
    for stage in stages:
        office("approve", stage, "--reason", "fine", by="approver-1")

    shown = office("key", "show", key, "--json").document

    assert nothing == {"key": key, "attested": []}
    assert [one["subject"]["stage"] for one in shown["attested"]] == stages[::-1]
    assert {(one["actor"], one["action"]) for one in shown["attested"]} == {
        ("approver-1", "stage.approve")
    }
    assert stages[0] in office("key", "show", key[:12]).out
    assert office("key", "show", "no such key").code == 2


def test_a_gateway_key_is_said_to_attest_for_whoever_signs_in(office):
    office("key", "create", "gateway")

    answer = office("key", "register", "gateway", "--kind", "gateway", by="admin")

    assert "attests for whoever signs in" in answer.out
