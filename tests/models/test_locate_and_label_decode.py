"""What Locate and Label finds, against a loop over spans."""

import math

import pytest
import torch

from spacy_spanner.contract import Tokens
from spacy_spanner.models.locate_and_label import LocateAndLabel
from spacy_spanner.models.locate_and_label_stages import Spans

from .locate_and_label_cases import (
    LENGTHS,
    C,
    D,
    count_proposals,
    make,
    make_gold,
    make_tokens,
    single,
    slow_scores,
)


def slow_decode(model, tokens, thresholds):
    """Propose, move, classify and report one span at a time; without Soft-NMS."""
    found = {}
    for row, n in enumerate(tokens.lengths):
        x = tokens.x[row]
        for start in range(n):
            for end in range(start + 1, min(start + model.max_seed, n) + 1):
                p = slow_scores(model.filter, x, start, end - 1, start, end).sigmoid()
                if p <= model.filter_threshold:
                    continue
                before, after = max(start - 1, 0), min(end, n - 1)
                t = slow_scores(model.regressor, x, before, after, start, end).tolist()
                s = max(0, start + math.floor(t[0] + 0.5))
                e = min(n, end + math.floor(t[1] + 0.5))
                if s >= e:
                    continue
                scores = slow_scores(model.classifier, x, s, e - 1, s, e).softmax(dim=0)
                label = int(scores.argmax()) - 1
                if label >= 0 and scores[label + 1] > thresholds[label]:
                    found[row, s, e, label] = float(scores[label + 1])
    return found


@pytest.mark.parametrize("seed", range(5))
def test_decoding_equals_a_loop(seed):
    model = make(seed, use_soft_nms=False, filter_threshold=0.5).eval()
    tokens, thresholds = make_tokens([9, 5, 1], seed=seed), torch.tensor([0.0, 0.3, 0.35])
    with torch.no_grad():
        model.regressor.out.weight *= 6
        model.filter.out.weight *= 6
        expected = slow_decode(model, tokens, thresholds)
        got = model.decode(tokens, thresholds)
    spans = [tuple(span) for span in got.spans.tolist()]
    assert dict(zip(spans, got.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert len(spans) == len(expected) > 0


def test_spans_longer_than_any_seed_are_found():
    model = make(seed_lengths=[1, 2]).eval()
    with torch.no_grad():
        model.regressor.out.weight.zero_()
        model.regressor.out.bias.copy_(torch.tensor([-1.0, 3.0]))
        model.classifier.out.bias[1] += 9
        found = model.decode(make_tokens(), torch.full((C,), 0.5)).spans
    assert int((found[:, 2] - found[:, 1]).max()) == 6


def select(spans, scores, thresholds, **options):
    row, start, end, label = torch.tensor(spans).unbind(dim=1)
    model = make(**options)
    found = model.select(
        Spans(row, start, end), torch.tensor(scores), label, torch.tensor(thresholds), n_rows=2
    )
    return dict(zip(map(tuple, found.spans.tolist()), found.scores.tolist(), strict=True))


CANDIDATES = [(0, 0, 4, 0), (0, 0, 5, 1), (0, 4, 7, -1), (1, 0, 4, 2), (1, 2, 6, 0), (1, 2, 3, 1)]
SCORES = [0.9, 0.8, 0.99, 0.6, 0.4, 0.7]


def test_soft_nms_lowers_the_second_of_two_near_spans():
    got = select(CANDIDATES, SCORES, [0.3] * 3, nms_decay=0.5, nms_overlap=0.6)
    expected = dict(zip(CANDIDATES, SCORES, strict=True))
    del expected[0, 4, 7, -1]  # no entity
    expected[0, 0, 5, 1] = 0.4
    assert got == pytest.approx(expected)
    assert select(CANDIDATES, SCORES, [0.3] * 3, use_soft_nms=False)[0, 0, 5, 1] > 0.7


def test_each_label_has_its_threshold_after_soft_nms():
    got = select(CANDIDATES, SCORES, [0.95, 0.45, 0.5], nms_decay=0.5, nms_overlap=0.6)
    # (0, 0, 4) is not reported, but it still lowered its neighbour under .45.
    assert set(got) == {(1, 0, 4, 2), (1, 2, 3, 1)}


def test_the_filter_decides_how_many_spans_go_on():
    tokens = make_tokens()
    everything = [sum(min(4, n - start) for start in range(n)) for n in LENGTHS]
    assert count_proposals(make(use_filter=False), tokens) == everything
    assert count_proposals(make(filter_threshold=0.0), tokens) == everything
    assert count_proposals(make(filter_threshold=1.0), tokens) == [0, 0, 0]
    assert len(make(filter_threshold=1.0).decode(tokens, torch.zeros(C)).spans) == 0


def test_without_tokens_or_labels_nothing_is_found():
    tokens = Tokens(torch.zeros(2, 0, D), torch.zeros(2, 0, dtype=torch.bool), [0, 0])
    assert len(make().decode(tokens, torch.zeros(C)).spans) == 0
    unlabelled = LocateAndLabel(width=D, n_labels=0, seed_lengths=[1]).double()
    assert len(unlabelled.decode(make_tokens(), torch.zeros(0)).spans) == 0


def test_decoding_a_batch_equals_decoding_its_rows():
    model, tokens, gold = make().eval(), make_tokens(), make_gold()
    found = model.decode(tokens, torch.zeros(C))
    for row in range(3):
        alone = model.decode(single(tokens, gold, row)[0], torch.zeros(C))
        here = found.spans[:, 0] == row
        assert found.spans[here, 1:].tolist() == alone.spans[:, 1:].tolist()
        torch.testing.assert_close(found.scores[here], alone.scores)
