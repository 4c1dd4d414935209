"""Work on the blocks of a CSV file in threads: Arrow computes without Python's lock.

Source: SPEC section 18.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")

THREADS = min(4, os.cpu_count() or 1)


def in_order(find: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
    """Yield what is found in every item, in order; at most one item more than threads is held."""
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[Found]] = deque()
        for item in items:
            waiting.append(pool.submit(find, item))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
