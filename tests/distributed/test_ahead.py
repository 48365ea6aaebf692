"""Items that a thread makes before they are asked for."""

import pytest

from spacy_spanner.distributed.ahead import ahead


def test_items_come_in_order_and_no_more_are_made_than_asked_for():
    made = []
    numbers = ahead((made.append(i) or i for i in range(100)), 3)
    assert [next(numbers) for _ in range(5)] == list(range(5))
    numbers.close()
    assert len(made) <= 5 + 3
    assert list(ahead(range(10), 20)) == list(ahead(range(10), 0)) == list(range(10))


def test_errors_reach_whoever_asks():
    def fail():
        yield 1
        raise ValueError("no")

    numbers = ahead(fail(), 2)
    assert next(numbers) == 1
    with pytest.raises(ValueError, match="no"):
        next(numbers)
