"""Which slots words get, which of them answer, and where words stand in a batch."""

import numpy
from hypothesis import given
from hypothesis import strategies as st

from spacy_spanner.models.memory_index import MemoryIndex, share_slots, spread


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 99))
def test_spread_gives_distinct_slots(filled, most, seed):
    filled = numpy.array(filled)
    n_read = numpy.minimum(filled, most)
    chosen = spread(filled, n_read, numpy.random.default_rng(seed).random(most))
    for row, n, limit in zip(chosen, n_read, filled, strict=True):
        assert len(set(row[:n].tolist())) == n
        assert row.min() >= 0 and row.max() < limit
        assert not row[n:].any()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 200))
def test_slots_are_shared_fairly(counts, max_slots):
    counts = numpy.array(counts)
    sizes = share_slots(counts, max_slots)
    assert sizes.sum() <= max_slots and (sizes <= counts).all()
    if len(counts) <= max_slots:
        assert (sizes > 0).all()
        short = sizes < counts
        assert len(set(sizes[short].tolist())) <= 1  # whoever gives up slots has the same number
        if short.any():
            level = sizes[short].max()
            assert sizes[~short].max(initial=0) <= level
            assert numpy.minimum(counts, level + 1).sum() > max_slots  # no room for one more each
    else:
        assert sizes.sum() == max_slots and sizes.max() == 1
        assert counts[sizes > 0].min() >= counts[sizes == 0].max()


@given(st.lists(st.integers(0, 5), max_size=40))
def test_index_finds_all_words(tokens):
    words, counts = numpy.array([4, 1, 3]), numpy.array([2, 3, 1])
    index = MemoryIndex.learn(words, counts, None)
    keys = numpy.array([tokens, tokens]).reshape(2, -1)
    found = index.find(keys, [len(tokens), len(tokens) // 2])
    expected = [p for p, w in enumerate(tokens) if w in words]
    expected += [p + len(tokens) for p in expected if p < len(tokens) // 2]
    assert found.positions.tolist() == expected
    assert (index.table[0][found.words] == keys.ravel()[found.positions]).all()
