"""Boundary module of the Modularized Interaction Network, by slow loops."""

from typing import Optional

import pytest
import torch
from torch import Tensor

from spacy_spanner.contract import Gold
from spacy_spanner.models.boundary_pointer import (
    BiaffineScores,
    Pointer,
    neighbour_sum,
    pointer_targets,
)

WIDTH = 4
LENGTHS = [5, 3, 1]
MASK = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
SPANS = [(0, 0, 2, 0), (0, 4, 5, 1), (1, 1, 3, 1)]


def make_x() -> Tensor:
    return torch.randn(3, 5, WIDTH) * MASK[..., None]


def make_gold(known: Optional[Tensor] = None) -> Gold:
    return Gold(torch.tensor(SPANS), (len(SPANS),), known)


def make_pointer(window: int = 2, **options: bool) -> Pointer:
    torch.manual_seed(2)
    pointer = Pointer(width=WIDTH, window=window, **options)
    pointer.scores.query.weight.data.normal_()
    pointer.scores.query.bias.data.normal_()
    return pointer


def test_neighbour_sum_by_a_loop():
    x = make_x()
    expected = torch.zeros_like(x)
    for row, length in enumerate(LENGTHS):
        for j in range(length):
            for i in (j - 1, j, j + 1):
                if 0 <= i < length:
                    expected[row, j] += x[row, i]
    found = neighbour_sum(x)
    torch.testing.assert_close(found[MASK], expected[MASK])


def test_biaffine_is_equation_9_up_to_what_a_softmax_cancels():
    torch.manual_seed(0)
    scores = BiaffineScores(query_width=3, key_width=4)
    torch.nn.init.normal_(scores.query.bias)
    queries, keys = torch.randn(2, 5, 3), torch.randn(2, 6, 4)
    u, b = torch.randn(3), 0.7
    W, V = scores.query.weight, scores.query.bias
    full = torch.stack(
        [
            torch.stack([torch.stack([q @ W.T @ k + u @ q + V @ k + b for k in ks]) for q in qs])
            for qs, ks in zip(queries, keys, strict=True)
        ]
    )
    torch.testing.assert_close(scores(queries, keys).softmax(2), full.softmax(2))


def test_pointer_rows_sum_to_one_over_later_words_and_the_sentinel():
    x = make_x()
    pointer = make_pointer()
    probs = pointer(x, MASK).exp().detach()
    sentinel = MASK.shape[1]
    for row, length in enumerate(LENGTHS):
        for j in range(sentinel):
            last = length
            places = [*range(j, last), sentinel]
            assert probs[row, j, places].sum() == pytest.approx(1.0, abs=1e-5)
            assert (probs[row, j, places] > 0).all()


@pytest.mark.parametrize("max_width", [None, 2])
def test_scores_of_widths_by_a_loop(max_width):
    """Beside the score of a place, that of its distance from the word; the sentinel has none."""
    x = make_x()
    pointer = make_pointer(width_scores=True)
    torch.nn.init.normal_(pointer.from_width.weight)
    torch.nn.init.normal_(pointer.from_width.bias)
    states = pointer.decoder(neighbour_sum(x))[0]
    found = pointer(x, MASK, max_width)
    for row, length in enumerate(LENGTHS):
        for j in range(length):
            query = pointer.scores.query(states[row, j])
            by_width = pointer.from_width(states[row, j])
            places = range(j, min(length, j + (max_width or length)))
            scores = [query @ x[row, i] + by_width[i - j] for i in places]
            expected = torch.stack([*scores, query @ pointer.sentinel]).log_softmax(0)
            torch.testing.assert_close(found[row, j, [*places, -1]], expected)


def test_scores_of_widths_begin_at_zero():
    x = make_x()
    plain, pointer = make_pointer(), make_pointer(width_scores=True)
    pointer.load_state_dict(plain.state_dict(), strict=False)
    assert pointer(x, MASK).equal(plain(x, MASK))


@pytest.mark.parametrize("window", [1, 2, 9])
def test_segments_by_a_loop(window):
    x = make_x()
    pointer = make_pointer(window)
    log_probs = pointer(x, MASK)
    expected = torch.zeros(*MASK.shape, 16)
    for row, length in enumerate(LENGTHS):
        h = x[row]
        for j in range(length):
            for i in range(j, min(length, j + window)):
                pair = torch.cat([h[j], h[i], h[i] - h[j], h[i] * h[j]])
                expected[row, j] += log_probs[row, j, i].exp() * pair
    torch.testing.assert_close(pointer.segments(log_probs.exp(), x).vectors(), expected)


def test_segments_are_zero_where_all_points_to_the_sentinel():
    x = make_x()
    pointer = make_pointer()
    pointer.scores.query.weight.data.zero_()
    pointer.scores.query.bias.data = 1e4 * pointer.sentinel.data
    x *= 1e-3
    log_probs = pointer(x, MASK)
    assert log_probs[..., -1].exp().min() == 1.0
    assert not pointer.segments(log_probs.exp(), x).vectors().any()


def test_pointer_targets_by_hand():
    target, counted = pointer_targets(MASK, make_gold())
    assert target.tolist() == [[1, 5, 5, 5, 4], [5, 2, 5, 5, 5], [5, 5, 5, 5, 5]]
    assert counted.equal(MASK)


def test_unknown_words_do_not_point_but_gold_words_do():
    known = torch.tensor([[False, False, True, False, True], [True] * 5, [False] * 5])
    _, counted = pointer_targets(MASK, make_gold(known))
    assert counted.tolist() == [
        [True, True, True, False, True],
        [True, True, True, False, False],
        [False, False, False, False, False],
    ]


def test_boundary_loss_by_a_loop():
    x = make_x()
    pointer = make_pointer(window=1)
    log_probs = pointer(x, MASK)
    ends = {(row, start): end - 1 for row, start, end, _ in SPANS}
    rows = []
    for row, length in enumerate(LENGTHS):
        targets = [ends.get((row, j), 5) for j in range(length)]
        losses = [-log_probs[row, j, i] for j, i in enumerate(targets)]
        rows.append(torch.stack(losses).mean())
    loss = pointer.loss(log_probs, MASK, make_gold())
    torch.testing.assert_close(loss, torch.stack(rows).mean())
    assert loss < 100  # no target outside what the softmax allows
