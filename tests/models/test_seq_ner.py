"""SeqNER: dropout and a tagger."""

import pytest
import torch

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.seq_ner import SeqNER, build_seq_ner

from ..rows import make_tokens as random_tokens

OPTIONS = [
    {"tagging": tagging, "scheme": scheme, "levels": levels}
    for tagging in ("softmax", "crf")
    for scheme in ("BIO", "BIOES")
    for levels in (1, 2)
]
LENGTHS = [5, 2, 3]
GOLD = Gold(torch.tensor([[0, 1, 4, 1], [2, 0, 1, 0], [0, 2, 3, 0]]), per_level=(2, 1))


def make_head(**options) -> SeqNER:
    torch.manual_seed(0)
    head = SeqNER(width=6, n_labels=2, **options).double()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    return head


def make_tokens(lengths=LENGTHS) -> Tokens:
    return random_tokens(lengths, 6, dtype=torch.float64)


@pytest.mark.parametrize("options", OPTIONS)
def test_each_level_learns_its_own_spans(options):
    """The outermost alone where there is one level; a level without gold learns that it has none."""
    head, tokens = make_head(dropout=0.0, **options), make_tokens()
    assert len(head.taggers) == options["levels"]
    by_level = [GOLD.spans[:2], GOLD.spans[2:]]
    expected = sum(
        tagger.loss(tokens.x, tokens.mask, spans) for tagger, spans in zip(head.taggers, by_level)
    )
    torch.testing.assert_close(head(tokens, GOLD), expected)
    flat = Gold(GOLD.flat, per_level=(2,))
    assert (head(tokens, flat) == head(tokens, GOLD)) == (options["levels"] == 1)


@pytest.mark.parametrize("tagging", ["softmax", "crf"])
def test_spans_of_all_levels_are_found_once_and_their_probabilities_added(tagging):
    head, tokens = make_head(tagging=tagging, levels=3).eval(), make_tokens()
    # The two inner levels find the same.
    head.inner[1].load_state_dict(head.inner[0].state_dict())
    none = torch.zeros(2).double()
    parts = [tagger.decode(tokens.x, tokens.mask, none).spans for tagger in head.taggers]
    found = head.decode(tokens, none)
    expected = {tuple(span) for part in parts for span in part.tolist()}
    assert len(found.spans) == len(expected) < sum(map(len, parts))
    assert {tuple(span) for span in found.spans.tolist()} == expected
    scores = [
        tagger.tags.span_scores(tagger.project(tokens.x), tokens.mask, found.spans)
        for tagger in head.taggers
    ]
    added = torch.stack(scores).sum(0)
    torch.testing.assert_close(found.scores, added.clamp(max=1))
    torch.testing.assert_close(head.span_scores(tokens, found.spans), found.scores)
    assert (added > 1).any() and (found.scores < 1).any()
    half = head.decode(tokens, none + 0.5)
    assert {tuple(span) for span in half.spans.tolist()} == {
        tuple(span) for span in found.spans[found.scores > 0.5].tolist()
    }


def test_no_labels_and_no_spans():
    head = SeqNER(width=6, n_labels=0, levels=2).double().eval()
    assert len(head.decode(make_tokens(), torch.zeros(0).double()).spans) == 0


@pytest.mark.parametrize("levels", [0, -1])
def test_at_least_one_level(levels):
    with pytest.raises(ValueError, match=r"S003.*levels"):
        build_seq_ner(None, levels=levels)


@pytest.mark.parametrize("options", OPTIONS)
def test_unknown_tokens_stay_out(options):
    head, tokens = make_head(dropout=0.0, **options), make_tokens()
    known = torch.zeros_like(tokens.mask)
    blank = Gold(GOLD.spans[:0], (), known)
    torch.testing.assert_close(head(tokens, blank), torch.zeros(()).double(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("options", OPTIONS)
def test_rows_do_not_depend_on_each_other(options):
    head, tokens = make_head(**options).eval(), make_tokens()
    together = head.decode(head.encode(tokens), torch.zeros(2).double())
    assert len(together.spans)
    for row, n in enumerate(LENGTHS):
        alone = Tokens(tokens.x[row : row + 1, :n], tokens.mask[row : row + 1, :n], [n])
        single = head.decode(head.encode(alone), torch.zeros(2).double())
        here = together.spans[:, 0] == row
        assert torch.equal(single.spans[:, 1:], together.spans[here, 1:])
        torch.testing.assert_close(single.scores, together.scores[here])


def test_dropout_in_training_only():
    head, tokens = make_head(dropout=0.5), make_tokens()
    assert head(tokens, GOLD) != head(tokens, GOLD)
    head.eval()
    assert head(tokens, GOLD) == head(tokens, GOLD)


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients(options):
    head, tokens = make_head(dropout=0.0, **options), make_tokens([3, 2])
    gold = Gold(torch.tensor([[0, 1, 3, 1], [1, 0, 1, 0]]), (2,))

    def loss(x, *parameters):
        return head(Tokens(x, tokens.mask, tokens.lengths), gold)

    assert torch.autograd.gradcheck(
        loss, (tokens.x.requires_grad_(True), *head.parameters()), fast_mode=True
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_loss_never_reads_from_the_device(options):
    head, tokens = make_head(**options).to("meta"), make_tokens()
    known = torch.ones_like(tokens.mask).to("meta")
    on_device = Tokens(tokens.x.to("meta"), tokens.mask.to("meta"), LENGTHS)
    loss = head(on_device, Gold(GOLD.spans.to("meta"), GOLD.per_level, known))
    loss.backward()
    assert loss.shape == ()


def test_cells():
    assert make_head(tagging="softmax", legal=False).cells(7) == 7 * 5
    crf = make_head(tagging="crf")
    assert (crf.train().cells(7), crf.cells(3)) == (7 * 5, 3 * 5)
    assert (crf.eval().cells(7), crf.cells(3)) == (7 * 5, 5 * 5)


def test_build():
    model = build_seq_ner(None, tagging="crf", scheme="BIOES", dropout=0.3, learn_rate_scale=2.0)
    head = model.shims[0].build(width=4, n_labels=3)
    assert head.tagger.tags.crf is not None and head.tagger.tags.n_tags == 13
    assert head.dropout.p == 0.3 and model.shims[0].learn_rate_scale == 2.0
    assert model.attrs["levels"] == 1 and model.attrs["max_width"] is None
    assert build_seq_ner(None, levels=3).attrs["levels"] == 3
