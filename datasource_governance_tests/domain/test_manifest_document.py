import pytest

from datasource_governance.domain.manifest_document import Scope, parse_layer
from datasource_governance.domain.tier import Enforcement
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


def problems(document):
    """Return (kind, pointer) of every problem."""
    with pytest.raises(InvalidPolicyError) as caught:
        parse_layer(document)

    return [(one.kind, one.pointer) for one in caught.value.problems]


def test_a_layer_knows_what_it_sets_and_nothing_else():
    found = layer(
        {
            "options": {"level": {"deep": 1}, "on": False},
            "quality_gates": {"enforcement": "warn", "gold": {"min_test_coverage": "90%"}},
            "weights": {"critical_checks": 5},
            "weight_classes": {"a.b": "statistical_checks"},
            "score_gates_promotion": False,
        },
        provider="soda",
        scope="domain",
        extends="enterprise.json",
        locked=[f"{SECTION}.provider"],
    )

    assert found.settings == {
        f"{SECTION}.provider": "soda",
        f"{CONFIG}.options.level": {"deep": 1},
        f"{CONFIG}.options.on": False,
        f"{GATES}.enforcement": Enforcement.WARN,
        f"{GATES}.gold.min_test_coverage": 0.9,
        f"{CONFIG}.weights.critical_checks": 5.0,
        f"{CONFIG}.weight_classes.a.b": "statistical_checks",
        f"{CONFIG}.score_gates_promotion": False,
    }
    assert set(found.provenance.values()) == {"acme"}
    assert found.provenance.keys() == found.settings.keys()
    assert found.locks == {f"{SECTION}.provider": "acme"}
    assert (found.scope, found.extends) == (Scope.DOMAIN, "enterprise.json")


def test_other_plugins_are_not_looked_at():
    document = manifest_document()
    document["plugins"] = {"compute": ["anything"], "catalog": None}

    assert parse_layer(document).settings == {}
    del document["plugins"]
    assert parse_layer(document).settings == {}


def test_everything_wrong_is_said_at_once_and_where():
    config = {
        "timeout_seconds": 0,
        "options": {"a.b": 1, "none": None},
        "quality_gates": {
            "enforcement": "strong",
            "technical_fields": ["id", "id"],
            "platinum": {},
            "gold": {"min_test_coverage": 80, "required_tests": ["none"]},
            "waivers": [waiver(field="x", test="unique"), {"datasource": "orders"}],
        },
        "weights": {"critical_checks": 0},
        "weight_classes": {"r": "blocker"},
        "thresholds": {"min_score": 90, "warn_score": 80},
        "score_gates_promotion": "yes",
    }
    document = manifest_document(config, provider="", locked=["plugins.compute"], kind="Config")

    at, gates_at = "/plugins/data_quality/config", "/plugins/data_quality/config/quality_gates"
    assert set(problems({**document, "apiVersion": "v2", "owner": "me"})) == {
        ("unknown_key", "/owner"),
        ("invalid_value", "/apiVersion"),
        ("invalid_value", "/kind"),
        ("invalid_value", "/plugins/data_quality/provider"),
        ("invalid_value", f"{at}/timeout_seconds"),
        ("invalid_value", f"{at}/options/a.b"),
        ("invalid_value", f"{at}/options/none"),
        ("invalid_value", f"{gates_at}/enforcement"),
        ("invalid_value", f"{gates_at}/technical_fields/1"),
        ("unknown_key", f"{gates_at}/platinum"),
        ("invalid_value", f"{gates_at}/gold/min_test_coverage"),
        ("invalid_value", f"{gates_at}/gold/required_tests/0"),
        ("conflicting_keys", f"{gates_at}/waivers/0"),
        ("missing_key", f"{gates_at}/waivers/1"),
        ("invalid_value", f"{at}/weights/critical_checks"),
        ("invalid_value", f"{at}/weight_classes/r"),
        ("bounds_reversed", f"{at}/thresholds"),
        ("invalid_value", f"{at}/score_gates_promotion"),
        ("invalid_value", "/locked/0"),
    }


@pytest.mark.parametrize(
    ("key", "fine", "refused"),
    [
        ("timeout_seconds", [1, 3600], [0, 3601, 1.5, True]),
        (
            "thresholds",
            [{"min_score": 0, "warn_score": 0}, {"min_score": 100}],
            [{"min_score": -1}],
        ),
        ("thresholds", [{"warn_score": 100}], [{"warn_score": 100.5}, {"warn_score": True}]),
        ("weights", [{"standard_checks": 1e-9}], [{"standard_checks": 0}, {"blocker": 1}]),
    ],
)
def test_limits_are_inclusive_and_a_weight_is_above_zero(key, fine, refused):
    for value in fine:
        assert layer({key: value}).settings
    for value in refused:
        assert len(problems(manifest_document({key: value}))) == 1


@pytest.mark.parametrize(
    "path",
    [
        SECTION,
        CONFIG,
        GATES,
        f"{GATES}.gold",
        f"{GATES}.gold.required_tests",
        f"{CONFIG}.options",
        f"{CONFIG}.options.executable",
        f"{CONFIG}.weight_classes.a.rule.of.ours",
    ],
)
def test_what_can_be_set_can_be_locked_at_any_depth(path):
    assert layer(locked=[path]).locks == {path: "acme"}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "plugins",
        "data_quality",
        f"{GATES}.platinum",
        f"{GATES}.gold.",
        f"{CONFIG}.options.",
        f"{CONFIG}.options.a.b",
        f"{CONFIG}.weight_classes.",
        1,
    ],
)
def test_a_lock_that_would_lock_nothing_is_refused(path):
    assert problems(manifest_document(locked=[path])) == [("invalid_value", "/locked/0")]


def test_what_a_manifest_must_have_is_asked_for():
    assert problems({}) == [("missing_key", "")] * 3
    assert problems(manifest_document(gates(), scope="team")) == [("invalid_value", "/scope")]
