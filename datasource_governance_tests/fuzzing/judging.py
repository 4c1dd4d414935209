"""What the child process does with a file: read it, look at the table, evaluate a policy on it."""

import resource
import traceback
from collections.abc import Callable, Hashable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from datasource_governance.domain.csv_options import CsvOptions
from datasource_governance.domain.quality_policy import parse_quality_policy
from datasource_governance.domain.validation import Status
from datasource_governance.errors import UnreadableSourceError
from datasource_governance.evaluation.evaluate import PanderaEvaluator
from datasource_governance.evaluation.payload import TypedPayload
from datasource_governance.sources.child import Content
from datasource_governance.sources.files import read_content
from datasource_governance.sources.limits import Limits
from datasource_governance_tests.fuzzing.campaign import BrokenPromiseError, Sample

if TYPE_CHECKING:
    import pyarrow as pa

CANARY = "zq-canary-7"
# A file that claims a million rows is refused, so that judging the others stays fast.
LIMITS = Limits(table_bytes=2**20, columns=50)
MOST_FIELDS = 4

PLAIN = CsvOptions()
DECLARED = CsvOptions(types={"a": "number", "s": "string", "d": "date"})
CONTINENTAL = CsvOptions(delimiter=";", decimal=",", encoding="cp1252")
WAYS = {".csv": (PLAIN, DECLARED, CONTINENTAL)}


def serve(pipe: Connection, judge: Callable[[Sample], Hashable]) -> None:
    """Answer every sample: whether the promises hold, and what became of it or which does not."""
    # A dump of the memory would be as large as all libraries together.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send("ready")
    while True:
        try:
            sample = pipe.recv()
        except EOFError:
            return
        pipe.send(_answer(sample, judge))


def _answer(sample: Sample, judge: Callable[[Sample], Hashable]) -> tuple[bool, Hashable]:
    try:
        return True, judge(sample)
    except BrokenPromiseError as finding:
        return False, str(finding)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        *_, last = traceback.extract_tb(error.__traceback__)
        return False, f"{type(error).__name__} in {last.name}"


def read_all_ways(sample: Sample) -> Hashable:
    """Return the kinds of problem, or the types of the fields, for every way to read the file.

    Raises:
        BrokenPromiseError: a promise does not hold.
    """
    suffix = f".{sample.name.rpartition('.')[2]}"
    return tuple(_read(sample, csv) for csv in WAYS.get(suffix, (PLAIN,)))


def _read(sample: Sample, csv: CsvOptions) -> tuple[str, ...]:
    content = Content(name=sample.name, stored=sample.content, csv=csv, limits=LIMITS)
    refusal = None
    try:
        table = read_content(content)
    except UnreadableSourceError as error:
        refusal = error
    if refusal is not None:
        check_refusal(refusal, sample)
        return tuple(sorted({problem.kind for problem in refusal.problems}))
    table.validate(full=True)
    return _evaluated(table)


def check_refusal(refusal: UnreadableSourceError, sample: Sample) -> None:
    """Look for what a refusal must not hold.

    Raises:
        BrokenPromiseError: it holds no problem, a value, or another exception.
    """
    if not refusal.problems:
        raise BrokenPromiseError("a file was refused for no reason")
    if refusal.__cause__ or refusal.__context__:
        raise BrokenPromiseError("a refusal kept a foreign exception")
    if not _may_be_quoted(sample) and CANARY in f"{refusal} {refusal.problems} {refusal.facts}":
        raise BrokenPromiseError("a refusal quoted a value")


def _may_be_quoted(sample: Sample) -> bool:
    """Tell whether the canary may have become a field name, which is no value.

    In a CSV file it is a value below the first line, unless that has an open quote.
    """
    header, end, _ = (
        sample.content.lstrip(b"\xef\xbb\xbf\r\n").replace(b"\r", b"\n").partition(b"\n")
    )
    is_header = CANARY.encode() in header or header.count(b'"') % 2 or not end
    return sample.name.endswith(".csv") and bool(is_header)


def _evaluated(table: "pa.Table") -> tuple[str, ...]:
    """Return the logical types of the fields, once both engines agree on every rule."""
    policy = parse_quality_policy({"version": "v1", "rules": _rules(table.column_names)})
    payload = TypedPayload(table)
    first, second = (
        PanderaEvaluator(engine).validate(policy, payload, None) for engine in ("pandas", "polars")
    )
    if first.hashed_bytes() != second.hashed_bytes():
        raise BrokenPromiseError("two engines judge a table differently")
    if any(rule.status is Status.ERROR for rule in first.rules):
        raise BrokenPromiseError("a rule could not be evaluated")
    if CANARY in str(first.hashed_bytes()) and CANARY not in str(table.column_names):
        raise BrokenPromiseError("a validation quotes a value")
    return tuple(field.type for field in first.schema.fields)


def _rules(names: list[str]) -> list[dict[str, object]]:
    rules: list[dict[str, object]] = [{"id": "rows", "type": "row_count", "minimum": 1}]
    for place, name in enumerate(names[:MOST_FIELDS]):
        about = {"field": name}
        rules += [
            {"id": f"u{place}", "type": "unique", **about},
            {"id": f"r{place}", "type": "range", "minimum": 0.1, **about},
            {
                "id": f"c{place}",
                "type": "referential",
                "allowed_values": ["", 1, 0.5, True],
                **about,
            },
        ]
    return rules
