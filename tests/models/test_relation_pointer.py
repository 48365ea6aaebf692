"""Links, the rule of triples and the joint loss against slow loops written from the definitions."""

import math
from itertools import product

import pytest
import torch

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.relation_pointer import build_relation_pointer

from ..rows import make_tokens, one_row, table
from .relation_pointer_cases import (
    HEAD,
    LENGTHS,
    RELATIONS,
    SPANS,
    THRESHOLDS,
    C,
    D,
    R,
    all_spans,
    make,
    make_relation_gold,
    slow_link,
    slow_loss,
    triples,
)


@pytest.mark.parametrize("name", ["starts", "ends"])
def test_link_logits_equal_a_slow_loop(name):
    module, tokens = make(), make_tokens(LENGTHS, D)
    scorer = getattr(module, name)
    logits = scorer(tokens.x)
    for row, length in enumerate(LENGTHS):
        for label, i, j in product(range(R), range(length), range(length)):
            slow = slow_link(scorer, tokens.x[row], label, i, j)
            assert logits[row, label, i, j].item() == pytest.approx(slow, abs=1e-5)


def slow_triples(module, tokens, spans, thresholds):
    """Every pair of spans of a row, every label: both links over the threshold."""
    found = []
    for row, length in enumerate(tokens.lengths):
        x = tokens.x[row, :length]
        own = [span[1:] for span in spans if span[0] == row]
        for head, tail, label in product(own, own, range(R)):
            start = slow_link(module.starts, x, label, head[0], tail[0])
            end = slow_link(module.ends, x, label, head[1] - 1, tail[1] - 1)
            score = min(1 / (1 + math.exp(-start)), 1 / (1 + math.exp(-end)))
            if score > thresholds[label]:
                found.append((row, *head, *tail, label, score))
    return sorted(found)


@pytest.mark.parametrize(
    "spans",
    [
        all_spans(LENGTHS),
        [(0, 0, 2), (0, 0, 5), (0, 3, 5), (3, 0, 1), (3, 1, 4)],
        [(2, 0, 1)],
        [],
    ],
)
def test_triples_equal_a_slow_loop(spans):
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    given = torch.tensor(spans, dtype=torch.int64).reshape(-1, 3)
    got = triples(module.link(tokens, given, THRESHOLDS))
    slow = slow_triples(module, tokens, spans, THRESHOLDS.tolist())
    assert [t[:6] for t in got] == [t[:6] for t in slow]
    assert [t[6] for t in got] == pytest.approx([t[6] for t in slow], abs=1e-5)
    assert len(spans) < 5 or 0 < len(got) < R * len(spans) ** 2


@pytest.mark.parametrize("n_given", [0, C])
def test_labels_of_the_ends_are_features_of_links(n_given):
    """As if the vectors of labels were added to those of the tokens where spans begin, or end."""
    n_labels = 0 if n_given else C
    options = {"n_labels": n_labels, "n_given": n_given, "hidden_width": HEAD}
    module, tokens = make(**options, label_features=True), make_tokens(LENGTHS, D)
    spans = [span[:3] for span in SPANS] + [(3, 0, 1)]
    ends = torch.tensor([*SPANS, SPANS[0], (3, 0, 1, -1)])
    hidden = module.hidden(tokens.x)
    first, last = hidden.clone(), hidden.clone()
    for row, start, end, label in SPANS:
        first[row, start] += module.end_labels.vectors[label]
        last[row, end - 1] += module.end_labels.vectors[label]
    slow = []
    for (row, *head), (other, *tail), label in product(set(spans), set(spans), range(R)):
        if row == other:
            start = slow_link(module.starts, first[row], label, head[0], tail[0])
            end = slow_link(module.ends, last[row], label, head[1] - 1, tail[1] - 1)
            score = torch.sigmoid(torch.tensor(min(start, end))).item()
            slow += [(row, *head, *tail, label, score)] if score > THRESHOLDS[label] else []
    got = triples(module.eval().link(tokens, ends, THRESHOLDS))
    assert [t[:6] for t in got] == [t[:6] for t in sorted(slow)] and got
    assert [t[6] for t in got] == pytest.approx([t[6] for t in sorted(slow)], abs=1e-5)
    gold = make_relation_gold(spans=SPANS)
    starts = {(r[0], r[5], r[1], r[3]) for r in RELATIONS}
    finishes = {(r[0], r[5], r[2] - 1, r[4] - 1) for r in RELATIONS}
    pairs = tokens.mask[:, :, None] & tokens.mask[:, None, :]
    expected = slow_loss(module.starts(first), pairs, starts, sum_labels=True)
    expected += slow_loss(module.ends(last), pairs, finishes, sum_labels=True)
    assert module.link_loss(tokens, gold).item() == pytest.approx(expected, abs=1e-4)


def test_threshold_of_a_relation_is_one_of_its_score():
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    spans = torch.tensor(all_spans(LENGTHS))
    everything = module.link(tokens, spans, torch.zeros(R))
    per_row = [n * (n + 1) // 2 for n in LENGTHS]
    assert len(everything.relations) == R * sum(n * n for n in per_row)
    over = module.link(tokens, spans, torch.full((R,), 0.6))
    expected = [t for t in triples(everything) if t[6] > 0.6]
    assert triples(over) == expected and expected
    assert len(module.link(tokens, spans, torch.ones(R)).relations) == 0


def test_batch_equals_single_rows():
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    spans = all_spans(LENGTHS)
    together = triples(module.link(tokens, torch.tensor(spans), THRESHOLDS))
    alone, entities = [], []
    for row in range(len(LENGTHS)):
        single = one_row(tokens, row, extra=row)
        own = torch.tensor([(0, *span[1:]) for span in spans if span[0] == row])
        alone += [(row, *t[1:]) for t in triples(module.link(single, own, THRESHOLDS))]
        entities += [(row, *t[1:]) for t in table(module.decode(single, torch.full((C,), 0.5)))]
    assert [t[:6] for t in together] == [t[:6] for t in sorted(alone)]
    assert [t[6] for t in together] == pytest.approx([t[6] for t in sorted(alone)], abs=1e-5)
    found = table(module.decode(tokens, torch.full((C,), 0.5)))
    assert [t[:4] for t in found] == [t[:4] for t in sorted(entities)]
    assert [t[4] for t in found] == pytest.approx([t[4] for t in sorted(entities)], abs=1e-4)


@pytest.mark.parametrize("n_labels", [0, C])
@pytest.mark.parametrize("sum_labels", [True, False])
def test_loss_is_the_sum_of_three(n_labels, sum_labels):
    module, tokens = make(n_labels=n_labels, sum_labels=sum_labels), make_tokens(LENGTHS, D)
    pairs = tokens.mask[:, :, None] & tokens.mask[:, None, :]
    starts = {(r[0], r[5], r[1], r[3]) for r in RELATIONS}
    ends = {(r[0], r[5], r[2] - 1, r[4] - 1) for r in RELATIONS}
    assert len(starts) < len(RELATIONS) > len(ends)  # each shared cell must count once
    expected = slow_loss(module.starts(tokens.x), pairs, starts, sum_labels=sum_labels)
    expected += slow_loss(module.ends(tokens.x), pairs, ends, sum_labels=sum_labels)
    if n_labels:
        cells = {(row, label, start, end - 1) for row, start, end, label in SPANS}
        logits = module.entities.logits(tokens)
        upper = module.entities.table_of(tokens).spans(tokens.mask)
        expected += slow_loss(logits, upper, cells, sum_labels=sum_labels)
    got = module(tokens, make_relation_gold(spans=SPANS if n_labels else []))
    assert got.item() == pytest.approx(expected, abs=1e-4)


def test_unknown_tokens_are_no_negatives():
    module, tokens = make(), make_tokens(LENGTHS, D)
    known = torch.ones((4, 5), dtype=torch.bool)
    known[0, 3] = known[1] = False
    x = tokens.x.clone().requires_grad_(True)
    gold = make_relation_gold([], [], known)
    module(Tokens(x, tokens.mask, tokens.lengths), gold).backward()
    assert x.grad[1].abs().max() == 0 and x.grad[0, 3].abs().max() == 0
    assert x.grad[0, 2].abs().max() > 0


def test_a_gold_relation_of_unknown_tokens_still_counts():
    module, tokens = make(n_labels=0), make_tokens([3], D)
    known = torch.zeros((1, 3), dtype=torch.bool)
    silent = module(tokens, make_relation_gold([], [], known))
    loud = module(tokens, make_relation_gold([(0, 0, 1, 2, 3, 0)], [], known))
    assert silent.item() == 0 and loud.item() > 0


@pytest.mark.parametrize("options", [{}, {"n_labels": 0}, {"max_width": 2}, {"sum_labels": False}])
def test_gradient_by_finite_differences(options):
    module = make(dtype=torch.float64, **options)
    tokens = make_tokens([4, 2], D, dtype=torch.float64)
    gold = make_relation_gold(
        [(0, 0, 3, 1, 2, 1), (0, 0, 2, 1, 2, 1), (1, 0, 2, 1, 2, 0)],
        [(0, 0, 3, 1), (0, 1, 2, 0), (1, 0, 2, 2)] if module.entities else [],
    )

    def loss_of(x):
        return module(Tokens(x, tokens.mask, tokens.lengths), gold)

    assert torch.autograd.gradcheck(loss_of, (tokens.x.requires_grad_(True),))


@pytest.mark.parametrize("relations", [RELATIONS, []])
@pytest.mark.parametrize("known", [None, torch.ones((4, 5), dtype=torch.bool)])
def test_loss_on_meta(relations, known):
    meta = torch.device("meta")
    module, tokens = make(label_features=True).to(meta), make_tokens(LENGTHS, D)
    gold = make_relation_gold(relations, known=known)
    on_meta = Gold(
        gold.spans.to(meta),
        gold.per_level,
        None if known is None else known.to(meta),
        gold.relations.to(meta),
        gold.ends,
        None if known is None else known.to(meta),
    )
    x = tokens.x.to(meta).requires_grad_(True)
    module(Tokens(x, tokens.mask.to(meta), tokens.lengths), on_meta).backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("use_rope", [True, False])
def test_positions_matter_only_to_the_entity_head(use_rope):
    module, tokens = make(use_rope=use_rope), make_tokens([4], D)
    order = torch.tensor([2, 0, 3, 1])
    heads = [(module.entities.scorer, use_rope), (module.starts, False), (module.ends, False)]
    for scorer, knows_positions in heads:
        turned = scorer(tokens.x[:, order])
        plain = scorer(tokens.x)[:, :, order][:, :, :, order]
        assert torch.allclose(turned, plain, atol=1e-5) != knows_positions


def test_dropout_only_in_training():
    module, tokens = make(dropout=0.5), make_tokens(LENGTHS, D)
    gold = make_relation_gold()
    assert module.train()(tokens, gold) != module(tokens, gold)
    assert module.eval()(tokens, gold) == make()(tokens, gold)


@pytest.mark.parametrize(
    "option",
    [
        {"head_size": 3},
        {"head_size": 0},
        {"max_width": 0},
    ],
)
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match="is not possible"):
        build_relation_pointer(None, **option)
