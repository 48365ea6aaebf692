"""HSCRF against loops over the words of segments, and against enumeration of segmentations."""

import pytest
import torch

from spacy_spanner.contract import Tokens
from spacy_spanner.models.hscrf import HSCRF, allowed_segments, build_hscrf

from ..decoders.test_semi_crf import log_sum, segmentations
from ..rows import gradient_is_exact, loss_on_meta, make_gold, make_tokens, one_row, table

D, C, W = 5, 2, 3
LENGTHS = [5, 3, 1, 6]
GOLD = [(0, 0, 2, 1), (0, 3, 4, 0), (1, 0, 3, 0), (3, 1, 2, 1), (3, 2, 6, 0)]  # the last too wide


def make(dtype=torch.float32, **options):
    torch.manual_seed(1)
    module = HSCRF(width=D, n_labels=C, **{"max_width": W, "dropout": 0.0, **options}).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return module


def slow_score(module, x, start, stop, k):
    """The sum over the words of a segment of class k, one by one."""
    n = stop - start
    prefixes = "S" if n == 1 else "B" + "I" * (n - 2) + "E"
    total = 0.0
    for place, prefix in enumerate(prefixes):
        tag = 0 if k == 0 else module.scheme.block(prefix).start + k - 1
        total += module.words.weight[tag] @ x[start + place] + module.words.bias[tag]
        total += module.differences.weight[tag] @ (x[stop - 1] - x[start])
        total += module.places[place, tag]
    return total.item()


def test_scores_equal_a_slow_loop():
    module, tokens = make(), make_tokens(LENGTHS, D)
    scores = module.scores(tokens)
    assert scores.shape == (4, 6, W, C + 1)
    for row, length in enumerate(LENGTHS):
        for start in range(length):
            for stop in range(start + 1, min(start + W, length) + 1):
                for k in range(C + 1) if stop == start + 1 else range(1, C + 1):
                    exact = slow_score(module, tokens.x[row], start, stop, k)
                    got = scores[row, start, stop - start - 1, k].item()
                    assert got == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("partly", [False, True])
def test_loss_equals_enumeration(partly):
    module, tokens = make(), make_tokens(LENGTHS, D)
    known = torch.ones((4, 6), dtype=torch.bool)
    known[0, 2] = known[0, 4] = known[1, 1] = False  # the last stays known by its gold
    gold = make_gold(GOLD, known=known if partly else None)
    scores, total = module.scores(tokens), 0.0
    for row, length in enumerate(LENGTHS):
        of_row = {span[1:] for span in GOLD if span[0] == row and span[2] - span[1] <= W}
        lost = {t for r, s, e, _ in GOLD if r == row and e - s > W for t in range(s, e)}
        open_ = lost | {t for t in range(length) if partly and not known[row, t]}
        inside = {t for s, e, _ in of_row for t in range(s, e)}
        paths = segmentations(module.segments, scores[row, :length])
        kept = [score for path, score in paths.items() if agrees(path, of_row, open_ - inside)]
        total += log_sum(paths.values()) - log_sum(kept)
    assert module(tokens, gold).item() == pytest.approx(total / sum(LENGTHS), abs=1e-5)


def agrees(path, gold, open_):
    """Whether a segmentation has all gold, and over words that are not open nothing else."""
    entities = {(s, e, k - 1) for s, e, k in path if k}
    return gold <= entities and all(set(range(s, e)) <= open_ for s, e, _ in entities - gold)


def test_gold_that_does_not_fit_allows_everything_over_its_words():
    scores = make().scores(make_tokens(LENGTHS, D))
    allowed = allowed_segments(scores, make_gold(GOLD))
    assert allowed[3, 2:4, :, 1:].all() and allowed[3, 2:6, 0, 0].all()
    assert allowed[3, 1].nonzero().tolist() == [[0, 2]]


def test_rows_do_not_depend_on_each_other():
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    together = table(module.decode(tokens, torch.zeros(C)))
    alone = []
    for row in range(len(LENGTHS)):
        found = module.decode(one_row(tokens, row, extra=row), torch.zeros(C))
        alone += [(row, *rest) for _, *rest in table(found)]
    assert len(together) > 2
    assert [x[:4] for x in together] == [x[:4] for x in sorted(alone)]
    assert [x[4] for x in together] == pytest.approx([x[4] for x in sorted(alone)], abs=1e-4)
    least = sorted(x[4] for x in together)[1] + 1e-4  # scores of the table are rounded
    over = table(module.decode(tokens, torch.full((C,), least)))
    assert over == [x for x in together if x[4] > least]


def test_width_of_the_component_bounds_segments():
    tokens = make_tokens(LENGTHS, D)
    bounded = Tokens(tokens.x, tokens.mask, tokens.lengths, max_width=2)
    assert make().scores(bounded).shape[2] == 2


def test_gradient_by_finite_differences():
    module, tokens = make(torch.float64), make_tokens([6, 2], D, dtype=torch.float64)
    gold = make_gold([(0, 0, 3, 1), (0, 4, 5, 0), (1, 0, 2, 1)])
    assert gradient_is_exact(module, tokens, gold)


def test_loss_on_meta():
    loss_on_meta(make(), make_tokens(LENGTHS, D), make_gold(GOLD))


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="S003"):
        build_hscrf(max_width=0)
