"""Global Pointer against slow loops written from the equations."""

import math

import pytest
import torch

from spacy_spanner.contract import Tokens
from spacy_spanner.models.global_pointer import (
    build_efficient_global_pointer,
    build_global_pointer,
)
from spacy_spanner.models.pointer_scorers import START_LOGIT, rotate
from spacy_spanner.spans.pair_table import PairTable

from ..rows import loss_on_meta, make_gold, make_tokens, one_row, table

D, C, HEAD = 6, 3, 4
LENGTHS = [5, 3, 1, 4]
GOLD = [(0, 0, 5, 1), (0, 1, 3, 1), (0, 1, 3, 2), (1, 0, 1, 0), (3, 2, 4, 2)]


def make(build=build_global_pointer, dtype=torch.float32, **options):
    torch.manual_seed(1)
    head = build(None, head_size=HEAD, **options)
    module = head.shims[0].maker(width=D, n_labels=C).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


def span_cells(mask, widest=None):
    """The cells (B, L, X) that are spans of at most this width."""
    return PairTable(mask.shape[1], widest or mask.shape[1]).spans(mask)


def rotated(vector, position):
    """Channels (2m, 2m + 1) as points of the plane, turned by position * 10000^(-2m / d)."""
    out = []
    for m in range(len(vector) // 2):
        angle = position * 10000 ** (-2 * m / len(vector))
        a, b = vector[2 * m], vector[2 * m + 1]
        out += [
            a * math.cos(angle) - b * math.sin(angle),
            b * math.cos(angle) + a * math.sin(angle),
        ]
    return out


def dot(left, right):
    return sum(a * b for a, b in zip(left, right))


def slow_logit(scorer, x, label, i, j, *, efficient, use_rope, scale):
    """The score of one span of one row, from eq 2-7."""
    projected = [scorer.project(v).tolist() for v in x]
    if efficient:
        q, k = projected[i][:HEAD], projected[j][HEAD:]
    else:
        q = projected[i][label * 2 * HEAD :][:HEAD]
        k = projected[j][label * 2 * HEAD + HEAD :][:HEAD]
    if use_rope:
        q, k = rotated(q, i), rotated(k, j)
    score = dot(q, k) / (math.sqrt(HEAD) if scale else 1)
    if not efficient:
        return score + scorer.bias[label].item()
    first = scorer.types(torch.tensor(projected[i]))[label].item()
    last = scorer.types(torch.tensor(projected[j]))[C + label].item()
    return score + (first + last) / 2


SETTINGS = [
    (build_global_pointer, {}),
    (build_global_pointer, {"use_rope": False}),
    (build_global_pointer, {"scale": False}),
    (build_efficient_global_pointer, {}),
    (build_efficient_global_pointer, {"use_rope": False}),
]


@pytest.mark.parametrize("max_width", [None, 1, 3])  # 1 gives a band, 3 is a part of all pairs
@pytest.mark.parametrize("build,options", SETTINGS)
def test_logits_equal_a_slow_loop(build, options, max_width):
    module = make(build, max_width=max_width, **options)
    tokens = make_tokens(LENGTHS, D)
    logits, pair_table = module.logits(tokens), module.table_of(tokens)
    assert (pair_table.band is not None) == (max_width == 1)
    setting = {"use_rope": True, "scale": True, **options}
    setting["efficient"] = build is build_efficient_global_pointer
    checked = 0
    for row, length in enumerate(LENGTHS):
        for label in range(C):
            for i in range(length):
                for j in range(i, min(length, i + (max_width or length))):
                    slow = slow_logit(module.scorer, tokens.x[row], label, i, j, **setting)
                    column = j if pair_table.band is None else j - i
                    assert logits[row, label, i, column].item() == pytest.approx(slow, abs=1e-5)
                    checked += 1
    assert checked == C * int(pair_table.spans(tokens.mask).sum())


def slow_multilabel(logits, cells, gold):
    total = 0.0
    for row in range(len(LENGTHS)):
        for label in range(C):
            negative, positive = 1.0, 1.0
            for i, j in cells[row].nonzero().tolist():
                score = logits[row, label, i, j].item()
                if (row, i, j + 1, label) in gold:
                    positive += math.exp(-score)
                else:
                    negative += math.exp(score)
            total += math.log(negative) + math.log(positive)
    return total / (len(LENGTHS) * C)


def slow_binary(logits, cells, gold):
    terms = []
    for row in range(len(LENGTHS)):
        for label in range(C):
            for i, j in cells[row].nonzero().tolist():
                sign = -1 if (row, i, j + 1, label) in gold else 1
                terms.append(math.log1p(math.exp(sign * logits[row, label, i, j].item())))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("loss,slow", [("multilabel", slow_multilabel), ("binary", slow_binary)])
@pytest.mark.parametrize("build", [build_global_pointer, build_efficient_global_pointer])
def test_loss_equals_a_slow_loop(build, loss, slow):
    module = make(build, loss=loss)
    tokens = make_tokens(LENGTHS, D)
    cells = module.table_of(tokens).spans(tokens.mask)
    expected = slow(module.logits(tokens), cells, set(GOLD))
    assert module(tokens, make_gold(GOLD)).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("loss", ["multilabel", "multilabel_start", "binary"])
def test_band_that_holds_everything_gives_the_same_loss(loss):
    tokens, gold = make_tokens(LENGTHS, D), make_gold(GOLD)
    x = torch.nn.functional.pad(tokens.x, (0, 0, 0, 16))  # longer than the band, only by padding
    padded = Tokens(x, torch.nn.functional.pad(tokens.mask, (0, 16)), tokens.lengths)
    wide, band = make(loss=loss), make(loss=loss, max_width=5)
    assert wide.table_of(padded).band is None and band.table_of(padded).band == 5
    assert band(padded, gold).item() == pytest.approx(wide(tokens, gold).item(), abs=1e-5)
    narrow = make(loss=loss, max_width=4)
    # The one gold span wider than the limit counts neither as positive nor in place of another cell.
    without = make_gold([span for span in GOLD if span[2] - span[1] <= 4])
    for rows in (tokens, padded):
        assert narrow(rows, gold).item() == pytest.approx(narrow(rows, without).item(), abs=1e-6)


@pytest.mark.parametrize("length", [12, 30])  # all pairs, and a band
def test_the_smaller_of_two_width_limits_holds(length):
    rows = make_tokens([length], D)
    limited = Tokens(rows.x, rows.mask, rows.lengths, max_width=4)
    own, both = make(max_width=4).eval(), make(max_width=6).eval()
    none = torch.zeros(C)
    assert table(own.decode(rows, none)) == table(both.decode(limited, none))
    widths = {end - start for _, start, end, _, _ in table(make().eval().decode(limited, none))}
    assert widths == {1, 2, 3, 4}
    gold = make_gold([(0, 2, 4, 1), (0, 3, 9, 2)])
    assert own(rows, gold).item() == pytest.approx(both(limited, gold).item(), abs=1e-6)
    assert both.cells(length, 4) == own.cells(length) == own.cells(length, 9)


def test_loss_of_starts_is_the_same_for_joined_sentences():
    """With a width limit under which no span reaches from one sentence into the next."""
    module = make(loss="multilabel_start", max_width=1, use_rope=False)
    tokens = make_tokens([3, 3], D)
    joined = Tokens(tokens.x.reshape(1, 6, D), torch.ones((1, 6), dtype=torch.bool), [6])
    apart = module(tokens, make_gold([(0, 1, 2, 1), (1, 0, 1, 0), (1, 2, 3, 2)]))
    together = module(joined, make_gold([(0, 1, 2, 1), (0, 3, 4, 0), (0, 5, 6, 2)]))
    assert together.item() == pytest.approx(apart.item(), abs=1e-6)


@pytest.mark.parametrize("max_width", [None, 2])
@pytest.mark.parametrize("loss", ["multilabel", "multilabel_start", "binary"])
def test_unknown_tokens_stay_out_of_the_loss(loss, max_width):
    module = make(loss=loss, max_width=max_width)
    tokens = make_tokens([4, 4], D)
    known = torch.tensor([[True, False, True, True], [True, True, True, True]])
    gold = make_gold([(0, 2, 3, 0), (1, 0, 2, 1)], known=known)
    x = tokens.x.clone().requires_grad_(True)
    module(tokens.with_states(x), gold).backward()
    assert x.grad[0, 1].abs().max() == 0  # no span of the first row over its second token counts
    assert x.grad[0, 0].abs().max() > 0


@pytest.mark.parametrize("width", [9, 2])
def test_known_cells_equal_a_loop(width):
    known = torch.rand((3, 9), generator=torch.Generator().manual_seed(3)) > 0.3
    pair_table = PairTable(9, width)
    cells = pair_table.known(known)
    for row in range(3):
        for i in range(9):
            for j in range(i, min(9, i + width)):
                column = j if pair_table.band is None else j - i
                assert cells[row, i, column] == known[row, i : j + 1].all()


def test_a_row_without_cells_has_loss_0_and_a_finite_gradient():
    module = make()
    tokens = make_tokens([3], D)
    tokens.x.requires_grad_(True)
    known = torch.zeros((1, 3), dtype=torch.bool)
    loss = module(tokens, make_gold([], known=known))
    loss.backward()
    assert loss.item() == 0 and tokens.x.grad.abs().max() == 0


@pytest.mark.parametrize("max_width", [None, 2])
@pytest.mark.parametrize("build", [build_global_pointer, build_efficient_global_pointer])
def test_batch_equals_single_rows(build, max_width):
    module = make(build, max_width=max_width).eval()
    tokens = make_tokens(LENGTHS, D)
    thresholds = torch.tensor([0.5, 0.4, 0.6])
    together = table(module.decode(tokens, thresholds))
    alone = []
    for row in range(len(LENGTHS)):
        found = module.decode(one_row(tokens, row, extra=row), thresholds)
        alone += [(row, *rest) for _, *rest in table(found)]
    assert together == sorted(alone) and together
    assert all(start < end <= LENGTHS[row] for row, start, end, _, _ in together)


def test_threshold_is_a_probability_of_each_label():
    module = make().eval()
    tokens = make_tokens(LENGTHS, D)
    everything = module.decode(tokens, torch.zeros(C))
    assert len(everything.spans) == C * int(module.table_of(tokens).spans(tokens.mask).sum())
    assert len(module.decode(tokens, torch.ones(C)).spans) == 0
    half = module.decode(tokens, torch.full((C,), 0.5))
    logits = module.logits(tokens)
    row, start, end, label = half.spans.unbind(1)
    assert (logits[row, label, start, end - 1] > 0).all()
    torch.testing.assert_close(half.scores, logits[row, label, start, end - 1].sigmoid())


def test_rotation_depends_on_the_distance_only():
    x = torch.randn(2, 1, 8).expand(2, 10, 8)
    turned = rotate(x)
    products = turned[0] @ turned[1].T
    for distance in range(-4, 5):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rotation_in_half_precision(dtype):
    x = torch.randn(2, 10, 8)
    turned = rotate(x.to(dtype))
    assert turned.dtype == dtype
    torch.testing.assert_close(turned.float(), rotate(x), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("build", [build_global_pointer, build_efficient_global_pointer])
def test_untrained_model_finds_little(build):
    head = build(None, head_size=64)
    module = head.shims[0].maker(width=96, n_labels=C).eval()
    tokens = make_tokens([60], 96)
    found = module.decode(tokens, torch.full((C,), 0.5))
    assert len(found.spans) < 0.02 * C * 60 * 61 / 2
    assert module.logits(tokens).mean().item() == pytest.approx(START_LOGIT, abs=0.3)


@pytest.mark.parametrize("build", [build_global_pointer, build_efficient_global_pointer])
def test_hidden_layer_stands_before_the_scorer(build):
    module, tokens = make(build, hidden_width=10), make_tokens(LENGTHS, D)
    linear = module.hidden[0]
    hidden = torch.nn.functional.gelu(tokens.x @ linear.weight.t() + linear.bias)  # (B, L, 10)
    cells = module.table_of(tokens).spans(tokens.mask)[:, None].expand(-1, module.n_labels, -1, -1)
    torch.testing.assert_close(module.logits(tokens)[cells], module.scorer(hidden)[cells])
    assert hidden.shape[-1] == module.scorer.project.in_features == 10


@pytest.mark.parametrize("hidden_width", [None, 5])
@pytest.mark.parametrize("loss", ["multilabel", "binary"])
@pytest.mark.parametrize("max_width", [None, 2])
@pytest.mark.parametrize("build", [build_global_pointer, build_efficient_global_pointer])
def test_gradient_by_finite_differences(build, max_width, loss, hidden_width):
    module = make(build, torch.float64, max_width=max_width, loss=loss, hidden_width=hidden_width)
    tokens = make_tokens([4, 2], D, dtype=torch.float64)
    gold = make_gold([(0, 0, 3, 1), (0, 1, 2, 0), (1, 0, 2, 2)])

    def loss_of(x):
        return module(type(tokens)(x, tokens.mask, tokens.lengths), gold)

    assert torch.autograd.gradcheck(loss_of, (tokens.x.requires_grad_(True),))


@pytest.mark.parametrize("known", [None, torch.ones((4, 5), dtype=torch.bool)])
@pytest.mark.parametrize("loss", ["multilabel", "binary"])
@pytest.mark.parametrize("max_width", [None, 2])
def test_loss_on_meta(max_width, loss, known):
    module = make(max_width=max_width, loss=loss)
    loss_on_meta(module, make_tokens(LENGTHS, D), make_gold(GOLD, known=known))


@pytest.mark.parametrize(
    "option", [{"head_size": 3}, {"head_size": 0}, {"max_width": 0}, {"hidden_width": 0}]
)
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match="is not possible"):
        build_global_pointer(None, **option)
