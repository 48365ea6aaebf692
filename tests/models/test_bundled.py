"""Bundling: the weights 0 and 1 are the single systems, and any two heads go together."""

from functools import partial

import numpy
import pytest
import torch
from torch import nn

from spacy_spanner.bridge import head_of, span_table_model, word_readers
from spacy_spanner.contract import KEYS, Gold, SpanModule, StartsFromSample, Tokens
from spacy_spanner.grouping import padding_budget
from spacy_spanner.models.bundled import BundledNER, build_bundled_ner
from spacy_spanner.models.global_pointer import build_efficient_global_pointer, build_global_pointer
from spacy_spanner.models.hierarchical import build_hierarchical_ner
from spacy_spanner.models.locate_and_label import build_locate_and_label
from spacy_spanner.models.modularized_interaction import build_modularized_interaction
from spacy_spanner.models.seq_ner import SeqNER, build_seq_ner
from spacy_spanner.models.span_ner import SpanNER, build_span_ner

from ..rows import make_tokens as random_tokens

WIDTH, N_LABELS, LENGTHS = 6, 2, [5, 2, 3]
GOLD = Gold(torch.tensor([[0, 1, 4, 1], [2, 0, 1, 0], [0, 2, 3, 0]]), per_level=(2, 1))
HEADS = {
    "seq": partial(build_seq_ner, None),
    "crf": partial(build_seq_ner, None, tagging="crf", scheme="BIOES"),
    "span": partial(build_span_ner, None, max_width=3),
    "pointer": partial(build_global_pointer, None, head_size=4),
    "efficient": partial(build_efficient_global_pointer, None, head_size=4),
    "locate": partial(build_locate_and_label, None, seed_lengths=[1, 2]),
    "modular": partial(build_modularized_interaction, None, hidden=4),
    "hierarchical": partial(build_hierarchical_ner, None, hidden_width=8, sentence_width=4),
}
PAIRS = [
    ("seq", "span"),
    ("crf", "pointer"),
    ("crf", "efficient"),
    ("seq", "locate"),
    ("modular", "span"),
    ("hierarchical", "span"),
    ("hierarchical", "pointer"),
    ("seq", "modular"),
    ("modular", "hierarchical"),
    ("span", "pointer"),
]


class OwnLayers(SpanModule, StartsFromSample):
    """A tagger above layers of its own."""

    contextual = True

    def __init__(self, *, width: int, n_labels: int, states: int):
        super().__init__(width=width, n_labels=n_labels, output_width=states)
        self.layer = nn.Linear(width, states)
        self.head = SeqNER(width=states, n_labels=n_labels, dropout=0.0)

    def encode(self, tokens):
        self.encoded_in_training = self.training
        return tokens.with_states(self.layer(tokens.x).tanh(), extra=tokens.x)

    def loss(self, encoded, gold):
        return self.head.loss(encoded, gold) + 0.1 * encoded.parts["extra"].square().mean()

    def decode(self, encoded, thresholds):
        return self.head.decode(encoded, thresholds)

    def prepare(self, tokens, gold):
        self.prepared = tokens.x.shape[2]


SEQ = partial(SeqNER, dropout=0.0)
SPAN = partial(SpanNER, dropout=0.0, max_width=3)


def make_tokens(requires_grad: bool = False) -> Tokens:
    tokens = random_tokens(LENGTHS, WIDTH, seed=1)
    tokens.x.requires_grad_(requires_grad)
    keys = numpy.random.default_rng(1).integers(1, 9, tokens.mask.shape)
    tokens.extras[KEYS] = keys * tokens.mask.numpy()
    return tokens


def make_bundle(seq=SEQ, span=SPAN, **options) -> BundledNER:
    torch.manual_seed(0)
    parts = {"seq": span_table_model(None, seq), "span": span_table_model(None, span)}
    return BundledNER(width=WIDTH, n_labels=N_LABELS, **parts, **options)


def input_gradient(head: SpanModule) -> torch.Tensor:
    torch.manual_seed(2)  # the same negatives
    tokens = make_tokens(requires_grad=True)
    head(tokens, GOLD).backward()
    return tokens.x.grad


@pytest.mark.parametrize("alpha,single", [(0.0, "span"), (1.0, "seq")])
def test_extreme_weights_are_the_single_systems(alpha, single):
    bundle = make_bundle(alpha=alpha, decode_from=single)
    alone, other = (bundle.span, bundle.seq) if single == "span" else (bundle.seq, bundle.span)
    assert torch.equal(input_gradient(bundle), input_gradient(alone))
    assert all(parameter.grad is None for parameter in other.parameters())
    found = bundle.decode(bundle.encode(make_tokens()), torch.zeros(N_LABELS))
    expected = alone.decode(make_tokens(), torch.zeros(N_LABELS))
    assert torch.equal(found.spans, expected.spans) and torch.equal(found.scores, expected.scores)


def test_the_loss_is_weighed():
    bundle = make_bundle(alpha=0.3)
    tokens = make_tokens()
    seq, span = bundle.seq(tokens, GOLD), bundle.span(tokens, GOLD)
    torch.testing.assert_close(bundle(tokens, GOLD), 0.3 * seq + 0.7 * span)


def test_decoding_head():
    tokens, none = make_tokens(), torch.zeros(N_LABELS)
    found = {}
    for name in ("seq", "span"):
        bundle = make_bundle(decode_from=name)
        nn.init.normal_(bundle.span.classify.weight)
        found[name] = bundle.decode(bundle.encode(tokens), none)
        expected = getattr(bundle, name).decode(tokens, none)
        assert torch.equal(found[name].spans, expected.spans)
    assert not torch.equal(found["seq"].spans, found["span"].spans)


def test_the_partner_reads_the_states_of_the_tagger():
    bundle = make_bundle(seq=partial(OwnLayers, states=9), alpha=0.3)
    assert bundle.output_width == bundle.span.width == 9 and bundle.seq.width == WIDTH
    tokens = make_tokens()
    encoded = bundle.seq.encode(tokens)
    assert torch.equal(bundle.encode(tokens).x, encoded.x)
    expected = 0.3 * bundle.seq.loss(encoded, GOLD) + 0.7 * bundle.span.loss(encoded, GOLD)
    torch.testing.assert_close(bundle(tokens, GOLD), expected)
    found = bundle.decode(bundle.encode(tokens), torch.zeros(N_LABELS))
    assert torch.equal(found.spans, bundle.span.decode(encoded, torch.zeros(N_LABELS)).spans)


def test_the_partner_reads_the_states_of_the_span_head():
    bundle = make_bundle(span=partial(OwnLayers, states=9), alpha=0.3, decode_from="seq")
    assert bundle.output_width == bundle.seq.width == 9 and bundle.span.width == WIDTH
    tokens = make_tokens()
    encoded = bundle.span.encode(tokens)
    expected = 0.3 * bundle.seq.loss(encoded, GOLD) + 0.7 * bundle.span.loss(encoded, GOLD)
    torch.testing.assert_close(bundle(tokens, GOLD), expected)
    found = bundle.decode(bundle.encode(tokens), torch.zeros(N_LABELS))
    assert torch.equal(found.spans, bundle.seq.decode(encoded, torch.zeros(N_LABELS)).spans)


def test_two_heads_with_layers_are_stacked():
    bundle = make_bundle(partial(OwnLayers, states=9), partial(OwnLayers, states=7), alpha=0.3)
    assert (bundle.seq.width, bundle.span.width, bundle.output_width) == (WIDTH, 9, 9)
    tokens = make_tokens()
    first = bundle.seq.encode(tokens)
    second = bundle.span.encode(first)
    expected = 0.3 * bundle.seq.loss(first, GOLD) + 0.7 * bundle.span.loss(second, GOLD)
    torch.testing.assert_close(bundle(tokens, GOLD), expected)


def test_both_heads_see_the_training_data():
    bundle = make_bundle(partial(OwnLayers, states=9), partial(OwnLayers, states=7))
    bundle.eval().prepare(make_tokens(), GOLD)
    assert (bundle.seq.prepared, bundle.span.prepared) == (WIDTH, 9)
    assert not bundle.seq.encoded_in_training


@pytest.mark.parametrize("decode_from", ["seq", "span"])
@pytest.mark.parametrize("seq,span", PAIRS)
def test_any_pair_trains_and_decodes(seq, span, decode_from):
    torch.manual_seed(0)
    model = build_bundled_ner(
        seq=HEADS[seq](), span=HEADS[span](), alpha=0.5, decode_from=decode_from
    )
    bundle = model.shims[0].build(width=WIDTH, n_labels=N_LABELS)
    readers = word_readers(bundle)
    assert bool(readers) == ("hierarchical" in (seq, span))
    decoder = head_of(HEADS[seq if decode_from == "seq" else span]()).facts
    assert model.attrs["levels"] == decoder.levels
    assert model.attrs["max_width"] == decoder.max_width
    tokens = make_tokens()
    keys = tokens.extras[KEYS][tokens.mask.numpy()]
    for reader in readers:
        reader.learn_words(*numpy.unique(keys, return_counts=True))
    bundle.eval().prepare(tokens, GOLD)
    bundle.train()
    optimizer = torch.optim.Adam(bundle.parameters(), lr=0.01)
    losses = []
    for _ in range(12):
        loss = bundle(tokens, GOLD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-3:]) < sum(losses[:3])
    bundle.eval()
    with torch.inference_mode():
        found = bundle.decode(bundle.encode(tokens), torch.zeros(N_LABELS))
    assert found.spans.shape == (len(found.scores), 4)
    assert ((found.scores >= 0) & (found.scores <= 1 + 1e-6)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"seq": partial(OwnLayers, states=9)},
        {"seq": partial(SEQ, tagging="crf"), "decode_from": "both"},
    ],
)
def test_rows_do_not_depend_on_each_other(options):
    bundle, tokens = make_bundle(**options).eval(), make_tokens()
    nn.init.normal_(bundle.span.classify.weight)
    together = bundle.decode(bundle.encode(tokens), torch.zeros(N_LABELS))
    for row, n in enumerate(LENGTHS):
        alone = Tokens(tokens.x[row : row + 1, :n], tokens.mask[row : row + 1, :n], [n])
        single = bundle.decode(bundle.encode(alone), torch.zeros(N_LABELS))
        here = together.spans[:, 0] == row
        assert torch.equal(single.spans[:, 1:], together.spans[here, 1:])
        torch.testing.assert_close(single.scores, together.scores[here])


def test_loss_never_reads_from_the_device():
    bundle, tokens = make_bundle(alpha=0.1).to("meta"), make_tokens()
    on_device = Tokens(tokens.x.to("meta"), tokens.mask.to("meta"), LENGTHS)
    loss = bundle(on_device, Gold(GOLD.spans.to("meta"), GOLD.per_level, tokens.mask.to("meta")))
    loss.backward()
    assert loss.shape == ()


def test_gradients():
    bundle, tokens = make_bundle(alpha=0.4).double(), make_tokens()
    x = tokens.x.double().requires_grad_(True)

    def loss(x):
        return bundle(Tokens(x, tokens.mask, tokens.lengths), GOLD)

    assert torch.autograd.gradcheck(loss, (x,), fast_mode=True)


def test_cells_of_the_hungrier_head():
    bundle = make_bundle()
    assert bundle.cells(4) == max(bundle.seq.cells(4), bundle.span.cells(4))
    both = [padding_budget(head, 4) for head in (bundle.seq, bundle.span)]
    assert padding_budget(bundle.train(), 4) == max(both)
    assert padding_budget(bundle.eval(), 4) == padding_budget(bundle.span, 4)


def test_build_defaults_and_options():
    model = build_bundled_ner(None, learn_rate_scale=3.0)
    bundle = model.shims[0].build(width=WIDTH, n_labels=N_LABELS)
    assert isinstance(bundle.seq, SeqNER) and isinstance(bundle.span, SpanNER)
    assert (bundle.alpha, bundle.decode_from) == (0.1, "span")
    assert model.attrs["max_width"] == 10 and model.shims[0].learn_rate_scale == 3.0


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="alpha"):
        build_bundled_ner(None, alpha=1.5)
    with pytest.raises(ValueError, match=r"span\.tok2vec"):
        build_bundled_ner(None, span=build_span_ner(build_seq_ner(None)))
