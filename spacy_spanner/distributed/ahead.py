"""Work that a thread does before it is asked for."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generator, Iterable, Iterator, TypeVar

T = TypeVar("T")
END: Any = object()


def ahead(items: Iterable[T], size: int) -> Generator[T, None, None]:
    """The items in order, made by one thread that is at most `size` of them ahead. Whoever leaves
    early waits for the item in work, and no other is begun. 0: there is no thread."""
    if size == 0:
        yield from items
        return
    iterator: Iterator[T] = iter(items)
    with ThreadPoolExecutor(1) as thread:
        made = deque(thread.submit(next, iterator, END) for _ in range(size))
        try:
            while (item := made.popleft().result()) is not END:
                made.append(thread.submit(next, iterator, END))
                yield item
        finally:
            for future in made:
                future.cancel()
