"""Forks wait until nothing is computed: a child would inherit locks of torch and its libraries that
no thread of it can open again."""

from __future__ import annotations

import os
import threading
from functools import wraps
from typing import Any, Callable, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


class Running:
    """Counts the calls that are under way. A fork begins when no other thread has one, and calls
    that come meanwhile wait for it."""

    def __init__(self, depth: int = 0) -> None:
        self._changed = threading.Condition()
        self._count = depth
        self._forking = False
        self._own = threading.local()
        self._own.depth = depth

    @property
    def depth(self) -> int:
        """Calls of this thread, one inside the other."""
        return getattr(self._own, "depth", 0)

    def __enter__(self) -> None:
        with self._changed:
            if self.depth == 0:
                self._changed.wait_for(lambda: not self._forking)
            self._count += 1
        self._own.depth = self.depth + 1

    def __exit__(self, *error: Any) -> None:
        self._own.depth = self.depth - 1
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def before_fork(self) -> None:
        self._changed.acquire()
        self._forking = True
        self._changed.wait_for(lambda: self._count == self.depth)

    def after_in_parent(self) -> None:
        self._forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        self.__init__(self.depth)  # type: ignore[misc]
        # The threads of torch's pool do not exist here, and would be waited for.
        torch.set_num_threads(1)


RUNNING = Running()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(
        before=RUNNING.before_fork,
        after_in_parent=RUNNING.after_in_parent,
        after_in_child=RUNNING.after_in_child,
    )


def forks_wait(function: Function) -> Function:
    """No process forks while the function runs in another thread."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with RUNNING:
            return function(*args, **kwargs)

    return cast(Function, wrapped)
