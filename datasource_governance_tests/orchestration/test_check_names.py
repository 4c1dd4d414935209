"""Rule ids are free; the names of their checks are legal, distinct and stable."""

import hashlib
import re

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasource_governance.orchestration.check_names import FIXED, check_names

RULE_IDS = st.lists(st.text(min_size=1, max_size=128), unique=True, max_size=20)
CLOSE_IDS = st.lists(st.text("-._ aA", min_size=1, max_size=4), unique=True, max_size=20)


def digits(rule_id, count=8):
    return hashlib.sha256(rule_id.encode()).hexdigest()[:count]


def test_a_legal_id_is_its_own_name():
    assert check_names(["icao_unique", "Rule9"]) == {
        "icao_unique": "icao_unique",
        "Rule9": "Rule9",
    }


def test_every_other_character_becomes_an_underscore():
    assert check_names(["icao-unique", "a b/c.d", "größe"]) == {
        "icao-unique": "icao_unique",
        "a b/c.d": "a_b_c_d",
        "größe": "gr__e",
    }


def test_ids_that_meet_each_get_digits_of_their_own_digest():
    assert check_names(["a-b", "a.b", "other"]) == {
        "a-b": f"a_b_{digits('a-b')}",
        "a.b": f"a_b_{digits('a.b')}",
        "other": "other",
    }


@pytest.mark.parametrize("fixed", FIXED)
def test_an_id_that_meets_a_fixed_name_steps_aside(fixed):
    spelled = fixed.replace("_", ".")

    assert check_names([spelled]) == {spelled: f"{fixed}_{digits(spelled)}"}


def test_an_id_that_spells_another_one_with_its_digits_gets_the_whole_digest():
    spelled = f"a_b_{digits('a-b')}"

    names = check_names(["a-b", "a.b", spelled])

    assert names["a-b"] == f"a_b_{digits('a-b', 64)}"
    assert names["a.b"] == f"a_b_{digits('a.b')}"
    assert len(set(names.values())) == 3


def test_an_id_without_any_legal_character_still_has_a_name():
    assert check_names(["-"]) == {"-": "_"}
    assert check_names(["日本"]) == {"日本": "__"}


def test_no_rules_have_no_names():
    assert check_names([]) == {}


@given(RULE_IDS | CLOSE_IDS)
def test_names_are_always_legal_distinct_and_none_of_the_fixed_ones(rule_ids):
    names = check_names(rule_ids)

    assert list(names) == rule_ids
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names.values())
    assert len({*names.values(), *FIXED}) == len(rule_ids) + len(FIXED)


@given(CLOSE_IDS)
def test_the_order_of_rules_does_not_count(rule_ids):
    assert check_names(rule_ids) == check_names(rule_ids[::-1])


def test_dagster_takes_the_name_of_the_longest_ids():
    longest = ["-" * 128, "." * 128]

    specs = [dg.AssetCheckSpec(name, asset="a") for name in check_names(longest).values()]

    assert len({spec.name for spec in specs}) == 2
