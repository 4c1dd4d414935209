"""Datasets and their tests, whoever describes them, and how much of them is tested.

Source: SPEC section 14; facts on the quality plugin, 3 and 10.4.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from datasource_governance.domain.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTest:
    """One test, by its canonical type. Without `fields` it is about the dataset as a whole."""

    type: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A datasource or a model, as some manifest describes it.

    `tier` is as written there, None where there is none; `technical` are fields that the manifest
    itself says need no test.
    """

    id: str
    tier: str | None
    fields: tuple[str, ...]
    tests: tuple[DatasetTest, ...]
    technical: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCoverage:
    """Which eligible fields of a dataset have a test; technical fields are not eligible."""

    dataset: str
    tier: str | None
    eligible: tuple[str, ...]
    covered: frozenset[str]
    has_test: bool

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The eligible fields without a test, in the dataset's order."""
        return tuple(name for name in self.eligible if name not in self.covered)

    @property
    def share(self) -> float:
        """The share of eligible fields that are covered; 0 where no field is eligible."""
        return share_of(len(self.covered), len(self.eligible))

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "dataset": self.dataset,
            "tier": self.tier,
            "eligible": len(self.eligible),
            "covered": len(self.covered),
            "share": self.share,
            "uncovered": list(self.uncovered),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of a manifest is tested.

    `models` is the share of datasets that have any test at all, by tier as the manifest writes it.
    """

    datasets: tuple[DatasetCoverage, ...] = ()

    @property
    def models(self) -> Mapping[str, float]:
        """The share of the datasets of each tier that have a test, whatever it is about."""
        tested: dict[str, list[bool]] = {}
        for one in self.datasets:
            if one.tier is not None:
                tested.setdefault(one.tier, []).append(one.has_test)
        return MappingProxyType(
            {tier: share_of(sum(has), len(has)) for tier, has in tested.items()}
        )

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "datasets": [one.document() for one in self.datasets],
            "models": dict(self.models),
        }


def coverage_of(datasets: Sequence[Dataset], technical_fields: Collection[str] = ()) -> Coverage:
    """Return the coverage of datasets, where fields of these names are technical everywhere."""
    return Coverage(datasets=tuple(_covered(one, technical_fields) for one in datasets))


def _covered(dataset: Dataset, technical_fields: Collection[str]) -> DatasetCoverage:
    technical = {*technical_fields, *dataset.technical}
    eligible = tuple(name for name in dict.fromkeys(dataset.fields) if name not in technical)
    tested = {name for test in dataset.tests for name in test.fields}
    return DatasetCoverage(
        dataset=dataset.id,
        tier=dataset.tier,
        eligible=eligible,
        covered=frozenset(eligible) & tested,
        has_test=bool(dataset.tests),
    )


def share_of(part: int, whole: int) -> float:
    """Return a share, the nearest double; 0 of nothing."""
    return part / whole if whole else 0.0
