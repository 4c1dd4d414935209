"""Quality gates: whether datasets have the tests that their tier needs, told without any data.

Source: SPEC section 14; facts on the quality plugin, 2.1, 3 and 10.4; ADR-0044.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Final

from datasource_governance.domain.canonical import Json, canonical_bytes
from datasource_governance.domain.coverage import (
    Coverage,
    Dataset,
    DatasetCoverage,
    coverage_of,
    share_of,
)
from datasource_governance.domain.datasource_manifest import FORMAT, declared_datasets
from datasource_governance.domain.dbt_manifest import dbt_datasets, dbt_version
from datasource_governance.domain.policy_keys import Key, Record, read_document
from datasource_governance.domain.tier import DEFAULT_GATES, Gate, Share, Tier, Waiver
from datasource_governance.errors import InvalidPolicyError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationResult:
    """What a check at compile time found: every problem at once, and how much is tested."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def success(self) -> bool:
        """Whether there is no problem; warnings are none."""
        return not self.problems

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "success": self.success,
            "problems": [_document(one) for one in self.problems],
            "warnings": [_document(one) for one in self.warnings],
            "coverage": self.coverage.document(),
        }


def datasets_of(manifest: Mapping[str, object]) -> tuple[Dataset, ...]:
    """Read our compiled manifest or one of dbt, in its order.

    Raises:
        InvalidPolicyError: with every problem; also for a manifest that is neither.
    """
    if manifest.get("format") == FORMAT:
        return declared_datasets(manifest)
    if dbt_version(manifest) is not None:
        return dbt_datasets(manifest)
    message = f"expected a manifest of format {FORMAT}, or the manifest.json of dbt"
    raise InvalidPolicyError("manifest", [Problem(kind="unknown_manifest", message=message)])


def gates_for(required_coverage: Mapping[str, object]) -> Mapping[Tier, Gate]:
    """Return the default gates with other coverages, as "80%" or 0.8 by tier.

    Raises:
        InvalidPolicyError: a tier is unknown, or a coverage is no share; with every problem.
    """
    given = read_document(_REQUIRED_COVERAGE, required_coverage, what="required coverage")
    return MappingProxyType(
        {
            tier: replace(gate, min_test_coverage=given.get(tier, gate.min_test_coverage))
            for tier, gate in DEFAULT_GATES.items()
        }
    )


def check_gates(
    manifest: Mapping[str, object],
    gates: Mapping[Tier, Gate],
    *,
    technical_fields: Collection[str] = (),
    waivers: Sequence[Waiver] = (),
    today: date,
) -> ValidationResult:
    """Return every violation of the gates, and the coverage of every dataset.

    A dataset without a tier is not gated, which is a warning; one whose tier is unknown is a
    problem. A waiver lifts one required test, or a test on one field, of the datasource that it
    names, through its last day; one that is over is a problem. A dataset of which no field is
    eligible has a coverage of 0.

    Raises:
        InvalidPolicyError: the manifest cannot be read.
    """
    datasets = datasets_of(manifest)
    coverage = coverage_of(datasets, technical_fields)
    lifted = [one for one in waivers if not one.is_expired(today)]
    problems = [_expired(one) for one in waivers if one.is_expired(today)]
    warnings = [] if datasets else [Problem(kind="no_datasets", message="there is no dataset")]
    for dataset, covered in zip(datasets, coverage.datasets, strict=True):
        if dataset.tier is None:
            warnings.append(_without_tier(dataset))
        elif dataset.tier not in set(Tier):
            problems.append(_unknown_tier(dataset))
        else:
            own = [one for one in lifted if one.datasource == dataset.id]
            problems.extend(_violations(dataset, covered, gates[Tier(dataset.tier)], own))
    return ValidationResult(problems=tuple(problems), warnings=tuple(warnings), coverage=coverage)


def gates_result(
    manifest: Mapping[str, object], required_coverage: Mapping[str, object]
) -> ValidationResult:
    """Return the result of the gates that hold without a platform manifest; nothing is raised."""
    try:
        # Without waivers it makes no difference which day it is.
        return check_gates(manifest, gates_for(required_coverage), today=date.max)
    except InvalidPolicyError as error:
        return ValidationResult(problems=error.problems)


def _violations(
    dataset: Dataset, covered: DatasetCoverage, gate: Gate, waivers: Sequence[Waiver]
) -> Iterator[Problem]:
    waived = {one.field for one in waivers}
    lacking = [name for name in covered.uncovered if name not in waived]
    enough = share_of(len(covered.eligible) - len(lacking), len(covered.eligible))
    if enough < gate.min_test_coverage:
        yield _coverage_too_low(covered, gate, lacking)
    present = {test.type for test in dataset.tests} | {one.test for one in waivers}
    for name in gate.required_tests:
        if name not in present:
            yield _test_missing(covered, name)


def _coverage_too_low(covered: DatasetCoverage, gate: Gate, lacking: Sequence[str]) -> Problem:
    who = f"{covered.dataset} ({covered.tier})"
    required = _percent(gate.min_test_coverage)
    if not covered.eligible:
        message = (
            f"{who}: no field is eligible, so that the coverage is 0 % of {required}; describe its "
            "fields, or name fewer of them technical"
        )
    else:
        rules = ", ".join(_suggested("not_null", name) for name in lacking)
        message = (
            f"{who}: {len(covered.covered)} of {len(covered.eligible)} fields have a test, "
            f"{_percent(covered.share)} of {required}; without one: {', '.join(lacking)}; "
            f"suggested: {rules}"
        )
    names = (covered.dataset, str(covered.tier), *lacking)
    return Problem(kind="coverage_too_low", names=names, message=message)


def _test_missing(covered: DatasetCoverage, name: str) -> Problem:
    first = next(iter(covered.eligible), "…")
    message = (
        f"{covered.dataset} ({covered.tier}): no test of type {name}, which is required; "
        f"suggested: {_suggested(name, first)}"
    )
    names = (covered.dataset, str(covered.tier), name)
    return Problem(kind="required_test_missing", names=names, message=message)


_SUGGESTIONS: Final[Mapping[str, tuple[str, Mapping[str, Json]]]] = MappingProxyType(
    {
        "not_null": ("present", {"type": "not_null"}),
        "unique": ("unique", {"type": "unique"}),
        "range": ("in-range", {"type": "range", "minimum": 0}),
        "referential": ("allowed", {"type": "referential", "allowed_values": ["…"]}),
        "relationships": ("allowed", {"type": "referential", "allowed_values": ["…"]}),
    }
)
"""Rules that a test of each type would be, and what their ids end with."""


def _suggested(test: str, name: str) -> str:
    """Return a rule as JSON, ready to be put into a policy and completed."""
    if test not in _SUGGESTIONS:
        rule: dict[str, Json] = {"id": "rows", "type": "row_count", "minimum": 1}
    else:
        ending, keys = _SUGGESTIONS[test]
        rule = {"id": f"{name}-{ending}", "field": name, **keys}
    return canonical_bytes(rule).decode()


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _expired(waiver: Waiver) -> Problem:
    lifted = waiver.test or str(waiver.field)
    message = (
        f"{waiver.datasource}: the waiver of {lifted} expired after {waiver.expires.isoformat()}; "
        "add the test, or have it approved anew"
    )
    return Problem(kind="waiver_expired", names=(waiver.datasource, lifted), message=message)


def _without_tier(dataset: Dataset) -> Problem:
    message = f"{dataset.id}: it has no tier, so that no gate holds for it"
    return Problem(kind="no_tier", names=(dataset.id,), message=message)


def _unknown_tier(dataset: Dataset) -> Problem:
    message = f"{dataset.id}: expected a tier of {', '.join(Tier)}, got {dataset.tier!r}"
    return Problem(kind="unknown_tier", names=(dataset.id, str(dataset.tier)), message=message)


def _document(problem: Problem) -> dict[str, Json]:
    return {
        "kind": problem.kind,
        "message": problem.message,
        "pointer": problem.pointer,
        "names": list(problem.names),
    }


_REQUIRED_COVERAGE = Record(
    keys=tuple(Key(tier, Share()) for tier in Tier),
    build=lambda **given: {tier: share for tier, share in given.items() if share is not None},
)
