"""Ctrl-C and SIGTERM: an exception that ends a run in order, or a note that a loop looks at."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any, Callable, Iterator

STOPS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal asked this process to stop. No `Exception`, so that no component catches it."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number  # as shells count


@contextlib.contextmanager
def handled(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Call the handler for Ctrl-C and SIGTERM. Only a main thread can: others change nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in STOPS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def interrupt(number: int, frame: Any) -> None:
    """A handler that ends what runs now; what comes while workers are being ended is ignored."""
    for stop in STOPS:
        signal.signal(stop, signal.SIG_IGN)
    raise Interrupted(number)


class SignalNote:
    """A handler that only notes the signal, for loops in which nothing may be cut off. A second one
    ends the process, except under `torchrun`, which passes on what the terminal has already sent."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int, frame: Any) -> None:
        if self.number == number and "TORCHELASTIC_RUN_ID" not in os.environ:
            raise Interrupted(number)
        self.number = number
