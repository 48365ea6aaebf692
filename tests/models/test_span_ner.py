"""SpanNER against a plain loop over concatenated span vectors."""

import pytest
import torch
from torch.nn import functional as F

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.span_ner import PARTS, SpanNER, build_span_ner, max_of_rows

from ..rows import make_tokens as random_tokens
from ..rows import with_sentences

REPRESENTATIONS = ["boundary", "pooling", "hybrid"]
LENGTHS = [6, 1, 4]
WIDTH, N_LABELS, MAX_WIDTH = 5, 2, 3
# The first is wider than the band but not than two of them, the third has two labels.
GOLD = Gold(
    torch.tensor([[0, 0, 5, 1], [2, 1, 3, 0], [0, 4, 5, 0], [0, 4, 5, 1]]), per_level=(2, 2)
)


def make_head(**options) -> SpanNER:
    torch.manual_seed(0)
    settings = {"max_width": MAX_WIDTH, "dropout": 0.0, "length_width": 4, **options}
    return SpanNER(width=WIDTH, n_labels=N_LABELS, **settings).double()


def make_tokens(lengths=LENGTHS) -> Tokens:
    return random_tokens(lengths, WIDTH, dtype=torch.float64)


def all_spans(lengths=LENGTHS, max_width=MAX_WIDTH) -> list:
    return [
        (row, start, end)
        for row, n in enumerate(lengths)
        for start in range(n)
        for end in range(start + 1, min(start + max_width, n) + 1)
    ]


def plain_logits(
    head: SpanNER, tokens: Tokens, row: int, start: int, end: int, context: slice = slice(None)
) -> torch.Tensor:
    """The equation of the paper: one linear layer over one long vector."""
    words = tokens.x[row, : tokens.lengths[row]]
    vectors = {
        "start": words[start],
        "end": words[end - 1],
        "pool": words[start:end].max(0).values,
        "context": words[context].max(0).values,
        "length": head.lengths.weight[min(end - start, 100) - 1],
    }
    return head.classify(torch.cat([vectors[part] for part in head.parts]))


def test_context_is_that_of_the_sentence():
    """The context of a span is the sentence of its first token, wherever the row begins and ends."""
    head, tokens = make_head(), make_tokens()
    logits = head.band_logits(head.project(with_sentences(tokens, [(0, 2), (0, 5), (2, 3)])))
    bounds = {0: [0, 2, 5, 6], 1: [0, 1], 2: [0, 3, 4]}
    for row, start, end in all_spans():
        first = max(b for b in bounds[row] if b <= start)
        last = min(b for b in bounds[row] if b > start)
        expected = plain_logits(head, tokens, row, start, end, slice(first, last))
        torch.testing.assert_close(logits[row, start, end - start - 1], expected)


def test_rows_of_several_sentences_have_negatives_for_each():
    head = make_head(max_negatives=2)
    tokens = with_sentences(make_tokens(), [(0, 2), (0, 4)])
    _, chosen = head.sample_negatives(tokens, Gold(GOLD.spans[:0], ()))
    assert chosen.sum(1).tolist() == [6, 1, 2]


def test_the_three_concatenations():
    assert PARTS["boundary"] == ("start", "end", "length")
    assert PARTS["pooling"] == ("pool", "context", "length")
    assert PARTS["hybrid"] == ("start", "end", "pool", "context", "length")


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_equal_a_plain_loop(representation, dtype):
    head = make_head(representation=representation).to(dtype)
    tokens = make_tokens()
    tokens = tokens.with_states(tokens.x.to(dtype))
    added = head.project(tokens)
    band = head.band_logits(added)
    for row, start, end in all_spans():
        expected = plain_logits(head, tokens, row, start, end)
        found = band[row, start, end - start - 1]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        single = head.span_logits(added, torch.tensor([[row, start, end, 0]]))
        torch.testing.assert_close(single[0], expected, rtol=0, atol=1e-5)
    for row, start, end in [(0, 0, 5), (0, 1, 5), (0, 0, 6), (2, 0, 4)]:  # wider than the band
        single = head.span_logits(added, torch.tensor([[row, start, end, 0]]))
        expected = plain_logits(head, tokens, row, start, end)
        torch.testing.assert_close(single[0], expected, rtol=0, atol=1e-5)


def test_long_spans_share_the_last_length():
    head, tokens = make_head(max_width=130), make_tokens([125])
    band = head.band_logits(head.project(tokens))
    for width in (99, 100, 101, 125):
        expected = plain_logits(head, tokens, 0, 0, width)
        torch.testing.assert_close(band[0, 0, width - 1], expected)


def test_gold_wider_than_two_bands_is_pooled_over_both_its_ends():
    head, tokens = make_head(max_width=2), make_tokens([6])
    found = head.span_logits(head.project(tokens), torch.tensor([[0, 0, 6, 0]]))
    tokens.x[0, 2:4] = -100.0  # the middle
    again = head.span_logits(head.project(tokens), torch.tensor([[0, 0, 6, 0]]))
    before = make_tokens([6])
    context = max_of_rows(tokens.x, tokens.mask) - max_of_rows(before.x, before.mask)
    shift = context[0] @ head._weights()["context"].T
    torch.testing.assert_close(found + shift, again)


def test_number_of_candidates():
    head, tokens = make_head(max_width=10), make_tokens([100])
    head.classify.bias.data[1] = 1e4  # everything is an entity
    found = head.decode(tokens, torch.zeros(N_LABELS))
    assert len(found.spans) == 955
    assert {tuple(span) for span in found.spans[:, :3].tolist()} == set(all_spans([100], 10))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_loss_is_the_mean_over_gold_and_negatives(representation):
    """With enough room every span that is not gold is drawn."""
    head, tokens = make_head(representation=representation), make_tokens()
    known = tokens.mask.clone()
    known[2, 3] = False
    gold_cells = {tuple(span[:3]) for span in GOLD.spans.tolist()}
    for limit in (None, known):
        losses = []
        for row, start, end, label in GOLD.spans.tolist():
            logits = plain_logits(head, tokens, row, start, end)
            losses.append(F.cross_entropy(logits, torch.tensor(label + 1)))
        for row, start, end in all_spans():
            annotated = limit is None or bool(limit[row, start:end].all())
            if (row, start, end) not in gold_cells and annotated:
                logits = plain_logits(head, tokens, row, start, end)
                losses.append(F.cross_entropy(logits, torch.tensor(0)))
        loss = head(tokens, Gold(GOLD.spans, (2, 2), limit))
        torch.testing.assert_close(loss, torch.stack(losses).mean())


def test_negatives_are_fresh_free_and_few():
    head, tokens = make_head(max_negatives=4), make_tokens()
    known = tokens.mask.clone()
    known[0, 0] = False
    gold = Gold(GOLD.spans, (2, 2), known)
    gold_cells = {tuple(span[:3]) for span in GOLD.spans.tolist()}
    allowed = {s for s in all_spans() if s not in gold_cells and s[:2] != (0, 0)}
    seen, draws = set(), []
    for _ in range(200):
        cell, chosen = head.sample_negatives(tokens, gold)
        start, width = cell // MAX_WIDTH, cell % MAX_WIDTH + 1
        drawn = {
            (row, start[row, i].item(), (start + width)[row, i].item())
            for row, i in chosen.nonzero().tolist()
        }
        assert chosen.sum(1).tolist() == [4, 1, 4]  # min(|S|, 4)
        assert len(drawn) == 9
        seen |= drawn
        draws.append(drawn)
    assert seen == allowed
    assert draws[0] != draws[1]


def test_no_gold_and_no_negatives():
    head, tokens = make_head(), make_tokens([1])
    blank = Gold(GOLD.spans[:0], (), torch.zeros((1, 1), dtype=torch.bool))
    assert head(tokens, blank) == 0
    only_gold = head(tokens, Gold(torch.tensor([[0, 0, 1, 1]]), (1,)))
    expected = F.cross_entropy(plain_logits(head, tokens, 0, 0, 1), torch.tensor(2))
    torch.testing.assert_close(only_gold, expected)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_decode_equals_a_plain_loop(representation):
    head, tokens = make_head(representation=representation), make_tokens()
    torch.nn.init.normal_(head.classify.weight)
    thresholds = torch.tensor([0.6, 0.8], dtype=torch.float64)
    expected = {}
    for row, start, end in all_spans():
        scores = plain_logits(head, tokens, row, start, end).softmax(0)
        best = int(scores.argmax())
        if best > 0 and scores[best] > thresholds[best - 1]:
            expected[row, start, end, best - 1] = scores[best].item()
    found = head.decode(tokens, thresholds)
    assert {tuple(span) for span in found.spans.tolist()} == set(expected)
    assert 0 < len(expected) < len(all_spans())
    scores = torch.tensor([expected[tuple(s)] for s in found.spans.tolist()]).double()
    torch.testing.assert_close(found.scores, scores, rtol=0, atol=1e-6)


def test_a_label_that_hardly_wins_is_a_label():
    head, tokens = make_head(representation="boundary"), make_tokens([1])
    for parameter in head.parameters():
        torch.nn.init.zeros_(parameter)
    head.classify.bias.data[2] = 1e-20  # too little for the probabilities to differ
    found = head.decode(tokens, torch.zeros(N_LABELS))
    assert len(found.spans) == 1 and 0 <= found.spans[0, 3] < N_LABELS


def test_without_negatives():
    head, tokens = make_head(max_negatives=0), make_tokens()
    losses = [
        F.cross_entropy(plain_logits(head, tokens, *span[:3]), torch.tensor(span[3] + 1))
        for span in GOLD.spans.tolist()
    ]
    torch.testing.assert_close(head(tokens, GOLD), torch.stack(losses).mean())


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_rows_do_not_depend_on_each_other(representation):
    head = make_head(representation=representation)
    torch.nn.init.normal_(head.classify.weight)
    tokens, thresholds = make_tokens(), torch.zeros(N_LABELS).double()
    together = head.decode(tokens, thresholds)
    for row, n in enumerate(LENGTHS):
        alone = Tokens(tokens.x[row : row + 1, :n], tokens.mask[row : row + 1, :n], [n])
        single = head.decode(alone, thresholds)
        here = together.spans[:, 0] == row
        assert torch.equal(single.spans[:, 1:], together.spans[here, 1:])
        torch.testing.assert_close(single.scores, together.scores[here])


def test_padding_gets_no_gradient():
    head, tokens = make_head(max_negatives=1000), make_tokens()
    tokens.x.requires_grad_(True)
    head(tokens, GOLD).backward()
    touched = tokens.x.grad.abs().sum(2) > 0
    assert torch.equal(touched, tokens.mask)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_gradients(representation):
    head, tokens = make_head(representation=representation), make_tokens()

    def loss(x, *parameters):
        return head(Tokens(x, tokens.mask, tokens.lengths), GOLD)  # all negatives: no chance

    assert torch.autograd.gradcheck(
        loss, (tokens.x.requires_grad_(True), *head.parameters()), fast_mode=True
    )


def test_dropout_is_the_same_for_a_row_and_in_training_only():
    head, tokens = make_head(dropout=0.5), make_tokens()
    dropped = head._drop_channels(tokens.x)
    factors = (dropped / tokens.x).nan_to_num(-1.0)
    for row, n in enumerate(LENGTHS):
        assert (factors[row, :n] == factors[row, :1]).all()
    assert {0.0, 2.0} == set(factors[tokens.mask].unique().tolist())
    assert head(tokens, GOLD) != head(tokens, GOLD)
    head.eval()
    torch.testing.assert_close(head(tokens, GOLD), head(tokens, GOLD))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_loss_never_reads_from_the_device(representation):
    head, tokens = make_head(representation=representation, dropout=0.1).to("meta"), make_tokens()
    known = torch.ones_like(tokens.mask).to("meta")
    on_device = Tokens(tokens.x.to("meta"), tokens.mask.to("meta"), LENGTHS)
    loss = head(on_device, Gold(GOLD.spans.to("meta"), GOLD.per_level, known))
    loss.backward()
    assert loss.shape == () and head.classify.weight.grad is not None


def test_cells():
    head = make_head()
    assert head.cells(7) == 7 * MAX_WIDTH * (N_LABELS + 1)
    assert head.cells(1) == WIDTH  # the token vectors themselves


def test_build():
    options = {"max_width": 6, "max_negatives": 7, "length_width": 3, "dropout": 0.3}
    model = build_span_ner(None, representation="pooling", learn_rate_scale=2.0, **options)
    head = model.shims[0].build(width=4, n_labels=3)
    assert head.classify.weight.shape == (4, 4 + 4 + 3)
    assert (head.max_width, head.max_negatives) == (6, 7)
    assert head.dropout.p == 0.3 and model.shims[0].learn_rate_scale == 2.0
    assert model.attrs["max_width"] == 6 and model.attrs["levels"] is None


@pytest.mark.parametrize(
    "option,value", [("max_width", 0), ("length_width", 0), ("max_negatives", -1)]
)
def test_impossible_options_are_refused(option, value):
    with pytest.raises(ValueError, match=option):
        build_span_ner(None, **{option: value})
