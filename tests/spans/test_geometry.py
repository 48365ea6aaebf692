"""Geometry of half-open spans against sets of tokens."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_spanner.spans.geometry import (
    adjust,
    apply_offsets,
    crosses,
    encode_offsets,
    iou,
    soft_weights,
)

span = st.tuples(st.integers(0, 12), st.integers(1, 12)).map(lambda s: (s[0], s[0] + s[1]))


def columns(*spans):
    return [torch.tensor([value]) for pair in spans for value in pair]


@given(span, span)
def test_iou_counts_tokens(one, other):
    a, b = set(range(*one)), set(range(*other))
    expected = torch.tensor(len(a & b)).float() / len(a | b)
    assert iou(*columns(one, other)).item() == expected.item()
    assert iou(*columns(other, one)).item() == expected.item()


def test_iou_with_an_empty_span_is_zero():
    assert iou(*columns((0, 3), (0, 0))).item() == 0


@given(span, span)
def test_spans_cross_when_each_has_a_token_of_its_own(one, other):
    a, b = set(range(*one)), set(range(*other))
    assert crosses(*columns(one, other)).item() == bool(a & b and a - b and b - a)


@given(span, span)
def test_offsets_applied_to_their_source_give_the_target(one, other):
    offsets = encode_offsets(*columns(one, other))
    start, end = apply_offsets(*columns(one), offsets)
    assert (start.item(), end.item()) == other
    # ... and after rounding and cutting, too, as long as the row holds the target.
    length = torch.tensor([max(one[1], other[1])])
    start, end, legal = adjust(*columns(one), offsets.float(), length)
    assert (start.item(), end.item(), legal.item()) == (*other, True)


@given(span, st.floats(-30, 30, width=32), st.floats(-30, 30, width=32), st.integers(0, 6))
def test_adjust_follows_equations_6_and_7(one, left, right, room):
    length = one[1] + room
    start = max(0, one[0] + math.floor(left + 0.5))
    end = min(length, one[1] + math.floor(right + 0.5))
    got = adjust(*columns(one), torch.tensor([[left, right]]).double(), torch.tensor([length]))
    if start < end:
        assert tuple(value.item() for value in got) == (start, end, True)
    else:
        assert tuple(value.item() for value in got) == (*one, False)


@pytest.mark.parametrize("offset", [math.inf, -math.inf, 1e30, -1e30])
def test_adjust_survives_huge_offsets(offset):
    start, end, legal = adjust(*columns((2, 4)), torch.full((1, 2), offset), torch.tensor([9]))
    assert (start.item(), end.item(), legal.item()) == (2, 4, False)


def test_soft_weights_follow_equation_11():
    overlap = torch.tensor([0.0, 0.2, 0.69, 0.7, 0.9, 1.0])
    expected = torch.tensor([1.0, 0.8, 0.31, 0.7, 0.9, 1.0])
    torch.testing.assert_close(soft_weights(overlap, threshold=0.7, eta=1.0), expected)
    torch.testing.assert_close(soft_weights(overlap, threshold=0.7, eta=2.0), expected**2)


def test_hard_examples_all_weigh_one():
    overlap = torch.linspace(0, 1, 11)
    for threshold in (0.7, 1.0):
        assert (soft_weights(overlap, threshold=threshold, eta=0.0) == 1).all()
