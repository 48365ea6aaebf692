"""Biaffine NER against slow loops: scores, loss and the choice by rank."""

import math
import random

import pytest
import torch

from spacy_spanner.contract import Tokens
from spacy_spanner.models.biaffine import BiaffineNER, build_biaffine_ner, take_by_rank
from spacy_spanner.spans.pair_table import width_class

from ..rows import gradient_is_exact, loss_on_meta, make_gold, make_tokens, one_row, table

D, C, H = 6, 3, 4
LENGTHS = [5, 3, 1, 9]
GOLD = [(0, 0, 5, 1), (0, 1, 3, 2), (1, 0, 1, 0), (3, 2, 4, 2), (3, 0, 9, 0)]


def make(dtype=torch.float32, **options):
    torch.manual_seed(1)
    module = BiaffineNER(width=D, n_labels=C, hidden_width=H, **{"dropout": 0.0, **options})
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return module.to(dtype)


def slow_scores(module, x, i, j):
    """Eq 3 of the paper for one span: one number for each class."""
    start = torch.relu(module.start.weight @ x[i] + module.start.bias)
    end = torch.relu(module.end.weight @ x[j] + module.end.bias)
    scores = []
    for k in range(C + 1):
        bilinear = module.bilinear.weight[k * H : (k + 1) * H]  # (H of the end, H of the start)
        score = sum(
            end[a] * bilinear[a, b] * start[b] for a in range(H) for b in range(H)
        )  # the table of a class meets both layers
        score = score * H**-0.5
        score = score + module.from_start.weight[k] @ start + module.from_start.bias[k]
        score = score + module.from_end.weight[k] @ end
        if module.from_width is not None:
            score = score + module.from_width.weight[j - i, k]  # few tokens: a class each
        scores.append(score.item())
    return scores


def test_classes_of_widths():
    """Each of 1 to 16 has its own, then four to a doubling; none is beyond the last."""
    classes = width_class(torch.arange(1, 400)).tolist()
    assert classes[:17] == [*range(16), 15]
    assert [classes[width - 1] for width in (19, 20, 32, 64, 399)] == [15, 16, 19, 23, 31]
    assert classes == sorted(classes) and width_class(torch.tensor([-3])).item() == 0


def all_spans(max_width=None):
    for row, length in enumerate(LENGTHS):
        for i in range(length):
            for j in range(i, min(length, i + (max_width or length))):
                yield row, i, j


@pytest.mark.parametrize("width_bias", [False, True])
@pytest.mark.parametrize("max_width", [None, 2, 3])
def test_scores_equal_a_slow_loop(max_width, width_bias):
    module = make(max_width=max_width, width_bias=width_bias)
    tokens = make_tokens(LENGTHS, D)
    logits = module.logits(tokens)
    band = module.table_of(max(LENGTHS), None).band
    assert band == (2 if max_width == 2 else None)
    for row, i, j in all_spans(max_width):
        got = logits[row, :, i, j if band is None else j - i].tolist()
        assert got == pytest.approx(slow_scores(module, tokens.x[row], i, j), abs=1e-4)


@pytest.mark.parametrize("max_width", [None, 2])
@pytest.mark.parametrize("nested", [True, False])
def test_loss_equals_a_slow_loop(max_width, nested):
    module, tokens = make(max_width=max_width, nested=nested), make_tokens(LENGTHS, D)
    known = torch.ones((len(LENGTHS), max(LENGTHS)), dtype=torch.bool)
    known[1, 2] = known[0, 1] = False  # the second stays known by its gold
    outer = [GOLD[0], GOLD[2], GOLD[4]]
    inner = [span for span in GOLD if span not in outer]
    gold = {span[:3]: span[3] for span in ([*outer, *inner] if nested else outer)}
    total = 0.0
    for row, i, j in all_spans(max_width):
        label = gold.get((row, i, j + 1))
        if label is not None or known[row, i : j + 1].all():
            scores = slow_scores(module, tokens.x[row], i, j)
            right = scores[0 if label is None else label + 1]
            total += math.log(sum(map(math.exp, scores))) - right
    got = module(tokens, make_gold([*outer, *inner], n_outer=3, known=known))
    assert got.item() == pytest.approx(total / sum(LENGTHS), rel=1e-4)


def slow_choice(spans, scores, nested):
    """By falling score, unless a span taken before is crossed or, flat, overlapped."""
    taken = []
    for span, _ in sorted(zip(spans, scores), key=lambda pair: -pair[1]):
        clashes = False
        for row, start, end, _ in taken:
            if row != span[0] or end <= span[1] or span[2] <= start:
                continue
            inside = start <= span[1] and span[2] <= end
            around = span[1] <= start and end <= span[2]
            clashes = clashes or not nested or not (inside or around)
        if not clashes:
            taken.append(span)
    return sorted(taken)


@pytest.mark.parametrize("nested", [True, False])
def test_choice_by_rank_equals_a_slow_loop(nested):
    rng = random.Random(0)
    for _ in range(40):
        spans = sorted(
            {(rng.randrange(3), s, s + rng.randrange(1, 6), 0) for s in rng.choices(range(9), k=12)}
        )
        scores = [rng.random() for _ in spans]
        kept = take_by_rank(torch.tensor(spans), torch.tensor(scores), n_rows=3, nested=nested)
        got = [span for span, keep in zip(spans, kept.tolist()) if keep]
        assert got == slow_choice(spans, scores, nested)
    nothing = torch.zeros((0, 4), dtype=torch.int64)
    assert take_by_rank(nothing, torch.zeros(0), n_rows=2, nested=nested).shape == (0,)


@pytest.mark.parametrize("max_width", [None, 2])
@pytest.mark.parametrize("nested", [True, False])
def test_decoding_equals_a_slow_loop(nested, max_width):
    module, tokens = make(nested=nested, max_width=max_width).eval(), make_tokens(LENGTHS, D)
    thresholds = torch.tensor([0.3, 0.0, 0.35])
    spans, scores, probs = [], [], {}
    for row, i, j in all_spans(max_width):
        values = slow_scores(module, tokens.x[row], i, j)
        best = max(values)
        label = values.index(best) - 1
        prob = math.exp(best) / sum(map(math.exp, values))
        if label >= 0 and prob > thresholds[label]:
            spans.append((row, i, j + 1, label))
            scores.append(best)
            probs[spans[-1]] = prob
    expected = slow_choice(spans, scores, nested)
    found = module.decode(tokens, thresholds)
    assert sorted(map(tuple, found.spans.tolist())) == expected and 1 < len(expected) < len(spans)
    for span, score in zip(found.spans.tolist(), found.scores.tolist()):
        assert score == pytest.approx(probs[tuple(span)], abs=1e-4)


@pytest.mark.parametrize("max_width", [None, 2])
def test_rows_do_not_depend_on_each_other(max_width):
    module, tokens = make(max_width=max_width).eval(), make_tokens(LENGTHS, D)
    together = table(module.decode(tokens, torch.zeros(C)))
    alone = []
    for row in range(len(LENGTHS)):
        found = module.decode(one_row(tokens, row, extra=row), torch.zeros(C))
        alone += [(row, *rest) for _, *rest in table(found)]
    assert [x[:4] for x in together] == [x[:4] for x in sorted(alone)]


def test_width_of_the_component_bounds_the_table():
    module, tokens = make(), make_tokens(LENGTHS, D)
    bounded = Tokens(tokens.x, tokens.mask, tokens.lengths, max_width=2)
    assert module.logits(bounded).shape[3] == 2
    assert module.cells(100, 2) == module.n_classes * 100 * (2 + H) < module.cells(100)


@pytest.mark.parametrize("max_width", [None, 2])
def test_gradient_by_finite_differences(max_width):
    module = make(torch.float64, max_width=max_width)
    tokens = make_tokens([9, 2], D, dtype=torch.float64)
    gold = make_gold([(0, 0, 3, 1), (0, 1, 2, 0), (1, 0, 2, 2)])
    assert gradient_is_exact(module, tokens, gold)


def test_loss_on_meta():
    loss_on_meta(make(), make_tokens(LENGTHS, D), make_gold(GOLD))


@pytest.mark.parametrize("options", [{"hidden_width": 0}, {"max_width": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ValueError, match="S003"):
        build_biaffine_ner(**options)


def test_flat_models_are_known_as_such():
    assert build_biaffine_ner(nested=False).attrs["levels"] == 1
    assert build_biaffine_ner().attrs["levels"] is None
