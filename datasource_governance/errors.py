"""Every exception raised on purpose. Imports nothing of this package.

An answer (quorum not met yet, a replay, review required) is returned; a surprise is raised.
Every class has a stable `code` and carries its facts as attributes. A message says what, where and
what to do, and never contains a cell value. `exit_code` is what the command line returns.

Source: SPEC sections 16 and 19.
"""

from collections.abc import Iterable
from dataclasses import dataclass

EXIT_NO = 1
EXIT_REFUSED = 2
EXIT_UNREADABLE = 3
_MAXIMUM_LISTED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a document or a source.

    `kind` is one of the stable words of the reference ("unknown_key", "ragged_row", ...).
    `pointer` is an RFC 6901 pointer into the document, or empty for a source.
    `names` are field names, rule ids, keys or one-based positions; never a cell value.
    """

    kind: str
    message: str
    pointer: str = ""
    names: tuple[str, ...] = ()

    def line(self) -> str:
        """Return the problem as one line for people."""
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class GovernanceError(Exception):
    """Base of everything this package raises on purpose."""

    code = "governance_error"
    exit_code = EXIT_NO

    def __init__(self, message: str, *, code: str | None = None, **facts: object) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.facts = facts


class ProblemsError(GovernanceError):
    """A document or source was refused; `problems` lists everything wrong with it at once.

    The message lists the first 100 and says how many more there are.
    """

    def __init__(self, what: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [problem.line() for problem in self.problems[:_MAXIMUM_LISTED]]
        if more := len(self.problems) - len(lines):
            lines.append(f"and {more} more")
        super().__init__("\n  ".join([f"{what} has {len(self.problems)} problem(s)", *lines]))


class InvalidPolicyError(ProblemsError, ValueError):
    """A policy, declaration or schema document does not say what it must; nothing was stored."""

    code = "invalid_document"
    exit_code = EXIT_REFUSED


class UnreadableSourceError(ProblemsError, ValueError):
    """A data source was refused before any rule saw it."""

    code = "unreadable_source"
    exit_code = EXIT_UNREADABLE


class InvalidArgumentError(GovernanceError, ValueError):
    """An argument, identifier or setting is not of the form it must have."""

    code = "invalid_argument"
    exit_code = EXIT_REFUSED


class NotFoundError(GovernanceError, LookupError):
    """A named thing does not exist for this tenant; foreign things look the same."""

    code = "not_found"
    exit_code = EXIT_REFUSED


class GuardError(GovernanceError):
    """A guard of the life cycle refused an action; nothing was written. `code` says which guard."""

    code = "refused"


class ServiceUnavailableError(GovernanceError):
    """Postgres, Dagster or another service cannot be used now; nothing was written."""

    code = "service_unavailable"
    exit_code = EXIT_UNREADABLE


class EvaluationError(GovernanceError):
    """The evaluator broke its own promise; the validation as a whole counts as not done."""

    code = "not_evaluated"
    exit_code = EXIT_UNREADABLE


class PluginExecutionError(GovernanceError, RuntimeError):
    """A quality provider could not execute checks at all; nothing was evaluated, nothing passed.

    `code` says why: `provider_not_installed`, `unsupported_connection`, `provider_timeout`,
    `provider_failed`.
    """

    code = "provider_failed"
    exit_code = EXIT_UNREADABLE
