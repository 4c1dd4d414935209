"""The platform manifest of a process, and the provider and evaluators that follow from it.

Nothing is read before it is asked for, and no framework is imported before it runs.

Source: SPEC section 14.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from datasource_governance.domain.appraisal import Appraisal
from datasource_governance.domain.quality_provider import (
    NATIVE,
    ProviderBinding,
    evaluator_version,
)
from datasource_governance.domain.quality_score import QualityScore, quality_score
from datasource_governance.domain.rule_outcome import RuleOutcome
from datasource_governance.ports import Evaluator
from datasource_governance.ports.artifacts import ArtifactEvaluator
from datasource_governance.quality.plugin import DataQualityPlugin, PluginConfiguration
from datasource_governance.quality.registry import provider

if TYPE_CHECKING:
    from datasource_governance.domain.platform_manifest import PlatformManifest


@dataclass(frozen=True)
class Platform:
    """What a manifest at a path says; without a path the native evaluator, bound to nothing."""

    path: Path | None

    @cached_property
    def manifest(self) -> "PlatformManifest | None":
        """The manifest, all its layers resolved.

        Raises:
            InvalidPolicyError: with every problem of its layers.
        """
        if self.path is None:
            return None
        from datasource_governance.quality.manifests import read_platform_manifest

        return read_platform_manifest(self.path)

    @cached_property
    def plugin(self) -> DataQualityPlugin:
        """The quality provider.

        Raises:
            InvalidArgumentError: codes `provider_unknown` and `provider_incompatible`.
        """
        if self.manifest is None:
            return provider(NATIVE)
        return self.plugin_for(self.manifest.timeout_seconds)

    def plugin_for(self, timeout_seconds: int) -> DataQualityPlugin:
        """Return the quality provider for checks that may take so long; a manifest may allow less.

        Raises:
            InvalidArgumentError: as `plugin`.
        """
        if self.manifest is None:
            return provider(NATIVE, PluginConfiguration(timeout_seconds=timeout_seconds))
        configuration = PluginConfiguration(
            timeout_seconds=min(timeout_seconds, self.manifest.timeout_seconds),
            options=self.manifest.options,
        )
        return provider(self.manifest.provider, configuration)

    def score(self, checks: Sequence[RuleOutcome]) -> QualityScore:
        """Return the score of checks as the manifest weighs them, else by the default weights."""
        manifest = self.manifest
        if manifest is None:
            return quality_score(checks)
        return quality_score(checks, manifest.weights, manifest.weight_classes, manifest.thresholds)

    @cached_property
    def appraisal(self) -> Appraisal | None:
        """What is added to every validation; None without a manifest.

        Raises:
            PluginExecutionError: code `provider_not_installed`.
        """
        manifest = self.manifest
        if manifest is None:
            return None
        return Appraisal(
            provider=ProviderBinding(
                name=self.plugin.name,
                version=self.plugin.version,
                configuration=manifest.configuration_hash,
            ),
            weights=manifest.weights,
            weight_classes=manifest.weight_classes,
            thresholds=manifest.thresholds,
            gates=manifest.score_gates_promotion,
        )

    @property
    def evaluator_version(self) -> str:
        """What `datasource apply` brings into force."""
        return evaluator_version(None if self.appraisal is None else self.appraisal.provider)

    def evaluator(self) -> Evaluator:
        """Return what validates payloads; importing it brings in the engines."""
        from datasource_governance.evaluation.evaluate import PanderaEvaluator
        from datasource_governance.quality.evaluators import ProviderEvaluator

        if self.appraisal is None or self.appraisal.provider.name == NATIVE:
            return PanderaEvaluator(appraisal=self.appraisal)
        return ProviderEvaluator(self.plugin, self.appraisal)

    def artifact_evaluator(self) -> ArtifactEvaluator:
        """Return what looks into artifacts; importing it brings in the engines."""
        from datasource_governance.evaluation.artifacts import ArtifactReader
        from datasource_governance.quality.evaluators import ProviderArtifactReader

        if self.appraisal is None or self.appraisal.provider.name == NATIVE:
            return ArtifactReader(appraisal=self.appraisal)
        return ProviderArtifactReader(self.plugin, self.appraisal)
