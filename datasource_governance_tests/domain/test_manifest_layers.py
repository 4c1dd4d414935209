from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasource_governance.domain.manifest_layers import (
    merged,
    parse_platform_manifest,
    resolve_layers,
)
from datasource_governance.domain.quality_score import WeightClass
from datasource_governance.domain.test_types import TEST_TYPES
from datasource_governance.domain.tier import Enforcement, Tier
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests.manifests import (
    CONFIG,
    GATES,
    SECTION,
    gates,
    layer,
    manifest_document,
    waiver,
)


def resolved(*configurations):
    """Return the manifest of layers named a, b, c... with these configurations, a outermost."""
    return resolve_layers(
        [layer(one, name=name) for name, one in zip("abcdef", configurations, strict=False)]
    )


def problems(*layers):
    """Return (kind, names) of every problem of layers."""
    with pytest.raises(InvalidPolicyError) as caught:
        resolve_layers(layers)

    return [(one.kind, one.names) for one in caught.value.problems]


def loosened(outer, inner):
    """Return (kind, path below the configuration) of every problem of two configurations."""
    found = problems(layer(outer, name="a"), layer(inner, name="b"))
    assert {names[1:] for _, names in found} == {("a", "b")}
    return [(kind, names[0].removeprefix(f"{CONFIG}.")) for kind, names in found]


def test_a_layer_that_sets_one_thing_leaves_all_others_as_they_are_set():
    found = resolve_layers(
        [
            layer({"thresholds": {"min_score": 90, "warn_score": 95}}, name="a", provider="soda"),
            layer({"timeout_seconds": 10}, name="b"),
        ]
    )

    assert (found.thresholds.min_score, found.thresholds.warn_score) == (90, 95)
    assert (found.provider, found.timeout_seconds) == ("soda", 10)
    assert found.provenance == {
        f"{CONFIG}.thresholds.min_score": "a",
        f"{CONFIG}.thresholds.warn_score": "a",
        f"{SECTION}.provider": "a",
        f"{CONFIG}.timeout_seconds": "b",
    }


@pytest.mark.parametrize(
    ("outer", "tighter", "looser", "path"),
    [
        (
            gates(gold={"min_test_coverage": 0.9}),
            gates(gold={"min_test_coverage": 0.91}),
            gates(gold={"min_test_coverage": 0.89}),
            "quality_gates.gold.min_test_coverage",
        ),
        (
            gates(enforcement="warn"),
            gates(enforcement="strict"),
            gates(enforcement="off"),
            "quality_gates.enforcement",
        ),
        (
            gates(technical_fields=["a", "b"]),
            gates(technical_fields=["b"]),
            gates(technical_fields=["b", "c"]),
            "quality_gates.technical_fields",
        ),
        (
            gates(waivers=[waiver()]),
            gates(waivers=[]),
            gates(waivers=[waiver(expires="2027-04-01")]),
            "quality_gates.waivers",
        ),
        (
            {"thresholds": {"min_score": 60}},
            {"thresholds": {"min_score": 61}},
            {"thresholds": {"min_score": 59}},
            "thresholds.min_score",
        ),
        (
            {"thresholds": {"warn_score": 80}},
            {"thresholds": {"warn_score": 81}},
            {"thresholds": {"warn_score": 79}},
            "thresholds.warn_score",
        ),
        (
            {"score_gates_promotion": False},
            {"score_gates_promotion": True},
            None,
            "score_gates_promotion",
        ),
        (
            {"score_gates_promotion": True},
            {"score_gates_promotion": True},
            {"score_gates_promotion": False},
            "score_gates_promotion",
        ),
        (
            {"weights": {"critical_checks": 3}},
            {"weights": {"critical_checks": 3.0}},
            {"weights": {"critical_checks": 4}},
            "weights.critical_checks",
        ),
        (
            {"weight_classes": {"r": "standard_checks"}},
            {"weight_classes": {"other": "critical_checks"}},
            {"weight_classes": {"r": "critical_checks"}},
            "weight_classes.r",
        ),
    ],
)
def test_inside_a_setting_can_be_tightened_and_not_loosened(outer, tighter, looser, path):
    assert resolved(outer, outer).data_quality() == resolved(outer).data_quality()
    resolved(outer, tighter)
    if looser is not None:
        assert loosened(outer, looser) == [("loosened", path)]


def test_required_tests_add_up():
    found = resolved(
        gates(gold={"required_tests": ["unique"]}), gates(gold={"required_tests": ["not_null"]})
    )

    assert found.gates[Tier.GOLD].required_tests == ("not_null", "unique")
    assert found.provenance[f"{GATES}.gold.required_tests"] == "b"


def test_an_option_and_a_rule_that_are_called_like_a_setting_are_none():
    config = {
        "options": {"required_tests": "b", "enforcement": "low"},
        "weight_classes": {"gold.required_tests": "statistical_checks"},
    }

    found = resolved({"options": {"required_tests": "a"}}, config)

    assert found.options == config["options"]
    assert found.weight_classes == config["weight_classes"]


def test_provider_timeout_and_options_are_anybodys():
    found = resolve_layers(
        [
            layer({"timeout_seconds": 9, "options": {"a": 1}}, name="a", provider="soda"),
            layer({"timeout_seconds": 99, "options": {"a": True}}, name="b", provider="dbt"),
        ]
    )

    assert (found.provider, found.timeout_seconds) == ("dbt", 99)
    assert found.options == {"a": True}
    assert set(found.provenance.values()) == {"b"}


def test_a_silent_layer_leaves_a_setting_to_the_one_inside():
    found = resolved(gates(silver={"min_test_coverage": 0.9}), gates(gold={"required_tests": []}))

    assert found.gates[Tier.GOLD].required_tests == ()
    assert found.provenance[f"{GATES}.gold.required_tests"] == "b"


@pytest.mark.parametrize("lock", [SECTION, CONFIG, GATES, f"{GATES}.gold"])
def test_a_lock_at_any_depth_forbids_any_difference_below_tightening_included(lock):
    path = f"{GATES}.gold.min_test_coverage"
    outer = layer(gates(gold={"min_test_coverage": 0.9}), name="a", locked=[lock])

    for value in 0.8, 1:
        inner = layer(gates(gold={"min_test_coverage": value}), name="c")
        assert problems(outer, layer(name="b"), inner) == [("locked", (path, "a", "c"))]
    same = layer(gates(gold={"min_test_coverage": "90%"}), name="b")
    assert resolve_layers([outer, same]).locks == {lock: "a"}


def test_a_lock_of_what_nobody_set_holds_the_default():
    outer = layer(name="a", locked=[SECTION])

    assert resolve_layers([outer, layer({"timeout_seconds": 300}, name="b", provider="pandera")])
    inner = layer(
        {"timeout_seconds": 301, "options": {"x": 1}, "weight_classes": {"r": "critical_checks"}},
        name="b",
        provider="dbt",
    )
    assert problems(outer, inner) == [
        ("locked", (f"{SECTION}.provider", "a", "b")),
        ("locked", (f"{CONFIG}.timeout_seconds", "a", "b")),
        ("locked", (f"{CONFIG}.options.x", "a", "b")),
        ("locked", (f"{CONFIG}.weight_classes.r", "a", "b")),
    ]


def test_a_locked_option_of_one_is_not_true():
    outer = layer({"options": {"a": [1]}}, name="a", locked=[f"{CONFIG}.options.a"])

    assert resolve_layers([outer, layer({"options": {"a": [1.0], "b": 1}}, name="b")])
    assert problems(outer, layer({"options": {"a": [True]}}, name="b")) == [
        ("locked", (f"{CONFIG}.options.a", "a", "b"))
    ]


def test_a_lock_does_not_hold_for_the_layer_that_locks_nor_outside_of_it():
    found = resolve_layers(
        [
            layer({"timeout_seconds": 9}, name="a"),
            layer({"timeout_seconds": 8}, name="b", locked=[f"{CONFIG}.timeout_seconds"]),
        ]
    )

    assert found.timeout_seconds == 8
    assert found.locks == {f"{CONFIG}.timeout_seconds": "b"}


def test_all_problems_of_all_layers_are_said_at_once_with_their_owner():
    outer = layer({"thresholds": {"min_score": 90}}, name="a", scope="domain")
    middle = layer({"thresholds": {"min_score": 80, "warn_score": 85}}, name="b", scope="domain")
    inner = layer(gates(gold={"min_test_coverage": 0}), name="a", scope="enterprise")

    assert problems(outer, middle, inner) == [
        ("duplicate_layer", ("a",)),
        ("scope", ("b", "a")),
        ("scope", ("a", "b")),
        ("loosened", (f"{CONFIG}.thresholds.min_score", "a", "b")),
        (
            "bounds_reversed",
            (f"{CONFIG}.thresholds.warn_score", f"{CONFIG}.thresholds.min_score", "b", "a"),
        ),
    ]


def test_scopes_narrow_and_one_may_be_left_out():
    for scopes in ["enterprise", "domain", "product"], ["enterprise", "product"], [None, "domain"]:
        layers = [
            layer(name=f"layer {place}", **({} if scope is None else {"scope": scope}))
            for place, scope in enumerate(scopes)
        ]

        assert resolve_layers(layers).name == f"layer {len(scopes) - 1}"


def test_a_single_document_must_be_complete():
    with pytest.raises(InvalidPolicyError, match=r"/extends: it extends 'base\.json'"):
        parse_platform_manifest(manifest_document(extends="base.json"))
    with pytest.raises(ValueError, match="at least one layer"):
        resolve_layers([])


few = settings(max_examples=40)
shares = st.sampled_from([0, 0.5, 0.8, 1])
tests = st.lists(st.sampled_from(sorted(TEST_TYPES)), max_size=2)
gate = st.fixed_dictionaries({}, optional={"min_test_coverage": shares, "required_tests": tests})
fields = st.lists(st.sampled_from("xyz"), unique=True, max_size=3)
configurations = st.fixed_dictionaries(
    {},
    optional={
        "timeout_seconds": st.integers(1, 3),
        "options": st.dictionaries(st.sampled_from("pq"), st.sampled_from([1, True, "1"])),
        "quality_gates": st.fixed_dictionaries(
            {},
            optional={
                "enforcement": st.sampled_from([str(one) for one in Enforcement]),
                "technical_fields": fields,
                "gold": gate,
                "bronze": gate,
                "waivers": st.lists(
                    st.sampled_from("xyz").map(lambda name: waiver(field=name)), max_size=2
                ),
            },
        ),
        "weights": st.dictionaries(st.sampled_from([str(one) for one in WeightClass]), st.just(2)),
        "thresholds": st.fixed_dictionaries(
            {}, optional={"min_score": st.integers(60, 62), "warn_score": st.integers(80, 82)}
        ),
        "score_gates_promotion": st.booleans(),
    },
)
locks = st.lists(st.sampled_from([GATES, f"{GATES}.gold", f"{CONFIG}.options"]), max_size=1)


def resolution(layers):
    """Return what layers amount to, or None where they are refused."""
    try:
        return resolve_layers(layers)
    except InvalidPolicyError:
        return None


@few
@given(configurations, locks, configurations)
def test_a_layer_that_sets_nothing_changes_nothing_wherever_it_is(outer, locked, inner):
    first, second = layer(outer, name="a", locked=locked), layer(inner, name="b")
    expected = resolution([first, second])

    for place in range(3):
        layers = [first, second]
        layers.insert(place, layer(name="empty"))
        found = resolution(layers)

        if expected is None:
            assert found is None
        else:
            assert found.data_quality() == expected.data_quality()
            assert (found.provenance, found.locks) == (expected.provenance, expected.locks)


def is_no_looser(path, held, now):
    """Tell whether a setting asks for no less than another."""
    name = path.rpartition(".")[2]
    if name == "enforcement":
        return list(Enforcement).index(now) >= list(Enforcement).index(held)
    if name in ("technical_fields", "waivers"):
        return set(now) <= set(held)
    if name == "required_tests":
        return set(now) >= set(held)
    if path.startswith(f"{CONFIG}.weights"):
        return now == held
    return now >= held


@few
@given(configurations, locks, configurations, configurations)
def test_no_layer_inside_loosens_what_one_outside_sets(outer, locked, middle, inner):
    first = layer(outer, name="a", locked=locked)
    inside, refused = merged(first, layer(middle, name="b"))
    found, refused_inside = merged(inside, layer(inner, name="c"))

    for path, held in first.settings.items():
        if not path.startswith((f"{CONFIG}.options", f"{CONFIG}.timeout_seconds")):
            assert is_no_looser(path, held, found.settings[path])
    if not refused and not refused_inside and GATES in locked:
        assert (
            found.settings.items()
            >= {
                path: value for path, value in first.settings.items() if path.startswith(GATES)
            }.items()
        )


@few
@given(configurations, configurations, configurations)
def test_how_layers_are_grouped_makes_no_difference(outer, middle, inner):
    first, second, third = (
        layer(one, name=name) for name, one in zip("abc", (outer, middle, inner), strict=True)
    )
    left, refused = merged(first, second)
    right, refused_inside = merged(second, third)
    whole, refused_left = merged(left, third)
    other, refused_right = merged(first, right)

    if not refused and not refused_left:
        assert not refused_inside
        assert not refused_right
        assert whole == other
        assert reduce(lambda held, one: merged(held, one)[0], [first, second, third]) == whole
