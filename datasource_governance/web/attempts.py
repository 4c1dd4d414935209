"""Slow down those who guess a password.

Source: SPEC section 16; NIST SP 800-63B-4, section 3.2.2.
"""

from collections import OrderedDict
from dataclasses import dataclass

FREE_FAILURES = 5
LONGEST_PAUSE_SECONDS = 60.0
_MAXIMUM_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    last_at: float


class Attempts:
    """Failed attempts by account name, in memory; `now` is any clock in seconds that never jumps.

    After five failures every further attempt must wait twice as long as the one before, from one
    second up to a minute, whether the account exists or not. Nobody is locked out for longer.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def pause(self, name: str, now: float) -> float:
        """Return for how many seconds no attempt is considered; 0 when one is."""
        failures = self._failures.get(name)
        if failures is None or failures.count < FREE_FAILURES:
            return 0.0
        pause = min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures.count - FREE_FAILURES))
        return max(0.0, failures.last_at + pause - now)

    def failed(self, name: str, now: float) -> None:
        """Count a failure; of very many names the longest unused is forgotten."""
        before = self._failures.pop(name, None)
        # Beyond this count the pause grows no more, and the power would overflow one day.
        count = min((before.count if before else 0) + 1, 100)
        self._failures[name] = _Failures(count, now)
        if len(self._failures) > _MAXIMUM_NAMES:
            self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name."""
        self._failures.pop(name, None)
