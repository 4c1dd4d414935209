"""Evaluators that leave the rules about rows to a quality provider.

Schema rules, the detected schema, its comparison and the fingerprint are native whatever the
provider; so a payload has one identity, and a rule about a missing field one verdict.

Source: SPEC sections 5 and 14.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from typing_extensions import override

from datasource_governance.domain.appraisal import Appraisal
from datasource_governance.domain.artifact import MediaType
from datasource_governance.domain.quality_expectation import ContentRule, expectations
from datasource_governance.domain.quality_policy import QualityPolicy
from datasource_governance.domain.quality_provider import ProviderBinding
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.validation import RuleOutcome, Validation
from datasource_governance.errors import PluginExecutionError, UnreadableSourceError
from datasource_governance.evaluation import kernel, outcomes
from datasource_governance.evaluation.artifacts import ArtifactReader
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload, decode_payload
from datasource_governance.ports import Payload
from datasource_governance.quality.plugin import DataQualityPlugin
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES
from datasource_governance.sources.child import answered_table, largest_answer

if TYPE_CHECKING:
    import pyarrow as pa


class ProviderEvaluator(PanderaEvaluator):
    """Validates payloads; see ports.Evaluator. A provider that fails leaves its rules `error`."""

    def __init__(self, plugin: DataQualityPlugin, appraisal: Appraisal) -> None:
        super().__init__()
        self._plugin = plugin
        self._bound = appraisal

    @override
    def validate(
        self, policy: QualityPolicy, payload: Payload, previous: TableSchema | None
    ) -> Validation:
        typed = _typed(payload)
        native = super().validate(schema_rules(policy), typed, previous)
        found = evaluated(self._plugin, policy, typed.table)
        return self._bound.of(completed(policy, native, found))

    @property
    @override
    def provider(self) -> ProviderBinding:
        return self._bound.provider


class ProviderArtifactReader(ArtifactReader):
    """Looks into artifacts; see ports.artifacts.ArtifactEvaluator.

    The rows are handed over in memory, so that of an artifact with more bytes than `memory_bytes`
    no rule about rows is evaluated.
    """

    def __init__(
        self,
        plugin: DataQualityPlugin,
        appraisal: Appraisal,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        super().__init__(memory_bytes=memory_bytes, appraisal=appraisal)
        self._plugin = plugin

    @override
    def validate(
        self,
        policy: QualityPolicy,
        artifact: BinaryIO,
        media_type: MediaType,
        previous: TableSchema | None,
    ) -> Validation:
        native = super().validate(schema_rules(policy), artifact, media_type, previous)
        table = self._rows(artifact, media_type)
        found = {} if table is None else evaluated(self._plugin, policy, table)
        return self.appraised(completed(policy, native, found))

    def _rows(self, artifact: BinaryIO, media_type: MediaType) -> "pa.Table | None":
        """Return all rows in the typed form, decoded in a child; None for more bytes than fit."""
        most = self._memory_bytes
        try:
            answered = self._ask(
                "read",
                artifact,
                media_type,
                written_bytes=largest_answer(most),
                columns=None,
                maximum_bytes=most,
            )
        except UnreadableSourceError:
            return None
        return answered_table("the artifact", answered, most)


def schema_rules(policy: QualityPolicy) -> QualityPolicy:
    """Return the policy with the rules that are always native; it keeps its hash."""
    return outcomes.only(
        policy, [rule for rule in policy.rules if not isinstance(rule, ContentRule)]
    )


def evaluated(
    plugin: DataQualityPlugin, policy: QualityPolicy, table: "pa.Table"
) -> Mapping[str, RuleOutcome]:
    """Return what a provider finds of the rules about rows, by id; nothing where it cannot run."""
    asked = expectations(policy)
    if not asked:
        return {}
    try:
        result = plugin.execute_checks(table, asked)
    except (PluginExecutionError, UnreadableSourceError):
        return {}
    return {check.id: check for check in result.checks}


def completed(
    policy: QualityPolicy, native: Validation, found: Mapping[str, RuleOutcome]
) -> Validation:
    """Return a validation with an outcome for every rule, in policy order."""
    known: Sequence[RuleOutcome] = native.rules
    by_id = {**found, **{outcome.id: outcome for outcome in known}}
    rules = tuple(
        by_id[rule.id] if rule.id in by_id else kernel.not_evaluated(rule) for rule in policy.rules
    )
    return replace(native, rules=rules)


def _typed(payload: Payload) -> TypedPayload:
    if isinstance(payload, TypedPayload):
        return payload
    return TypedPayload(decode_payload(payload.encoded()))
