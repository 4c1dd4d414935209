"""The process in which a provider runs: its whole life, and what is let out of it.

Names and types are judged natively before the provider is asked, so that a missing field fails its
rule with every provider, and does not void the rest.

Source: SPEC sections 5 and 14.
"""

import importlib
import operator
import os
import resource
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from datasource_governance.domain.canonical import Sha256, canonical_bytes, load_canonical
from datasource_governance.domain.quality_check import Evaluated
from datasource_governance.domain.quality_expectation import (
    QualityExpectation,
    read_expectations,
)
from datasource_governance.domain.quality_policy import NO_OVERRIDES, QualityPolicy
from datasource_governance.domain.validation import RuleOutcome
from datasource_governance.errors import Problem, UnreadableSourceError
from datasource_governance.quality.execution import ANSWERED, REFUSED
from datasource_governance.quality.plugin import DataQualityPlugin, PluginConfiguration
from datasource_governance.quality.targets import DIALECTS, FrameTarget, SqlTarget, Target

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = frozenset({"not_found", "too_large", "unsupported_type", "unsupported_value"})
"""Why a table is refused while it is read, in words that a provider may pass on."""


def main() -> int:
    """Read a request from stdin, run the provider, write the answer; return the exit status."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = _take_stdin()
    with open(parent, "rb", closefd=False) as stdin:
        request: Any = load_canonical(stdin.read(int.from_bytes(stdin.read(8), "big")))
    folder = Path(request["folder"])
    Thread(target=_end_with_parent, args=(parent, folder), daemon=True).start()
    try:
        answer, status = _answer(request, int(sys.argv[1])), ANSWERED
    except UnreadableSourceError as error:
        answer, status = canonical_bytes([asdict(problem) for problem in error.problems]), REFUSED
    (folder / "answer.json").write_bytes(answer)
    return status


def _take_stdin() -> int:
    """Return stdin under another number; what a provider asks people has its end at once."""
    taken = os.dup(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return taken


def _end_with_parent(parent: int, folder: Path) -> None:
    """Leave nothing behind when the process that asked is gone, and with it the end of its pipe."""
    os.read(parent, 1)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _answer(request: Any, frame: int) -> bytes:  # noqa: ANN401 - JSON of the parent
    asked = read_expectations(request["expectations"], Sha256(request["policy_hash"]))
    if request["sql"] is None:
        target: Target = _frame_target(frame)
    else:
        target = _sql_target(request["sql"], request["timeout_seconds"])
    known = judged_by_shape(asked, target)
    settled = {outcome.id for outcome in known}
    plugin = _plugin(request)
    rest = [one for one in asked if one.id not in settled]
    work = Path(request["folder"]) / "work"
    evaluated = _evaluated(plugin, target, rest, work) if rest else []
    return canonical_bytes(
        {
            "known": [
                {"id": one.id, "fields": list(one.fields), "reason": str(one.reason)}
                for one in known
            ],
            "evaluated": [_document(one) for one in evaluated],
        }
    )


def _evaluated(
    plugin: DataQualityPlugin, target: Target, asked: Sequence[QualityExpectation], work: Path
) -> list[Evaluated]:
    """Return what the provider answers.

    Raises:
        UnreadableSourceError: raised by the provider; of its problems only what is ours is kept.
    """
    try:
        return list(plugin.run(target, asked, work))
    except UnreadableSourceError as error:
        problems = [_told(problem, target) for problem in error.problems]
    raise UnreadableSourceError(plugin.name, problems)


def _told(problem: Problem, target: Target) -> Problem:
    """Return a provider's problem in our own words, with the fields that it names."""
    names = tuple(name for name in problem.names if name in target.columns.names)
    kind = problem.kind if problem.kind in _KINDS else "unreadable"
    fields = f"the field(s) {', '.join(map(repr, names))}" if names else "the data"
    return Problem(kind=kind, message=f"the provider could not read {fields}", names=names)


def _document(one: Evaluated) -> dict[str, object]:
    """Return an answer as JSON, as one not evaluated where a number in it is no whole one."""
    try:
        affected = None if one.affected is None else operator.index(one.affected)
        rows = None if one.rows is None else [operator.index(row) for row in one.rows]
    except TypeError:
        affected, rows = None, None
    return {"id": one.id, "affected": affected, "rows": rows}


def _plugin(request: Any) -> DataQualityPlugin:  # noqa: ANN401 - JSON of the parent
    module, _, name = request["plugin"].partition(":")
    configuration = PluginConfiguration(
        timeout_seconds=request["timeout_seconds"], options=request["options"]
    )
    found: type[DataQualityPlugin] = operator.attrgetter(name)(importlib.import_module(module))
    return found(configuration)


def _frame_target(frame: int) -> FrameTarget:
    import pyarrow as pa

    return FrameTarget(table=pa.ipc.open_file(pa.memory_map(f"/dev/fd/{frame}")).read_all())


def _sql_target(address: Any, timeout_seconds: int) -> SqlTarget:  # noqa: ANN401 - JSON of the parent
    from datasource_governance.sources.sql.read import SqlSource, sql_schema

    source = SqlSource(address["url"], table=address["table"], schema=address["schema"])
    return SqlTarget(
        url=address["url"],
        dialect=DIALECTS[address["url"].partition("://")[0].partition("+")[0]],
        table=address["table"],
        schema=address["schema"],
        columns=sql_schema(source),
        timeout_seconds=timeout_seconds,
    )


def judged_by_shape(asked: Sequence[QualityExpectation], target: Target) -> Sequence[RuleOutcome]:
    """Return what follows from names alone: rules about rows fail where a field is missing."""
    there = set(target.columns.names)
    rules = tuple(one.rule for one in asked if not there.issuperset(one.fields))
    if not rules:
        # Which saves an import of the engines.
        return ()
    from datasource_governance.evaluation import outcomes

    policy = QualityPolicy(
        version="expectations",
        rules=rules,
        schema_policy=NO_OVERRIDES,
        canonical=b"",
        hash=asked[0].policy_hash,
    )
    empty: pa.Table = target.columns.empty_table()
    return outcomes.of_shape(policy, empty)
