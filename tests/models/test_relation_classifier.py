"""Scores, loss and choice of pairs against slow loops written from the definitions."""

import math
from itertools import product

import pytest
import torch

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.relation_classifier import (
    N_WIDTHS,
    RelationClassifier,
    build_relation_classifier,
)

from ..rows import make_tokens, with_sentences
from .relation_pointer_cases import (
    LENGTHS,
    RELATIONS,
    SPANS,
    THRESHOLDS,
    C,
    D,
    R,
    all_spans,
    make_relation_gold,
    triples,
)

OPTIONS = [
    {},
    {"hidden_width": 5},
    {"n_labels": 0},
    {"label_features": True},
    {"label_features": True, "n_labels": 0, "n_given": C},
]
SENTENCES = [(0, 2), (0, 3), (3, 3)]  # where sentences begin, beside the first token of each row


def make(*, n_labels=C, dtype=torch.float32, **options):
    torch.manual_seed(1)
    options = {"head_size": 4, "width_size": 3, "dropout": 0.0, **options}
    module = RelationClassifier(width=D, n_labels=n_labels, n_relations=R, **options)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.to(dtype)


def make_classifier_gold(relations=RELATIONS, spans=SPANS, known=None):
    gold = make_relation_gold(relations, spans, known)
    return gold


def slow_logits(module, x, head, tail, labels=None):
    """The scores of one pair of spans (start, end) in the tokens (L, D) of a row.

    labels: The labels of either span."""
    parts = []
    for (start, end), own in zip((head, tail), labels or ([], []), strict=True):
        pooled = x[start:end].max(0).values
        for label in own if module.end_labels else []:
            pooled = pooled + module.end_labels.vectors[label]
        parts += [pooled, module.widths.weight[end - start - 1]]
    begin, stop = min(head[1], tail[1]), max(head[0], tail[0])
    between = x[begin:stop].max(0).values if begin < stop else torch.zeros(D, dtype=x.dtype)
    order = N_WIDTHS if head[0] > tail[0] else 0
    parts += [between, module.distances.weight[max(stop - begin, 0) + order]]
    vector = module.pair(torch.cat(parts))
    return vector if module.classify is None else module.classify(torch.nn.functional.gelu(vector))


def stretch(row, span, sentences):
    """The sentence, or row, that a span is in; None if it is in several."""
    starts = sorted({0} | {token for at, token in sentences if at == row})
    of_token = [max(i for i, start in enumerate(starts) if start <= t) for t in range(*span)]
    return (row, of_token[0]) if len(set(of_token)) == 1 else None


def slow_pairs(spans, sentences):
    """All ordered pairs of spans (row, start, end) of one stretch."""
    for (row, *head), (other, *tail) in product(spans, spans):
        places = [stretch(row, head, sentences), stretch(other, tail, sentences)]
        if places[0] is not None and places[0] == places[1]:
            yield row, tuple(head), tuple(tail)


def rows_of(sentences):
    tokens = make_tokens(LENGTHS, D)
    return with_sentences(tokens, sentences) if sentences else tokens


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sentences", [[], SENTENCES])
@pytest.mark.parametrize("spans", [all_spans(LENGTHS), [(0, 0, 2), (0, 1, 2), (3, 1, 4)], []])
def test_triples_equal_a_slow_loop(options, sentences, spans):
    module, tokens = make(**options).eval(), rows_of(sentences)
    twice = [(*span, 0) for span in spans] + [(*span, 1) for span in spans[:1]]
    ends = torch.tensor(twice, dtype=torch.int64).reshape(-1, 4)
    got = triples(module.link(tokens, ends, THRESHOLDS))
    slow = []
    for row, head, tail in slow_pairs(spans, sentences):
        labels = [[own[3] for own in twice if own[:3] == (row, *span)] for span in (head, tail)]
        scores = torch.sigmoid(slow_logits(module, tokens.x[row], head, tail, labels)).tolist()
        over = [label for label in range(R) if scores[label] > THRESHOLDS[label]]
        slow += [(row, *head, *tail, label, scores[label]) for label in over]
    assert [t[:6] for t in got] == [t[:6] for t in sorted(slow)]
    assert [t[6] for t in got] == pytest.approx([t[6] for t in sorted(slow)], abs=1e-5)
    assert not spans or got


@pytest.mark.parametrize("sum_labels", [True, False])
@pytest.mark.parametrize("sentences", [[], SENTENCES])
@pytest.mark.parametrize("unknown", [None, (0, 3)])
def test_loss_equals_a_slow_loop(sum_labels, sentences, unknown):
    options = {"label_features": sum_labels, "n_given": C if sum_labels else 0}
    module, tokens = make(n_labels=0, sum_labels=sum_labels, **options), rows_of(sentences)
    known = None
    if unknown is not None:
        known = torch.ones((4, 5), dtype=torch.bool)
        known[unknown] = False
    gold = make_classifier_gold(known=known)
    total, n_gold = 0.0, 0
    ends = sorted({tuple(end[:3]) for end in gold.ends.tolist()})
    for row, head, tail in slow_pairs(ends, sentences):
        labels = [[own[3] for own in SPANS if own[:3] == (row, *span)] for span in (head, tail)]
        logits = slow_logits(module, tokens.x[row], head, tail, labels)
        touched = [(row, token) for span in (head, tail) for token in range(*span)]
        for label, logit in enumerate(logits.tolist()):
            if (row, *head, *tail, label) in RELATIONS:
                total, n_gold = total + math.log(1 + math.exp(-logit)), n_gold + 1
            elif unknown not in touched:
                total += math.log(1 + math.exp(logit))
    n_stretches = len(LENGTHS) + len(sentences)
    got = module(tokens, gold)
    assert got.item() == pytest.approx(total / n_stretches / (1 if sum_labels else R), abs=1e-5)
    assert n_gold == len(RELATIONS) if not sentences else 0 < n_gold < len(RELATIONS)


def test_loss_of_entities_is_added():
    module, tokens, gold = make(), make_tokens(LENGTHS, D), make_classifier_gold()
    expected = module.link_loss(tokens, gold) + C * module.entities.loss(tokens, gold)
    assert module(tokens, gold).item() == pytest.approx(expected.item(), abs=1e-5)


def test_few_negatives_are_drawn_and_gold_always_counts():
    gold = make_classifier_gold()
    tokens = make_tokens(LENGTHS, D)
    everything = make(n_labels=0)(tokens, gold)
    losses = [make(n_labels=0, max_negatives=1)(tokens, gold).item()]
    torch.manual_seed(3)
    losses.append(make(n_labels=0, max_negatives=100)(tokens, gold).item())
    assert losses[0] < losses[1] and losses[1] == pytest.approx(everything.item())
    # With unknown tokens only, no pair is a negative.
    known = torch.zeros((4, 5), dtype=torch.bool)
    assert make(n_labels=0)(tokens, make_classifier_gold([], SPANS, known)).item() == 0
    assert make(n_labels=0)(tokens, make_classifier_gold(RELATIONS, [], known)).item() > 0


@pytest.mark.parametrize("options", OPTIONS)
def test_gradient_by_finite_differences(options):
    module = make(dtype=torch.float64, **options)
    tokens = make_tokens([4, 2], D, dtype=torch.float64)
    spans = [(0, 0, 3, 1), (0, 1, 2, 0), (1, 0, 2, 2)] if module.entities else []
    gold = make_classifier_gold([(0, 0, 3, 1, 2, 1), (1, 0, 1, 1, 2, 0)], spans)

    def loss_of(x):
        return module(Tokens(x, tokens.mask, tokens.lengths), gold)

    assert torch.autograd.gradcheck(loss_of, (tokens.x.requires_grad_(True),))


@pytest.mark.parametrize("relations", [RELATIONS, []])
@pytest.mark.parametrize("known", [None, torch.ones((4, 5), dtype=torch.bool)])
def test_loss_on_meta(relations, known):
    meta = torch.device("meta")
    module, tokens = make(max_negatives=3).to(meta), make_tokens(LENGTHS, D)
    gold = make_classifier_gold(relations, known=known)
    known = None if known is None else known.to(meta)
    relations = gold.relations.to(meta)
    on_meta = Gold(gold.spans.to(meta), gold.per_level, known, relations, gold.ends, known)
    x = tokens.x.to(meta).requires_grad_(True)
    module(Tokens(x, tokens.mask.to(meta), tokens.lengths), on_meta).backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize(
    "option", [{"head_size": 3}, {"max_width": 0}, {"width_size": 0}, {"max_negatives": 0}]
)
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match="is not possible"):
        build_relation_classifier(None, **option)
