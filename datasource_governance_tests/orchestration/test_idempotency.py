"""Templates of idempotency keys; which key a run gets is in test_publication.py."""

import pytest

from datasource_governance.orchestration.idempotency import default_key, template_problems


@pytest.mark.parametrize(
    ("template", "is_partitioned"),
    [
        ("{run}/{asset}", False),
        ("orders-{partition}", True),
        ("{run}-{partition}-{asset}", True),
        ("backfill of 2026", False),
        ("{{literal}}", False),
    ],
)
def test_a_template_may_name_run_asset_and_partition(template, is_partitioned):
    assert list(template_problems(template, is_partitioned=is_partitioned)) == []


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_the_default_has_no_problems(is_partitioned):
    template = default_key(is_partitioned=is_partitioned)

    assert list(template_problems(template, is_partitioned=is_partitioned)) == []


@pytest.mark.parametrize(
    ("template", "is_partitioned", "what"),
    [
        ("{run", False, "is no template"),
        ("{user}-{day}", False, "names day, user"),
        ("{run.tags}", False, "names run.tags"),
        ("{}", False, "names "),
        ("{run!r}", False, "formats a field"),
        ("{run:>99}", False, "formats a field"),
        ("{run}", True, "only one partition could ever be published"),
        ("{partition}", False, "the asset has no partitions"),
    ],
)
def test_everything_else_in_a_template_is_a_problem(template, is_partitioned, what):
    (problem,) = template_problems(template, is_partitioned=is_partitioned)

    assert what in problem


def test_all_problems_of_a_template_are_told_at_once():
    assert len(list(template_problems("{user:3}", is_partitioned=True))) == 3
