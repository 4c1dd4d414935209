"""Who is told of check runs. Source: SPEC section 14."""

from abc import ABC, abstractmethod

from typing_extensions import override

from datasource_governance.domain.quality_check import QualityCheckResult


class LineageEmitter(ABC):
    """Is told when checks of a dataset begin, and what came of them; never of a cell value."""

    @abstractmethod
    def started(self, dataset: str) -> str:
        """Tell that checks of a dataset began; return the id of that run."""

    @abstractmethod
    def finished(self, run: str, result: QualityCheckResult) -> None:
        """Tell what came of a run."""


class NoopEmitter(LineageEmitter):
    """Tells nobody."""

    @override
    def started(self, dataset: str) -> str:
        return ""

    @override
    def finished(self, run: str, result: QualityCheckResult) -> None:
        pass
