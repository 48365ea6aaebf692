"""Choices of non-overlapping spans against enumeration of all subsets."""

from itertools import combinations, product

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.batch import SpanPrediction
from spacy_spanner.overlaps import (
    best_set,
    choose,
    greedy_set,
    nesting_levels,
    outermost,
    outermost_set,
)
from spacy_spanner.pipeline.outputs import flat_choice, flatten_prediction, log_odds

span = st.tuples(st.integers(0, 9), st.integers(1, 5), st.floats(0.05, 4.0))
tables = st.lists(span, min_size=0, max_size=8)


def arrays(table):
    starts = numpy.array([s for s, _, _ in table], dtype="int64")
    ends = starts + numpy.array([w for _, w, _ in table], dtype="int64")
    return starts, ends, numpy.array([x for _, _, x in table], dtype="float64")


def disjoint(starts, ends, members):
    pairs = combinations(members, 2)
    return all(ends[i] <= starts[j] or ends[j] <= starts[i] for i, j in pairs)


@given(tables)
@settings(max_examples=60)
def test_best_set_is_the_maximum_over_all_subsets(table):
    starts, ends, weights = arrays(table)
    keep = choose(starts, ends, weights, best_set)
    assert disjoint(starts, ends, numpy.flatnonzero(keep))
    everything = range(len(table))
    subsets = (m for n in range(len(table) + 1) for m in combinations(everything, n))
    best = max(weights[list(m)].sum() for m in subsets if disjoint(starts, ends, m))
    assert numpy.isclose(weights[keep].sum(), best)


@given(tables)
@settings(max_examples=60)
def test_greedy_set_is_the_plain_loop(table):
    starts, ends, weights = arrays(table)
    keep = choose(starts, ends, weights, greedy_set)
    order = sorted(
        range(len(table)), key=lambda i: (-weights[i], starts[i] - ends[i], starts[i], i)
    )
    expected = []
    for i in order:
        if disjoint(starts, ends, [*expected, i]):
            expected.append(i)
    assert sorted(expected) == numpy.flatnonzero(keep).tolist()


@given(tables)
@settings(max_examples=100)
def test_outermost_keeps_no_span_inside_another(table):
    starts, ends, _ = arrays(table)
    keep = outermost(starts, ends)
    assert disjoint(starts, ends, numpy.flatnonzero(keep))
    for i in numpy.flatnonzero(~keep):  # whatever was dropped met a kept one at least as long
        met = (starts[keep] < ends[i]) & (ends[keep] > starts[i])
        assert (ends[keep] - starts[keep])[met].max() >= ends[i] - starts[i]


@given(tables)
@settings(max_examples=100)
def test_levels_are_the_outermost_of_what_is_left(table):
    starts, ends, _ = arrays(table)
    levels = nesting_levels(starts, ends)
    for level in range(len(starts)):
        left = numpy.flatnonzero(levels >= level)
        own = left[levels[left] == level]
        assert numpy.array_equal(own, left[outermost(starts[left], ends[left])])


def test_ties_take_fewer_spans_then_the_first():
    starts, ends = numpy.array([0, 0, 2]), numpy.array([4, 2, 4])
    assert best_set(starts, ends, numpy.array([2.0, 1.0, 1.0])) == [0]
    same = numpy.zeros(2, dtype="int64")
    assert best_set(same, same + 3, numpy.ones(2)) == [0]
    assert greedy_set(same, same + 3, numpy.ones(2)) == [0]
    assert outermost_set(same, same + 3, numpy.array([1.0, 2.0])) == [1]


def test_flat_choice_weighs_log_odds_over_the_threshold():
    # Two sure inner spans beat an outer one which is more probable than each of them.
    spans = numpy.array([[0, 0, 4, 0], [0, 0, 2, 0], [0, 2, 4, 0], [1, 0, 1, 0]])
    prediction = SpanPrediction(spans, numpy.array([0.95, 0.9, 0.9, 0.6], dtype="float32"))
    threshold = numpy.array([0.5], dtype="float32")
    best = flatten_prediction(prediction, threshold, "best")
    assert best.spans.tolist() == spans[[1, 2, 3]].tolist()
    outer = flatten_prediction(prediction, threshold, "outermost")
    assert outer.spans.tolist() == spans[[0, 3]].tolist()
    greedy = flatten_prediction(prediction, threshold, "greedy")
    assert greedy.spans.tolist() == spans[[0, 3]].tolist()
    assert numpy.isfinite(log_odds(numpy.array([0.0, 1.0]))).all()


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_with_threshold_0_the_most_probable_set_wins(seed):
    """Softmax over two labels and none: of all sets of spans that do not overlap, the one whose
    classes are the most probable together."""
    rng = numpy.random.default_rng(seed)
    table = []
    for start in range(5):
        for end in range(start + 1, 6):
            classes = numpy.exp(rng.normal(scale=3, size=3))
            classes /= classes.sum()
            label = int(classes[1:].argmax())
            if classes[1 + label] > classes[0] and rng.random() < 0.6:
                table.append((start, end, label, classes[1 + label], classes[0]))
    if not table:
        return
    spans = numpy.array([(0, start, end, label) for start, end, label, _, _ in table])
    scores = numpy.array([row[3] for row in table], dtype="float32")
    margins = numpy.log([row[3] / row[4] for row in table]).astype("float32")
    best, most = None, -numpy.inf
    for chosen in product([False, True], repeat=len(table)):
        own = [row for row, is_in in zip(table, chosen) if is_in]
        if any(a[0] < b[1] and b[0] < a[1] for i, a in enumerate(own) for b in own[:i]):
            continue
        value = sum(numpy.log(row[3] if is_in else row[4]) for row, is_in in zip(table, chosen))
        if value > most:
            best, most = chosen, value
    prediction = SpanPrediction(spans, scores, margins)
    got = flat_choice(prediction, numpy.zeros(2, "float32"), "best")
    assert got.tolist() == list(best)


def test_one_sure_span_beats_two_doubtful_ones():
    spans = numpy.array([(0, 0, 3, 0), (0, 0, 1, 0), (0, 1, 3, 0)])
    prediction = SpanPrediction(spans, numpy.array([0.9999, 0.35, 0.35], dtype="float32"))
    assert flat_choice(prediction, numpy.zeros(1, "float32"), "best").tolist() == [
        True,
        False,
        False,
    ]
