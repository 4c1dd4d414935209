"""Accounts for trying out: made once, printed while they are as they were made, never renewed."""

import io
import json

import pytest
from rich.console import Console

from datasource_governance.cli.demo_accounts import (
    PEOPLE,
    demo_accounts,
    demo_accounts_file,
    tell_accounts,
)
from datasource_governance.domain.actor import Role
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.web.accounts import Accounts, make_account, read_accounts, write_accounts
from datasource_governance_tests.web.serving import PASSWORD

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def accounts_file(world):
    return demo_accounts_file(world.application).with_name("accounts.json")


def roles_of(world, name):
    with world.application.work() as work:
        return {grant.role for grant in work.authority.grants(name)}


def told(accounts) -> str:
    out = io.StringIO()
    tell_accounts(Console(file=out, width=100), "http://127.0.0.1:3000", accounts)
    return out.getvalue()


def test_everybody_of_the_story_can_sign_in_with_roles_of_their_own(world):
    made = demo_accounts(world.application)

    signing_in = Accounts(accounts_file(world))
    assert [one.name for one in made] == list(PEOPLE)
    assert {signing_in.verify(one.name, one.password).actor for one in made} == PEOPLE.keys()
    assert {name: roles_of(world, name) for name in PEOPLE} == {
        name: set(roles) for name, roles in PEOPLE.items()
    }
    assert len({one.password for one in made}) == len(made)


def test_the_roles_are_all_that_people_need():
    assert {role for roles in PEOPLE.values() for role in roles} == {
        *(Role.ADMINISTRATOR, Role.OPERATOR, Role.STEWARD, Role.PRODUCER, Role.APPROVER),
        Role.VIEWER,
    }
    assert (
        sum(Role.APPROVER in roles and Role.STEWARD not in roles for roles in PEOPLE.values()) == 2
    )


def test_the_next_start_makes_nothing_anew(world):
    first = demo_accounts(world.application)
    before = {path: path.read_bytes() for path in accounts_file(world).parent.iterdir()}
    rows = world.count_rows()

    assert demo_accounts(world.application) == first
    assert {path: path.read_bytes() for path in accounts_file(world).parent.iterdir()} == before
    assert world.count_rows() == rows


def test_only_their_owner_reads_the_passwords(world):
    demo_accounts(world.application)

    assert demo_accounts_file(world.application).stat().st_mode & 0o077 == 0
    assert accounts_file(world).stat().st_mode & 0o077 == 0


def test_an_account_that_was_removed_is_not_made_again(world):
    demo_accounts(world.application)
    present = read_accounts(accounts_file(world))
    del present["alice"]
    write_accounts(accounts_file(world), present)

    again = demo_accounts(world.application)

    assert "alice" not in {one.name for one in again}
    assert "alice" not in read_accounts(accounts_file(world))


def test_a_password_that_was_changed_is_not_told_any_more(world):
    demo_accounts(world.application)
    changed = make_account("bob", "bob", PASSWORD)
    write_accounts(accounts_file(world), read_accounts(accounts_file(world)) | {"bob": changed})

    again = demo_accounts(world.application)

    assert "bob" not in {one.name for one in again}
    assert Accounts(accounts_file(world)).verify("bob", PASSWORD)


def test_a_role_that_was_withdrawn_stays_withdrawn(world):
    demo_accounts(world.application)
    with world.application.work() as work:
        (grant,) = work.authority.grants("vera")
    world.withdraw(grant.id)

    demo_accounts(world.application)

    assert roles_of(world, "vera") == set()


def test_an_account_of_somebody_else_is_left_alone(world):
    accounts_file(world).parent.mkdir()
    theirs = make_account("alice", "alice@example.org", PASSWORD)
    write_accounts(accounts_file(world), {"alice": theirs})

    made = demo_accounts(world.application)

    assert "alice" not in {one.name for one in made}
    assert read_accounts(accounts_file(world))["alice"] == theirs
    assert roles_of(world, "alice") == set()


def test_an_actor_with_a_key_from_elsewhere_is_left_alone(world):
    world.admit("bob")
    for file in world.application.settings.keys.glob("bob*"):
        file.unlink()

    made = demo_accounts(world.application)

    assert "bob" not in {one.name for one in made}
    assert "bob" not in read_accounts(accounts_file(world))
    assert roles_of(world, "bob") == set()


def test_an_actor_that_was_made_here_gets_an_account(world):
    world.admit("bob", Role.APPROVER)

    assert "bob" in {one.name for one in demo_accounts(world.application)}


@pytest.mark.parametrize("content", ["zq", "[]", '{"accounts": [{"name": "zq-secret"}]}'])
def test_a_file_that_is_not_one_is_refused_without_repeating_it(world, content):
    demo_accounts(world.application)
    demo_accounts_file(world.application).write_text(content)

    with pytest.raises(InvalidArgumentError) as caught:
        demo_accounts(world.application)

    assert "zq" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_person_is_told_where_to_sign_in_with_what_and_how_to_end_it(world):
    made = demo_accounts(world.application)

    text = told(made)

    assert "http://127.0.0.1:3000" in text
    assert all(one.password in text for one in made)
    assert "steward, approver" in text
    assert "webserver account NAME --remove" in text


def test_without_demo_accounts_only_the_address_is_told():
    assert told(()) == "Dagster UI: http://127.0.0.1:3000\n"


def test_a_password_is_not_in_what_an_account_looks_like(world):
    made = demo_accounts(world.application)

    assert not any(one.password in repr(one) for one in made)
    kept = json.loads(demo_accounts_file(world.application).read_text())
    assert {one["name"] for one in kept["accounts"]} == PEOPLE.keys()
