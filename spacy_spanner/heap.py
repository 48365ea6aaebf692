"""Memory that training freed goes back to the system. Batches of ever other sizes leave gaps in the
heap of glibc, which it keeps: a long training otherwise seems to need ever more."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any, Optional

EVERY = 128  # updates; giving back takes milliseconds


def find_trim() -> Optional[Any]:
    """The function of glibc; other systems have none, nor its trouble."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


TRIM = find_trim()
UPDATES = count(1)


def after_update() -> None:
    """To be called after each update of weights."""
    if next(UPDATES) % EVERY == 0 and TRIM is not None:
        TRIM(0)
