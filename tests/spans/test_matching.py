"""Pairing by IoU against a loop over all candidates and gold spans."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.spans.matching import band, first_of_span, inside, negatives, pair, touches

gold_span = st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 7), st.integers(0, 1))
gold_table = st.lists(gold_span, max_size=6, unique=True).map(
    lambda spans: torch.tensor(
        [(row, start, min(start + width, 7), label) for row, start, width, label in spans],
        dtype=torch.int64,
    ).view(-1, 4)
)


def slow_iou(one, other):
    a, b = set(range(*one)), set(range(*other))
    return (torch.tensor(len(a & b)).float() / len(a | b)).item()


def slow_pair(candidate, row, gold):
    best, partner = 0.0, len(gold)
    for number, (gold_row, start, end, _) in enumerate(gold.tolist()):
        overlap = slow_iou(candidate, (start, end))
        if gold_row == row and overlap > best:  # strictly: the first wins a tie
            best, partner = overlap, number
    return best, partner


def test_band_lists_each_start_with_each_width():
    starts, ends = band(torch.tensor([1, 3]), 3)
    expected = [(start, start + width) for start in range(3) for width in (1, 3)]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
    valid = inside(ends, torch.tensor([[True, True, True], [True, False, False]]))
    for row, length in enumerate((3, 1)):
        assert valid[row].tolist() == [end <= length for _, end in expected]


@settings(max_examples=50)
@given(gold_table)
def test_pairing_equals_a_loop(gold):
    starts, ends = band(torch.tensor([1, 2, 4]), 7)
    overlap, partner = pair(starts, ends, gold, 3)
    for row in range(3):
        for place, candidate in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            expected = slow_pair(candidate, row, gold)
            assert (overlap[row, place].item(), partner[row, place].item()) == expected


def test_the_first_of_equally_near_gold_spans_is_taken():
    gold = torch.tensor([[0, 3, 5, 1], [0, 0, 2, 0], [0, 3, 5, 0]])
    _, partner = pair(torch.tensor([1, 3]), torch.tensor([4, 5]), gold, 1)
    assert partner.tolist() == [[0, 0]]


@settings(max_examples=50)
@given(gold_table)
def test_the_same_span_under_two_labels_counts_once(gold):
    spans = [tuple(span[:3]) for span in gold.tolist()]
    expected = [span not in spans[:number] for number, span in enumerate(spans)]
    assert first_of_span(gold).tolist() == expected


def test_touches_equals_a_loop():
    flags = torch.rand(3, 6, generator=torch.Generator().manual_seed(0)) > 0.7
    starts, ends = band(torch.tensor([1, 2, 5]), 6)
    got = touches(flags, torch.arange(3)[:, None], starts, ends)
    for row in range(3):
        for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            assert got[row, place].item() == any(flags[row, start:end].tolist())


@pytest.mark.parametrize("known", [None, [[True, True, False, True]]])
def test_negatives_are_valid_far_from_gold_and_annotated(known):
    starts, ends = band(torch.tensor([1, 2]), 4)
    overlap = [0.0, 0.6, 0.7, 1.0, 0.0, 0.0, 0.0, 0.0]
    valid = ends[None] <= 4
    flags = None if known is None else torch.tensor(known)
    got = negatives(torch.tensor([overlap]), valid, starts, ends, threshold=0.7, known=flags)[
        0
    ].tolist()
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        annotated = known is None or all(known[0][start:end])
        assert got[place] == (end <= 4 and overlap[place] < 0.7 and annotated)
