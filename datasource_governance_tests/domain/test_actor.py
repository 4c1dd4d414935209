from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.domain.actor import (
    SYSTEM,
    SYSTEM_ROLES,
    UNATTESTED,
    ActorId,
    Grant,
    Role,
    admit_grant,
    authority,
    canonical_principal,
    person,
)
from datasource_governance.errors import GuardError, InvalidArgumentError

MIDDAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANN = ActorId("ann@example.com")


def grant(number=1, **changes):
    keys = {
        "id": f"g{number}",
        "actor": ANN,
        "role": Role.APPROVER,
        "datasource": None,
        "attestation_id": "a",
        "granted_at": MIDDAY,
    }
    return Grant(**{**keys, **changes})


@pytest.mark.parametrize(
    "spelling",
    [
        "ann@example.com",
        "Ann@Example.COM",
        "  ann@example.com\n",
        "ａｎｎ@example.com",  # noqa: RUF001 - full width
        "ann＠example．com",  # noqa: RUF001 - full width
        "𝐚nn@example.com",  # noqa: RUF001 - mathematical bold
    ],
)
def test_spellings_of_one_principal_are_one_id(spelling):
    assert canonical_principal(spelling) == "ann@example.com"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-ann", "@ann", "a b", "a\x00b", "a/b", "a" * 129),
        "аnn",  # noqa: RUF001 - a Cyrillic first letter
        "ann\u200d",
        "ann\u202e",
        "annα",  # noqa: RUF001 - a Greek last letter
        "josé",
    ],
)
def test_what_could_make_two_people_look_like_one_is_refused(text):
    with pytest.raises(InvalidArgumentError):
        canonical_principal(text)


def test_a_principal_has_1_to_128_characters():
    assert canonical_principal("a") == "a"
    assert canonical_principal("a" * 128) == "a" * 128


@given(st.text(max_size=20))
def test_a_principal_is_the_one_of_its_own_id(text):
    try:
        principal = canonical_principal(text)
    except InvalidArgumentError:
        return
    assert canonical_principal(principal) == principal
    assert canonical_principal(text.upper()) == principal


@pytest.mark.parametrize("name", ["system", "SYSTEM", "ＳＹＳＴＥＭ", "unattested"])  # noqa: RUF001 - full width
def test_a_stand_in_is_no_person(name):
    with pytest.raises(InvalidArgumentError):
        person(name)


def test_roles_do_not_include_each_other():
    for held in Role:
        covered = {role for role in Role if grant(role=held).covers(role, "orders")}
        assert covered == {held}


@pytest.mark.parametrize(
    ("held", "asked", "covers"),
    [
        (None, "orders", True),
        (None, None, True),
        ("orders", "orders", True),
        ("orders", "returns", False),
        ("orders", None, False),
    ],
)
def test_a_grant_covers_its_datasource_or_all(held, asked, covers):
    assert grant(datasource=held).covers(Role.APPROVER, asked) is covers


def test_authority_is_the_widest_then_the_oldest_grant():
    wide = grant(1, granted_at=MIDDAY + timedelta(days=1))
    wider_and_older = grant(2)
    narrow = grant(3, datasource="orders", granted_at=MIDDAY - timedelta(days=1))

    for given_in_any_order in ([wide, narrow, wider_and_older], [wider_and_older, wide, narrow]):
        found = authority(given_in_any_order, ANN, Role.APPROVER, "orders")
        assert found is wider_and_older


@pytest.mark.parametrize(
    "held",
    [
        [],
        [grant(actor=ActorId("somebody"))],
        [grant(role=Role.OPERATOR)],
        [grant(datasource="returns")],
    ],
)
def test_without_a_fitting_grant_nobody_is_authorised(held):
    with pytest.raises(GuardError) as caught:
        authority(held, ANN, Role.APPROVER, "orders")

    assert caught.value.code == "not_authorised"
    assert caught.value.facts == {"actor": ANN, "role": "approver"}


@pytest.mark.parametrize("role", list(Role))
def test_the_system_holds_no_role_that_decides_about_data(role):
    if role in SYSTEM_ROLES:
        admit_grant(SYSTEM, role)
    else:
        with pytest.raises(GuardError):
            admit_grant(SYSTEM, role)
    with pytest.raises(GuardError):
        admit_grant(UNATTESTED, role)
    admit_grant(ANN, role)


def test_the_system_reads_and_creates_only():
    assert {Role.VIEWER, Role.STEWARD, Role.PRODUCER} == SYSTEM_ROLES
