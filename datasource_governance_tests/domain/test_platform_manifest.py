from datasource_governance.domain.platform_manifest import DEFAULTS
from datasource_governance.domain.quality_score import DEFAULT_WEIGHTS, Thresholds
from datasource_governance.domain.tier import DEFAULT_GATES, Enforcement, Tier
from datasource_governance_tests.manifests import (
    CONFIG,
    gates,
    manifest_document,
    platform_manifest,
    waiver,
)


def test_a_manifest_that_says_nothing_is_the_native_provider_with_every_default():
    found = platform_manifest()

    assert (found.name, found.version) == ("acme", "1.0.0")
    assert (found.provider, found.timeout_seconds, found.options) == ("pandera", 300, {})
    assert (found.enforcement, found.gates) == (Enforcement.STRICT, DEFAULT_GATES)
    assert (found.technical_fields, found.waivers) == ((), ())
    assert (found.weights, found.weight_classes) == (DEFAULT_WEIGHTS, {})
    assert (found.thresholds, found.score_gates_promotion) == (Thresholds(), False)
    assert (found.provenance, found.locks) == ({}, {})


def test_what_is_set_stands_where_it_belongs():
    found = platform_manifest(
        {
            "timeout_seconds": 60,
            "options": {"executable": "dbt"},
            "quality_gates": {
                "enforcement": "warn",
                "technical_fields": ["loaded_at"],
                "bronze": {"min_test_coverage": "60%", "required_tests": ["unique"]},
                "waivers": [waiver()],
            },
            "weights": {"standard_checks": 2},
            "weight_classes": {"a.b": "statistical_checks"},
            "thresholds": {"min_score": 60},
            "score_gates_promotion": True,
        },
        provider="dbt",
    )

    assert (found.provider, found.timeout_seconds) == ("dbt", 60)
    assert found.options == {"executable": "dbt"}
    assert (found.enforcement, found.technical_fields) == (Enforcement.WARN, ("loaded_at",))
    assert found.gates[Tier.BRONZE].document() == {
        "min_test_coverage": 0.6,
        "required_tests": ["unique"],
    }
    assert found.gates[Tier.GOLD] == DEFAULT_GATES[Tier.GOLD]
    assert [one.document() for one in found.waivers] == [waiver()]
    assert found.weights == {**DEFAULT_WEIGHTS, "standard_checks": 2}
    assert found.weight_classes == {"a.b": "statistical_checks"}
    assert found.thresholds == Thresholds(min_score=60, warn_score=85)
    assert found.score_gates_promotion is True
    assert found.provenance[f"{CONFIG}.timeout_seconds"] == "acme"


def test_the_resolved_section_says_every_default_and_reads_as_itself():
    found = platform_manifest({"weight_classes": {"r": "standard_checks"}, **gates(waivers=[])})
    section = found.data_quality()

    again = platform_manifest(section["config"], provider=section["provider"])

    assert again.data_quality() == section
    assert again.configuration_hash == found.configuration_hash
    assert again.provenance.keys() >= DEFAULTS.keys()


def test_a_stage_is_bound_to_how_it_is_evaluated_and_not_to_gates_or_spelling():
    default = platform_manifest().configuration_hash

    same = [
        platform_manifest({"timeout_seconds": 300}),
        platform_manifest(name="other"),
        platform_manifest(gates(gold={"min_test_coverage": "100%"})),
        platform_manifest(locked=[CONFIG]),
        platform_manifest(gates(enforcement="off")),
        platform_manifest(gates(technical_fields=["id"])),
        platform_manifest(gates(waivers=[waiver()])),
        platform_manifest(gates(gold={"min_test_coverage": 0.9})),
    ]
    others = [
        platform_manifest(provider="soda"),
        platform_manifest({"timeout_seconds": 301}),
        platform_manifest({"options": {"a": 1}}),
        platform_manifest({"options": {"a": True}}),
        platform_manifest({"weights": {"critical_checks": 4}}),
        platform_manifest({"weight_classes": {"r": "critical_checks"}}),
        platform_manifest({"thresholds": {"min_score": 71}}),
        platform_manifest({"score_gates_promotion": True}),
    ]

    assert {one.configuration_hash for one in same} == {default}
    assert len({default, *(one.configuration_hash for one in others)}) == 1 + len(others)


def test_a_default_warning_threshold_rises_with_the_minimum():
    assert platform_manifest({"thresholds": {"min_score": 95}}).thresholds == Thresholds(
        min_score=95, warn_score=95
    )


def test_a_manifest_has_no_more_than_it_is_given():
    document = manifest_document({"options": {"a": [1]}})

    options = platform_manifest({"options": {"a": [1]}}).options

    assert options == document["plugins"]["data_quality"]["config"]["options"]
