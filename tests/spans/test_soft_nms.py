"""Batched Soft-NMS against Algorithm 1 as a loop over one row."""

import pytest
import torch

from spacy_spanner.spans.soft_nms import pad_by_row, soft_nms


def overlap_of(one, other):
    a, b = set(range(*one)), set(range(*other))
    return len(a & b) / len(a | b)


def slow_soft_nms(spans, scores, decay, overlap):
    """Take the best, lower what overlaps it among the rest, sort again."""
    left = [[score, -place] for place, score in enumerate(scores)]
    result = [0.0] * len(spans)
    while left:
        left.sort()
        score, place = left.pop()
        result[-place] = score
        for other in left:
            if overlap_of(spans[-place], spans[-other[1]]) >= overlap:
                other[0] *= decay
    return result


def random_rows(seed, n_rows=6, most=7):
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n_rows):
        n = int(torch.randint(0, most + 1, (1,), generator=generator))
        start = torch.randint(0, 6, (n,), generator=generator)
        end = start + torch.randint(1, 6, (n,), generator=generator)
        # Coarse scores, so that ties happen.
        scores = torch.randint(1, 12, (n,), generator=generator).double() / 12
        rows.append((list(zip(start.tolist(), end.tolist(), strict=True)), scores.tolist()))
    return rows


def padded(rows):
    table = [
        (row, *span, score)
        for row, (spans, scores) in enumerate(rows)
        for span, score in zip(spans, scores, strict=True)
    ]
    columns = torch.tensor(table, dtype=torch.float64).view(-1, 4)
    place, filled = pad_by_row(columns[:, 0].long(), len(rows))
    start, end = columns[:, 1].long()[place], columns[:, 2].long()[place]
    return start, end, columns[:, 3][place], filled


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("decay,overlap", [(0.9, 0.6), (0.5, 0.3), (0.0, 0.5)])
def test_equals_the_loop(seed, decay, overlap):
    rows = random_rows(seed)
    start, end, scores, filled = padded(rows)
    got = soft_nms(start, end, scores, filled, decay=decay, overlap=overlap)
    assert (got[~filled] == 0).all()
    for row, (spans, row_scores) in enumerate(rows):
        expected = slow_soft_nms(spans, row_scores, decay, overlap)
        assert got[row][filled[row]].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_under_the_threshold_can_go_first(seed):
    (spans, scores), threshold = random_rows(seed, n_rows=1, most=9)[0], 0.45
    full = slow_soft_nms(spans, scores, 0.7, 0.4)
    high = [place for place, score in enumerate(scores) if score > threshold]
    start, end, high_scores, filled = padded(
        [([spans[place] for place in high], [scores[place] for place in high])]
    )
    got = soft_nms(start, end, high_scores, filled, decay=0.7, overlap=0.4)[filled].tolist()
    expected = {place: score for place, score in enumerate(full) if score > threshold}
    kept = {place: score for place, score in zip(high, got, strict=True) if score > threshold}
    assert kept == pytest.approx(expected)


def test_padding_keeps_the_order_of_each_row():
    row = torch.tensor([0, 0, 2, 2, 2])
    place, filled = pad_by_row(row, 4)
    assert [place[r][filled[r]].tolist() for r in range(4)] == [[0, 1], [], [2, 3, 4], []]
