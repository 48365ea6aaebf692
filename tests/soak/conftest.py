"""Each part has its share of the time, and leaves its figures as a line of JSON."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Iterator

import pytest

# Shares of the whole time.
SHARES = {
    "kills": 0.25,
    "documents": 0.25,
    "gold": 0.15,
    "life_cycle": 0.15,
    "readers": 0.1,
    "ranks": 0.1,
}


class Soak:
    """counts: Figures of a part."""

    def __init__(self, seconds: float):
        self.begin, self.seconds = time.monotonic(), seconds
        self.counts: Counter = Counter()

    def rounds(self) -> Iterator[int]:
        """Numbers for as long as there is time, one at least."""
        number = 0
        while not number or time.monotonic() - self.begin < self.seconds:
            yield number
            number += 1


@pytest.fixture
def soak(request):
    """Named by the part of the test's name before the two underscores."""
    part = request.node.originalname.removeprefix("test_").partition("__")[0]
    tests = [item for item in request.session.items if f"test_{part}__" in item.name]
    share = 60 * request.config.getoption("--soak") * SHARES[part] / len(tests)
    soak = Soak(share)
    yield soak
    target = request.config.getoption("--soak-results")
    if target:
        row = {"test": request.node.name, "seconds": round(time.monotonic() - soak.begin)}
        with open(target, "a", encoding="utf8") as file:
            file.write(json.dumps({**row, **soak.counts}) + "\n")
