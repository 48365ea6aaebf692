"""Locate and Label against slow loops over spans, and the laws its parts must keep."""

import math

import pytest
import torch

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.locate_and_label import LocateAndLabel, build_locate_and_label

from .locate_and_label_cases import (
    GOLD,
    C,
    D,
    count_proposals,
    make,
    make_gold,
    make_tokens,
    single,
    slow_iou,
    slow_scores,
)


def slow_terms(model, tokens, gold, known=None):
    """Every term of the loss as sum and count, one span at a time, with all negatives taken."""
    terms = {name: [0.0, 0] for name in ("filter", "offsets", "overlap", "classifier")}

    def add(name, value):
        terms[name][0] += float(value)
        terms[name][1] += 1

    def weight(overlap, threshold):
        return overlap if overlap >= threshold else 1 - overlap

    for row, n in enumerate(tokens.lengths):
        x = tokens.x[row]
        entities = [(s, e, label) for r, s, e, label in gold if r == row]
        spans = {(s, s + w) for w in model.seed_widths.tolist() for s in range(n - w + 1)}
        spans |= {(s, e) for s, e, _ in entities}
        for start, end in sorted(spans):
            best, partner = 0.0, None
            for entity in entities:
                if slow_iou((start, end), entity[:2]) > best:
                    best, partner = slow_iou((start, end), entity[:2]), entity
            positive = best >= 0.7
            if not positive and known is not None and not all(known[row][start:end]):
                continue
            p = slow_scores(model.filter, x, start, end - 1, start, end)[0].sigmoid()
            focal = -((1 - p) ** 2) * p.log() if positive else -(p**2) * (1 - p).log()
            add("filter", weight(best, 0.7) * focal)
            before, after = max(start - 1, 0), min(end, n - 1)
            t = slow_scores(model.regressor, x, before, after, start, end).tolist()
            new_start = max(0, start + math.floor(t[0] + 0.5))
            new_end = min(n, end + math.floor(t[1] + 0.5))
            if new_start >= new_end:
                continue
            if positive:
                errors = [abs(t[0] - partner[0] + start), abs(t[1] - partner[1] + end)]
                add("offsets", sum(0.5 * e * e if e < 1 else e - 0.5 for e in errors))
                ends, starts = (end + t[1], partner[1]), (start + t[0], partner[0])
                share = (min(ends) - max(starts)) / (max(ends) - min(starts))
                add("overlap", 1 - share)
            moved = slow_iou((new_start, new_end), partner[:2]) if partner else 0.0
            if moved < 1 and known is not None and not all(known[row][new_start:new_end]):
                continue
            target = partner[2] + 1 if moved >= 1 else 0
            logits = slow_scores(model.classifier, x, new_start, new_end - 1, new_start, new_end)
            add("classifier", -weight(moved, 1.0) * logits.log_softmax(dim=0)[target])
    return terms


def assert_terms(got, expected):
    for name, (value, count) in got.items():
        assert int(count) == expected[name][1], name
        assert float(value) == pytest.approx(expected[name][0], rel=1e-6), name


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stretch", [1.0, 6.0])
def test_every_loss_term_equals_a_loop(seed, stretch):
    model, tokens = make(seed), make_tokens(seed=seed)
    with torch.no_grad():
        model.regressor.out.weight *= stretch  # far enough to move, cut and invert spans
        got = model.loss_terms(tokens, make_gold())
        expected = slow_terms(model, tokens, GOLD)
        assert_terms(got, expected)
        weights = {"filter": 1.0, "offsets": 0.1, "overlap": 0.1, "classifier": 1.0}
        total = sum(weights[name] * value / count for name, (value, count) in expected.items())
        assert float(model.loss(tokens, make_gold())) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_unknown_tokens_are_no_negatives(seed):
    model, tokens = make(seed), make_tokens(seed=seed)
    known = torch.ones(3, 7, dtype=torch.bool)
    known[0, 3:5] = known[1, 3] = known[2, 0] = False
    with torch.no_grad():
        model.regressor.out.weight *= 6
        got = model.loss_terms(tokens, make_gold(known=known))
        assert_terms(got, slow_terms(model, tokens, GOLD, known.tolist()))
        assert int(got["filter"][1]) < int(model.loss_terms(tokens, make_gold())["filter"][1])


def test_a_batch_is_the_sum_of_its_rows():
    model, tokens, gold = make(), make_tokens(), make_gold()
    with torch.no_grad():
        got = model.loss_terms(tokens, gold)
        rows = [model.loss_terms(*single(tokens, gold, row)) for row in range(3)]
    for name, (value, count) in got.items():
        assert float(value) == pytest.approx(sum(float(row[name][0]) for row in rows))
        assert int(count) == sum(int(row[name][1]) for row in rows)


def test_padding_changes_nothing():
    model, gold = make().eval(), make_gold()
    thresholds = torch.zeros(C)
    tight, wide = make_tokens(), make_tokens(pad=5)
    torch.testing.assert_close(model.loss(tight, gold), model.loss(wide, gold))
    one, other = model.decode(tight, thresholds), model.decode(wide, thresholds)
    assert len(one.spans) and one.spans.tolist() == other.spans.tolist()
    torch.testing.assert_close(one.scores, other.scores)
    assert count_proposals(model, tight) == count_proposals(model, wide)


def test_the_loss_gradient_is_right():
    model, tokens, gold = make(), make_tokens([5, 4]), make_gold([*GOLD[3:4], (0, 1, 3, 0)])

    def loss(x):
        return model.loss(Tokens(x, tokens.mask, tokens.lengths), gold)

    assert torch.autograd.gradcheck(loss, (tokens.x.requires_grad_(True),))


def test_the_classifier_sends_nothing_to_the_regressor():
    model = make()
    value, count = model.loss_terms(make_tokens(), make_gold())["classifier"]
    (value / count).backward()
    assert all(parameter.grad is None for parameter in model.regressor.parameters())
    assert all(parameter.grad is not None for parameter in model.classifier.parameters())


@pytest.mark.parametrize("offset", [-1.0, 1e4, -1e4])
def test_illegal_spans_leave_the_gradient_finite(offset):
    model = make()
    with torch.no_grad():  # boundaries that meet at the start of the row cover nothing
        model.regressor.out.weight.zero_()
        model.regressor.out.bias.copy_(torch.tensor([0.0, offset]))
    model.loss(make_tokens(), make_gold(GOLD[:1])).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize("options", [{}, {"use_filter": False}, {"use_regressor": False}])
def test_the_loss_needs_no_host(options):
    model = make(**options, negatives_per_row=2).to("meta")
    tokens = make_tokens()
    on_meta = Tokens(tokens.x.to("meta"), tokens.mask.to("meta"), tokens.lengths)
    gold = Gold(make_gold().spans.to("meta"), (3,), torch.ones(3, 7, dtype=torch.bool).to("meta"))
    assert model.loss(on_meta, gold).shape == ()


@pytest.mark.parametrize("gold", [[], [(1, 0, 2, 0)]])
def test_rows_without_gold_still_teach_the_filter(gold):
    model = make(negatives_per_row=2)
    terms = model.loss_terms(make_tokens(), make_gold(gold))
    # Two negatives a row; the row of one word has but one; a gold span adds itself and five more.
    assert int(terms["filter"][1]) == (5 if not gold else 11)
    loss = model.loss(make_tokens(), make_gold(gold))
    loss.backward()
    assert torch.isfinite(loss)


@pytest.mark.parametrize(
    "options,changed",
    [
        ({"gamma": 0.0}, {"filter"}),
        ({"eta": 0.0}, {"filter", "classifier"}),
        ({"alpha2": 0.5}, {"classifier"}),
        ({"alpha1": 0.5}, {"filter", "offsets", "overlap"}),
    ],
)
def test_each_option_changes_its_own_terms(options, changed):
    plain = make().loss_terms(make_tokens(), make_gold())
    other = make(**options).loss_terms(make_tokens(), make_gold())
    assert {name for name in plain if not torch.equal(plain[name][0], other[name][0])} == changed


def test_stages_can_be_left_out():
    assert set(make(use_filter=False).loss_terms(make_tokens(), make_gold())) == {
        "offsets",
        "overlap",
        "classifier",
    }
    without = make(use_regressor=False)
    assert set(without.loss_terms(make_tokens(), make_gold())) == {"filter", "classifier"}
    found = without.eval().decode(make_tokens(), torch.zeros(C)).spans
    assert int((found[:, 2] - found[:, 1]).max()) <= 4


@pytest.mark.parametrize("weight", ["filter_weight", "regressor_weight", "classifier_weight"])
def test_lambdas_weigh_the_terms(weight):
    losses = [
        make(**{weight: value}).loss(make_tokens(), make_gold()).item() for value in (0.0, 1.0, 3.0)
    ]
    assert losses[2] - losses[0] == pytest.approx(3 * (losses[1] - losses[0]))
    assert losses[1] > losses[0]


def test_hidden_width_sets_the_size_of_the_stages():
    model = make(hidden_width=4)
    assert model.filter.joint.weight.shape == (4, 3 * D)
    assert torch.isfinite(model.loss(make_tokens(), make_gold()))


def test_it_learns_spans_longer_than_its_seeds():
    torch.manual_seed(0)
    model = LocateAndLabel(width=16, n_labels=2, seed_lengths=[1, 2, 3, 4], dropout=0.0)
    x = torch.randn(4, 12, 16)
    tokens = Tokens(x, torch.ones(4, 12, dtype=torch.bool), [12] * 4)
    spans = [(0, 1, 6, 0), (0, 2, 4, 1), (1, 0, 1, 1), (2, 3, 8, 0), (2, 9, 11, 1), (3, 6, 7, 0)]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        model(tokens, make_gold(spans)).backward()
        optimizer.step()
    found = model.eval().decode(tokens, torch.full((2,), 0.5)).spans
    assert {tuple(span) for span in found.tolist()} == set(spans)


@pytest.mark.parametrize("lengths", [[], [0, 1]])
def test_impossible_seed_lengths_are_refused(lengths):
    with pytest.raises(ValueError, match="seed_lengths"):
        build_locate_and_label(None, seed_lengths=lengths)


def test_the_built_head_has_the_options_it_was_given():
    model = build_locate_and_label(None, seed_lengths=[1, 3], nms_decay=0.8)
    head = model.shims[0].maker(width=D, n_labels=C)
    assert head.seed_widths.tolist() == [1, 3]
    assert head.nms_decay == 0.8
