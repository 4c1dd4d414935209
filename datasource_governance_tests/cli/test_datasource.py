"""`datasource apply | list | show`: declarations become policy versions."""

import json

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def declare(office, **changes):
    """Rewrite the declaration of `orders`."""
    path = office.world.application.settings.datasources / "orders" / "datasource.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def governance(rules, **keys):
    return {"quality_policy": {"version": "orders-v2", "rules": rules}, **keys}


def test_applying_what_is_in_force_changes_nothing(office):
    before = office.world.count_rows()

    answer = office("datasource", "apply", by="admin")

    assert (answer.code, answer.out) == (0, "orders: unchanged\n")
    assert office.world.count_rows() == before


def test_a_changed_policy_is_a_new_version_beside_the_old_one(office):
    declare(office, governance=governance([]))

    answer = office("datasource", "apply", "--json", by="admin")

    shown = office("datasource", "show", "orders", "--json").document
    assert [one["changed"] for one in answer.document] == [True]
    assert {(one["version"], one["in_force"]) for one in shown["policies"]} == {
        ("orders-v1", False),
        ("two", False),
        ("orders-v2", True),
    }


def test_only_an_administrator_applies(office):
    declare(office, governance=governance([]))

    answer = office("datasource", "apply", by="casey")

    assert answer.code == 1
    assert "orders-v2" not in office("datasource", "show", "orders").out


def test_a_malformed_policy_is_refused_as_a_whole(office):
    declare(office, governance=governance([{"id": "x", "type": "nope"}]))
    before = office.world.count_rows()

    answer = office("datasource", "apply", by="admin")

    assert (answer.code, answer.out) == (2, "")
    assert "/governance/quality_policy/rules/0/type" in answer.err
    assert office.world.count_rows() == before


def test_a_directory_can_be_named_and_must_hold_declarations(office, tmp_path):
    named = office("datasource", "apply", tmp_path / "datasources", by="admin")
    empty = office("datasource", "apply", tmp_path / "keys", by="admin")

    assert (named.code, empty.code) == (0, 2)
    assert "GOVERNANCE_DATASOURCES" in empty.err


def test_they_are_listed_and_shown_for_people_and_for_scripts(office):
    assert "orders" in office("datasource", "list").out
    (listed,) = office("datasource", "list", "--json").document
    assert (listed["datasource"], listed["current"], listed["revision"]) == ("orders", None, 0)
    assert "none yet" in office("datasource", "show", "orders").out


def test_an_unknown_datasource_is_named(office):
    answer = office("datasource", "show", "nope")

    assert (answer.code, answer.out) == (2, "")
    assert "'nope'" in answer.err
