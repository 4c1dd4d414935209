"""Validate a payload in batches, in memory that a setting bounds; the verdict is the same.

Rules about single rows are run on every batch and their outcomes joined. Keys that must be unique
are kept on disk until all have been seen, and judged in partitions that hold all rows of a key.

Source: SPEC sections 5 and 18.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from datasource_governance.domain.quality_policy import QualityPolicy, RowCountRule, UniqueRule
from datasource_governance.domain.schema import TableSchema
from datasource_governance.domain.schema_diff import compare_schemas
from datasource_governance.domain.validation import RuleOutcome, Validation, assemble
from datasource_governance.evaluation import outcomes
from datasource_governance.evaluation.boundary import not_evaluable
from datasource_governance.evaluation.detect import fields_of, names_with_nulls
from datasource_governance.evaluation.fingerprint import Fingerprint
from datasource_governance.evaluation.keys_on_disk import KeysOnDisk
from datasource_governance.evaluation.spill import KeyStore, Spill
from datasource_governance.sources.batches import DEFAULT_MEMORY_BYTES, Batches
from datasource_governance.sources.refusal import shielded

if TYPE_CHECKING:
    import pyarrow as pa

ENGINE = "pandas_batches"
BATCHES_IN_MEMORY = 16
"""How many batches the memory is worth: one is read, converted, hashed and written at a time."""
_PARTITIONS_IN_MEMORY = 8
"""How many partitions of keys the memory is worth, which all rules that need keys share."""


def validate_batches(
    policy: QualityPolicy,
    batches: Batches,
    previous: TableSchema | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    on_rows: Callable[[int], object] = lambda _: None,
) -> Validation:
    """Validate a payload batch by batch; what is hashed is the same as for one in memory.

    Args:
        policy: The rules.
        batches: The payload; it is read once.
        previous: The schema to compare with.
        memory_bytes: What validation may take besides the libraries, about, if no batch is larger
            than a sixteenth of it. Keys that must be unique go to a temporary file without a name,
            of their size and up to 24 bytes a row.
        on_rows: Told after every batch how many rows have been judged.

    Raises:
        UnreadableSourceError: what the batches raise.
        EvaluationError: something went wrong; with neither a value, nor cause, nor context.
    """

    def judge() -> Validation:
        with closing(Spill()) as spill:
            judged = _Judged(policy, batches.schema, spill, memory_bytes)
            for batch in batches:
                judged.add(batch)
                on_rows(judged.row_count)
            return judged.validation(previous, rows_numbered=batches.rows_numbered)

    return shielded(judge, not_evaluable())


class _Judged:
    """What is known of a payload after some of its batches."""

    def __init__(
        self, policy: QualityPolicy, schema: "pa.Schema", spill: Spill, memory_bytes: int
    ) -> None:
        self._policy = policy
        self._schema = schema
        self.row_count = 0
        self._with_nulls: set[str] = set()
        self._content = Fingerprint(schema)
        unique = [
            rule
            for rule in policy.rules
            if isinstance(rule, UniqueRule) and set(rule.fields).issubset(schema.names)
        ]
        partition_bytes = memory_bytes // (_PARTITIONS_IN_MEMORY * max(1, len(unique)))
        self._keys = {
            rule.id: KeysOnDisk(policy, rule, KeyStore(spill, partition_bytes)) for rule in unique
        }
        self._by_batch = outcomes.only(
            policy,
            [
                rule
                for rule in policy.rules
                if rule.id not in self._keys and not isinstance(rule, RowCountRule)
            ],
        )
        self._found: dict[str, RuleOutcome] = {}
        # A payload without rows has a verdict, too.
        self.add(schema.empty_table())

    def add(self, batch: "pa.Table") -> None:
        """Judge the next rows."""
        for outcome in outcomes.of_table(self._by_batch, batch, "pandas"):
            numbered = _moved(outcome, self.row_count)
            earlier = self._found.get(outcome.id)
            self._found[outcome.id] = outcomes.joined(earlier, numbered) if earlier else numbered
        for keys in self._keys.values():
            keys.add(batch, self.row_count)
        self._content.add(batch)
        self._with_nulls |= names_with_nulls(batch)
        self.row_count += batch.num_rows

    def validation(self, previous: TableSchema | None, *, rows_numbered: bool) -> Validation:
        """Return the validation of all rows."""
        for outcome in outcomes.of_row_count(self._policy, self.row_count):
            self._found[outcome.id] = outcome
        for name, keys in self._keys.items():
            self._found[name] = keys.outcome()
        schema = fields_of(self._schema, self._with_nulls, self._policy)
        overrides = self._policy.schema_policy
        diff = None if previous is None else compare_schemas(previous, schema, overrides)
        content, byte_count = self._content.result()
        found = tuple(self._found[rule.id] for rule in self._policy.rules)
        return assemble(
            policy=self._policy,
            rules=outcomes.numbered(found, rows_numbered=rows_numbered),
            schema=schema,
            schema_diff=diff,
            row_count=self.row_count,
            byte_count=byte_count,
            fingerprint=content,
            engine=ENGINE,
            notices=outcomes.notices(self._schema.names, rows_numbered=rows_numbered),
        )


def _moved(outcome: RuleOutcome, rows_before: int) -> RuleOutcome:
    if not outcome.rows:
        return outcome
    return replace(outcome, rows=tuple(row + rows_before for row in outcome.rows))
