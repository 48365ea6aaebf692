"""Scores of spans by their content against slow loops, alone and inside the heads that have them."""

import pytest
import torch
from torch.nn import functional as F

from spacy_spanner.contract import Tokens
from spacy_spanner.label_axes import LABELS
from spacy_spanner.models.global_pointer import build_efficient_global_pointer, build_global_pointer
from spacy_spanner.models.span_content import SpanContent
from spacy_spanner.models.span_ner import build_span_ner
from spacy_spanner.spans.bands import pairs_of_band
from spacy_spanner.spans.pair_table import PairTable
from spacy_spanner.spans.sentence_line import SentenceLine

from ..rows import (
    gradient_is_exact,
    loss_on_meta,
    make_gold,
    make_tokens,
    one_row,
    table,
    with_sentences,
)

D, C, H, WIDEST = 6, 3, 5, 3
LENGTHS = [5, 3, 1, 4]
GOLD = [(0, 0, 5, 1), (0, 1, 3, 1), (0, 1, 3, 2), (1, 0, 1, 0), (3, 2, 4, 2)]
HEADS = {
    "global_pointer": (
        build_global_pointer,
        {"head_size": 4, "content_width": H, "content_max_width": WIDEST},
    ),
    "with_product": (
        build_global_pointer,
        {
            "head_size": 4,
            "content_width": H,
            "content_max_width": WIDEST,
            "content_product": True,
            "content_norm": True,
        },
    ),
    "efficient_global_pointer": (
        build_efficient_global_pointer,
        {"head_size": 4, "content_width": H, "content_max_width": WIDEST},
    ),
    "span_ner": (build_span_ner, {"content_width": H, "max_width": WIDEST}),
    "span_ner_with_product": (
        build_span_ner,
        {
            "content_width": H,
            "max_width": WIDEST,
            "content_product": True,
            "content_norm": True,
        },
    ),
}


def make_content(layers, **options):
    torch.manual_seed(1)
    content = SpanContent(
        width=D, n_out=C, axis=LABELS, size=H, layers=layers, max_width=WIDEST, **options
    )
    return filled(content).eval()


def make_head(name, dtype=torch.float32, **options):
    torch.manual_seed(1)
    build, settings = HEADS[name]
    module = build(None, **{**settings, **options}).shims[0].maker(width=D, n_labels=C).to(dtype)
    return filled(module)


def filled(module):
    """With numbers everywhere: layers that start as none would hide their mistakes."""
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


def slow_vector(content, x, i, w):
    """GELU of the projected first token, last token, mean and width of one span, with the product of
    its ends and normalised where that is asked for."""
    projected = [content.project(v).split(H) for v in x]
    inner = torch.stack([projected[k][2] for k in range(i, i + w + 1)]).mean(0)
    vector = projected[i][0] + projected[i + w][1] + inner + content.widths.weight[w]
    if content.factors is not None:
        of_first, of_last = content.factors(x[i])[:H], content.factors(x[i + w])[H:]
        vector = vector + torch.stack([of_first[k] * of_last[k] for k in range(H)])
    if content.norm is not None:
        centred = vector - vector.mean()
        vector = centred / (centred.square().mean() + content.norm.eps).sqrt()
        vector = vector * content.norm.weight + content.norm.bias
    return F.gelu(vector)


def slow_scores(content, x, n_widths, starts=(0,)):
    """The scores of all spans of a row by loops over cells and their neighbours, in sentences that begin
    at `starts`."""
    n = len(x)
    places = [(i, w) for i in range(n) for w in range(n_widths) if i + w < n]
    cells = {place: slow_vector(content, x, *place) for place in places}
    scores = {place: content.out(vector) for place, vector in cells.items()}
    if content.out_around is None:
        return scores
    for begin, end in zip(starts, [*starts[1:], n]):
        within = {(i, w): cells[i, w] for i, w in places if begin <= i and i + w < end}
        for place, added in slow_around(content, within).items():
            scores[place] = scores[place] + added
    return scores


def slow_around(content, cells):
    """What the spans of one sentence, whose vectors these are, get from those beside them."""
    for convolve, norm in zip(content.convolutions, content.norms):
        after = {}
        for i, w in cells:
            around = convolve.bias.clone()
            for a in (-1, 0, 1):
                for b in (-1, 0, 1):
                    if (i + a, w + b) in cells:
                        around = around + convolve.weight[:, :, a + 1, b + 1] @ cells[i + a, w + b]
            after[i, w] = F.gelu(norm(around))
        cells = after
    return {place: content.out_around(vector) for place, vector in cells.items()}


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_scores_equal_a_slow_loop(layers, normalise, product):
    content = make_content(layers, normalise=normalise, product=product)
    tokens = make_tokens(LENGTHS, D)
    scores = content(tokens, 10)
    assert scores.shape == (len(LENGTHS), max(LENGTHS), WIDEST, C)
    for row, length in enumerate(LENGTHS):
        slow = slow_scores(content, tokens.x[row, :length], WIDEST)
        assert slow
        for (i, w), expected in slow.items():
            torch.testing.assert_close(scores[row, i, w], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 2])
def test_spans_see_those_of_their_own_sentence_alone(layers):
    content = make_content(layers)
    tokens = make_tokens(LENGTHS, D)
    starts = {0: (0, 2, 4), 3: (0, 3)}
    inside = [(row, token) for row, tokens_of in starts.items() for token in tokens_of]
    scores = content(with_sentences(tokens, inside), WIDEST)
    for row, length in enumerate(LENGTHS):
        x = tokens.x[row, :length]
        for (i, w), expected in slow_scores(content, x, WIDEST, starts.get(row, (0,))).items():
            torch.testing.assert_close(scores[row, i, w], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("n_widths", [1, 2, 10])
def test_sentences_on_a_line(n_widths):
    line = SentenceLine([2, 3, 3, 1, 3, 1], gap=2, device=torch.device("cpu"))
    places = [0, 1, 4, 5, 6, 9, 10, 11, 14, 17, 18, 19, 22]
    assert line.place.tolist() == places and line.length == 23
    left = [2, 1, 3, 2, 1, 3, 2, 1, 1, 3, 2, 1, 1]
    expected = [[w + 1 <= n for w in range(n_widths)] for n in left]
    assert line.spans(n_widths).tolist() == expected
    values = torch.randn(13, 2)
    laid = line.lay(values)
    assert torch.equal(line.take(laid), values)
    assert laid.abs().sum() == pytest.approx(values.abs().sum().item())  # nothing in the gaps


@pytest.mark.parametrize("name", HEADS)
def test_only_convolutions_must_know_sentences(name):
    build, settings = HEADS[name]
    context = {"representation": "boundary"} if "span_ner" in name else {}
    for layers, needed in [(0, False), (1, True)]:
        model = build(None, **{**settings, **context, "content_layers": layers})
        assert model.attrs["needs_sentences"] == needed
    model = build(None, **{**settings, **context, "content_width": None})
    assert not model.attrs["needs_sentences"]


def test_no_wider_than_asked_for():
    tokens = make_tokens(LENGTHS, D)
    assert make_content(1)(tokens, 2).shape[2] == 2


@pytest.mark.parametrize("length,width", [(5, 3), (4, 4), (1, 1), (6, 1)])
def test_band_as_pairs_equals_a_loop(length, width):
    band = torch.randn(2, length, width)
    pairs = pairs_of_band(band)
    assert pairs.shape == (2, length, length)
    for i in range(length):
        for j in range(i, length):
            expected = band[:, i, j - i] if j - i < width else torch.zeros(2)
            assert torch.equal(pairs[:, i, j], expected)


@pytest.mark.parametrize("length", [4, 30])  # all pairs, and a band
def test_values_of_a_band_are_those_of_the_cells_of_a_table(length):
    pair_table = PairTable(length, min(length, 5))
    assert (pair_table.band is None) == (length == 4)
    values = torch.randn(1, length, 3)
    in_table = pair_table.of_band(values)
    for i in range(length):
        for w in range(min(pair_table.widest, length - i)):
            column = i + w if pair_table.band is None else w
            assert in_table[0, i, column] == (values[0, i, w] if w < 3 else 0)


@pytest.mark.parametrize("name", ["global_pointer", "with_product"])
@pytest.mark.parametrize("max_width", [None, 1, 2])
def test_pointers_add_the_scores_of_the_content(name, max_width):
    module, tokens = make_head(name, max_width=max_width).eval(), make_tokens(LENGTHS, D)
    pair_table, both = module.table_of(tokens), module.logits(tokens)
    content, module.content = module.content, None
    by_ends = module.logits(tokens)
    for row, length in enumerate(LENGTHS):
        slow = slow_scores(content, tokens.x[row, :length], min(WIDEST, pair_table.widest))
        for i in range(length):
            for w in range(min(length - i, pair_table.widest)):
                column = i + w if pair_table.band is None else w
                added = both[row, :, i, column] - by_ends[row, :, i, column]
                expected = slow.get((i, w), torch.zeros(C))  # wider spans: by their ends alone
                torch.testing.assert_close(added, expected, atol=1e-4, rtol=1e-4)


def test_span_ner_adds_the_scores_of_the_content_to_cells_and_single_spans():
    module, tokens = make_head("span_ner").eval(), make_tokens(LENGTHS, D)
    added = module.project(tokens)
    band = module.band_logits(added)
    spans = torch.tensor([(0, 0, 5, 0), (0, 1, 3, 0), (1, 0, 3, 0), (3, 2, 4, 0)])
    single = module.span_logits(added, spans)
    for logits, (row, start, end, _) in zip(single, spans.tolist()):
        if end - start <= WIDEST:
            torch.testing.assert_close(logits, band[row, start, end - start - 1])
    content, module.content = module.content, None
    without = module.span_logits(module.project(tokens), spans)
    scores = content(tokens, WIDEST)
    torch.testing.assert_close(single[0], without[0])  # too wide to have a vector
    torch.testing.assert_close(single[1] - without[1], scores[0, 1, 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", HEADS)
def test_batch_equals_single_rows(name):
    module, tokens = make_head(name).eval(), make_tokens(LENGTHS, D)
    thresholds = torch.tensor([0.3, 0.2, 0.4])
    together = table(module.decode(tokens, thresholds))
    alone = []
    for row in range(len(LENGTHS)):
        found = module.decode(one_row(tokens, row, extra=row), thresholds)
        alone += [(row, *rest) for _, *rest in table(found)]
    assert [found[:4] for found in together] == [found[:4] for found in sorted(alone)] and together
    for left, right in zip(together, sorted(alone)):
        assert left[4] == pytest.approx(right[4], abs=2e-5)


@pytest.mark.parametrize("name", ["global_pointer", "with_product", "efficient_global_pointer"])
@pytest.mark.parametrize("max_width", [None, 1])
def test_gradient_is_that_of_finite_differences(name, max_width):
    module = make_head(name, torch.float64, max_width=max_width).eval()
    tokens = make_tokens(LENGTHS, D, dtype=torch.float64)
    assert gradient_is_exact(module, tokens, make_gold(GOLD))


@pytest.mark.parametrize("name", HEADS)
def test_loss_reads_nothing_on_the_host(name):
    loss = loss_on_meta(make_head(name), make_tokens(LENGTHS, D), make_gold(GOLD))
    assert loss.device.type == "meta"


@pytest.mark.parametrize("name", HEADS)
def test_memory_of_a_row_counts_the_vectors_of_spans(name):
    big, plain = make_head(name, content_width=500), make_head(name, content_width=None)
    assert big.cells(40) == 40 * WIDEST * 500 > plain.cells(40)
    assert plain.content is None


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("option", ["content_width", "content_layers"])
def test_values_that_cannot_work_are_refused(name, option):
    with pytest.raises(ValueError, match=option):
        make_head(name, **{option: -1})


def test_a_bound_that_holds_no_span_is_refused():
    with pytest.raises(ValueError, match="content_max_width"):
        make_head("global_pointer", content_max_width=0)


def test_unknown_tokens_teach_nothing_of_spans_over_them():
    """A span sees its neighbours, so what it learns may reach an unknown token; a span over one counts
    neither as found nor as missed."""
    module, tokens = make_head("global_pointer").eval(), make_tokens([4, 4], D)
    known = torch.tensor([[True, False, True, True], [True] * 4])
    gold = make_gold([(0, 2, 3, 0), (1, 0, 2, 1)], known=known)
    more = make_gold([(0, 2, 3, 0), (1, 0, 2, 1)], known=torch.ones_like(known))
    assert module(tokens, gold).item() != pytest.approx(module(tokens, more).item())
    without_layers = make_head("global_pointer", content_layers=0)
    x = tokens.x.clone().requires_grad_(True)
    without_layers(Tokens(x, tokens.mask, tokens.lengths), gold).backward()
    assert x.grad[0, 1].abs().max() < 1e-8 < x.grad[0, 0].abs().max()  # sums are taken of sums
