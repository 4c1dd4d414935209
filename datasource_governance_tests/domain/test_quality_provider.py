from dataclasses import replace

import pytest

from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.quality_provider import (
    EVALUATOR_VERSION,
    ProviderBinding,
    evaluator_version,
)
from datasource_governance.domain.target import check_evaluator
from datasource_governance.errors import GuardError
from datasource_governance_tests.domain.lifecycle import sha, stage, target, validation

SODA = ProviderBinding(name="soda", version="4.28.0", configuration=sha("manifest"))


def test_without_a_manifest_the_version_is_that_of_the_native_evaluator_alone():
    assert evaluator_version(None) == EVALUATOR_VERSION
    assert validation().evaluator_version == EVALUATOR_VERSION
    assert "provider" not in validation().document()["evaluator"]


def test_name_version_and_configuration_each_make_another_evaluator():
    bound = {
        evaluator_version(None),
        evaluator_version(SODA),
        *(
            evaluator_version(ProviderBinding(**{**SODA.document(), name: other}))
            for name, other in (
                ("name", "dbt"),
                ("version", "4.29.0"),
                ("configuration", sha("other")),
            )
        ),
    }

    assert len(bound) == 5


def test_a_provider_is_part_of_what_a_validation_hashes():
    found = replace(validation(), provider=SODA)

    assert load_canonical(found.hashed_bytes())["evaluator"] == {
        "version": EVALUATOR_VERSION,
        "provider": SODA.document(),
    }
    assert found.hash != validation().hash


def test_who_evaluates_is_among_the_settings_in_force_only_where_it_is_not_native():
    native = load_canonical(target().settings())
    chosen = load_canonical(target(evaluator_version=evaluator_version(SODA)).settings())

    assert chosen == {**native, "evaluator_version": evaluator_version(SODA)}


@pytest.mark.parametrize(
    ("in_force", "configured"),
    [(evaluator_version(SODA), None), (EVALUATOR_VERSION, SODA)],
)
def test_another_provider_than_the_one_in_force_evaluates_nothing(in_force, configured):
    with pytest.raises(GuardError, match="datasource apply") as caught:
        check_evaluator(target(evaluator_version=in_force), configured)

    assert caught.value.code == "provider_changed"


def test_the_provider_in_force_evaluates():
    check_evaluator(target(evaluator_version=evaluator_version(SODA)), SODA)
    check_evaluator(target(), None)


def test_the_identity_that_is_decided_about_has_the_provider():
    bound = stage(evaluator_version=evaluator_version(SODA))

    assert bound.identity("default")["evaluator_version"] == evaluator_version(SODA)
