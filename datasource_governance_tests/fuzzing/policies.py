"""The bytes of a document: every reader takes them, or refuses them with every problem.

What a refusal may quote is a policy's own words, which its readers may see; but a text that is no
JSON, or the codes of a code set, come out of no refusal.
"""

import json
import re
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from datasource_governance.domain.approval_policy import parse_approval_policy
from datasource_governance.domain.canonical import load_canonical
from datasource_governance.domain.datasource import parse_datasource
from datasource_governance.domain.quality_policy import RULES, parse_quality_policy
from datasource_governance.domain.retention_policy import parse_retention_policy
from datasource_governance.domain.schema import DataType
from datasource_governance.domain.schema_diff import Change, Classification
from datasource_governance.domain.schema_document import parse_declared_types, parse_schema
from datasource_governance.errors import InvalidPolicyError
from datasource_governance_tests import case_files
from datasource_governance_tests.fuzzing.breeding import Breed, breed_json
from datasource_governance_tests.fuzzing.campaign import BrokenPromiseError, Sample

CANARY = "zq-canary-7"
_UNPRINTABLE = re.compile("[\\0\\ud800-\\udfff]")

Reader = Callable[[Any], Any]


def _no_files(name: str) -> bytes:
    raise FileNotFoundError(name)


READERS: Mapping[str, Reader] = {
    "quality": parse_quality_policy,
    "approval": parse_approval_policy,
    "retention": parse_retention_policy,
    "schema": parse_schema,
    "types": parse_declared_types,
    "declaration": lambda document: parse_datasource(document, _no_files),
}
HASHED = ("quality", "approval", "retention")

_KEYS = {key.name for record in RULES.values() for key in record.keys}
_WORDS = (
    *sorted(_KEYS),
    *("version", "rules", "type", "required", "required_approvals", "expires_after_hours"),
    *("separation_of_duties", "policy_ref", "enabled", "stage_days", "schema_policy", "$integer"),
    *(
        "id",
        "kind",
        "owners",
        "tags",
        "source",
        "csv",
        "types",
        "governance",
        "quality_policy",
        "approval_policy",
        "p.json",
        CANARY,
    ),
    *(*RULES, *DataType, *Change, *Classification),
)
_ATOMS = (
    *("0", "-0", "1", "1.0", "1e1", "0.1", "-1", "1e308", "1e309", "1e-400", "1E+2", "-0.0"),
    *("9007199254740993", "18446744073709551616", "1" + "0" * 400, "0.1234567890123456789"),
    *("1e99999999999999999999", "0.10000000000000000000000", "NaN", "-Infinity", "01", "+1", "1."),
    *("null", "true", "false", "[]", "{}", '""', '" "', '"\\u0000"', '"\\ud800"', '"\ud800"'),
    *(
        '"\\ud83d\\ude00"',
        '"e\\u0301"',
        '"\\u001f"',
        '"\u2028"',
        '"' + "x" * 129 + '"',
        '{"a":1,"a":2}',
    ),
    *(
        "[" * 40 + "]" * 40,
        "[" * 3000,
        '{"$integer":"1"}',
        '{"$$integer":"1"}',
        "\ufeff",
        "\\",
        '"',
    ),
)

_BREED = breed_json(_WORDS, _ATOMS)


def _seeds() -> list[Sample]:
    parsing = case_files.load_cases(case_files.PACKAGED, "policy_parse")
    hashing = case_files.load_cases(case_files.PACKAGED, "policy_hash")
    texts = [case.input["policy_text"] for case in parsing if "policy_text" in case.input]
    texts += [text for case in hashing for text in case.input["texts"] if isinstance(text, str)]
    return [Sample("case.json", text.encode()) for text in texts]


@dataclass
class Policies:
    """The target; its readers can be exchanged, to see whether it notices.

    `seconds` are those of the processor that one reader may take for one small document.
    """

    readers: Mapping[str, Reader] = field(default_factory=lambda: READERS)
    seconds: float = 1.0
    seeds: list[Sample] = field(default_factory=_seeds)
    breed: Breed = _BREED

    def check(self, sample: Sample) -> Hashable:
        """Return, by reader, the kinds of problem; none where the document was taken."""
        quotable = _may_be_quoted(sample.content)
        return tuple(
            self._judged(name, read, sample.content, quotable)
            for name, read in self.readers.items()
        )

    def _judged(self, name: str, read: Reader, content: bytes, quotable: bool) -> tuple[str, ...]:
        started = time.thread_time()
        refusal = broken = document = None
        try:
            document = read(content)
        except InvalidPolicyError as error:
            refusal = error
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            broken = type(error).__name__
        if broken is not None:
            raise BrokenPromiseError(f"the {name} reader raised {broken}")
        if time.thread_time() - started > self.seconds and self._is_slow(read, content):
            raise BrokenPromiseError(f"the {name} reader took more than {self.seconds} s")
        if refusal is None:
            _check_hash(name, read, content, document)
            return ()
        _check_refusal(name, refusal, quotable)
        return tuple(sorted({problem.kind for problem in refusal.problems}))

    def _is_slow(self, read: Reader, content: bytes) -> bool:
        """Read it twice more: once, the garbage of all tests before may have been collected."""
        for _ in range(2):
            started = time.thread_time()
            with suppress(InvalidPolicyError):
                read(content)
            if time.thread_time() - started <= self.seconds:
                return False
        return True


def _check_refusal(name: str, refusal: InvalidPolicyError, quotable: bool) -> None:
    if not refusal.problems:
        raise BrokenPromiseError(f"the {name} reader refused for no reason")
    if refusal.__cause__ or refusal.__context__:
        raise BrokenPromiseError(f"the {name} reader kept a foreign exception")
    said = f"{refusal} {refusal.problems} {refusal.facts}"
    if CANARY in said and not quotable:
        raise BrokenPromiseError(f"the {name} reader quoted a value")
    if _UNPRINTABLE.search(said):
        raise BrokenPromiseError(f"the {name} reader said what cannot be printed or stored")


def _check_hash(name: str, read: Reader, content: bytes, document: Any) -> None:
    if name not in HASHED:
        return
    if read(content).hash != document.hash:
        raise BrokenPromiseError(f"the {name} reader hashed one document in two ways")
    recorded = load_canonical(document.canonical)
    if name == "approval":
        # The normalised form, in which null stands for what was left out.
        recorded = {key: value for key, value in recorded.items() if value is not None}
    again = read(recorded)
    if (again.hash, again.canonical) != (document.hash, document.canonical):
        raise BrokenPromiseError(f"the {name} reader hashed its own canonical bytes in another way")


def _may_be_quoted(content: bytes) -> bool:
    """Tell whether the canary is elsewhere in the document than among the codes of a code set."""
    try:
        document = json.loads(content.decode(), object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RecursionError):
        return False
    return _quotable(document)


def _quotable(value: object) -> bool:
    if isinstance(value, tuple):
        key, member = value
        is_codes = key == "allowed_values" and isinstance(member, list)
        return CANARY in key or any(
            _quotable(item)
            for item in (member if is_codes else [member])
            if not (is_codes and isinstance(item, str))
        )
    if isinstance(value, list):
        return any(map(_quotable, value))
    return isinstance(value, str) and CANARY in value
