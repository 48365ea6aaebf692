"""One interface for softmax and CRF taggers: losses, decoding, honest confidences."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from spacy_spanner.decoders.tagger import Tagger, TagLayer, independent_span_scores
from spacy_spanner.decoders.tags import TagScheme

KINDS = ["softmax", "crf"]
SCHEMES = ["BIO", "BIOES"]
GOLD = torch.tensor([[0, 0, 2, 1], [0, 2, 3, 0], [1, 1, 2, 1]])
MASK = torch.arange(4) < torch.tensor([[4], [2], [3]])
NO_THRESHOLD = torch.zeros(2)


def make_tagger(kind: str, scheme: str, reduction: str = "mean") -> Tagger:
    torch.manual_seed(1)
    tags = TagLayer(n_labels=2, scheme=scheme, kind=kind, reduction=reduction)
    tagger = Tagger(tags, width=6)
    for parameter in tagger.parameters():
        torch.nn.init.normal_(parameter)
    return tagger.double()


def make_x() -> torch.Tensor:
    torch.manual_seed(2)
    return torch.randn(3, 4, 6, dtype=torch.float64) * MASK[..., None]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_softmax_loss_is_the_mean_over_known_tokens(scheme):
    tagger, x = make_tagger("softmax", scheme), make_x()
    known = torch.ones_like(MASK)
    known[0, 3] = known[2, 1] = False
    tags = tagger.tags.scheme.spans_to_tags(GOLD, (3, 4))
    logits = tagger.project(x)
    for limit in (None, known):
        used = MASK if limit is None else MASK & limit
        expected = F.cross_entropy(logits[used], tags[used])
        torch.testing.assert_close(tagger.loss(x, MASK, GOLD, limit), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_crf_loss_is_the_mean_over_rows(scheme):
    tagger, x = make_tagger("crf", scheme), make_x()
    tags = tagger.tags.scheme.spans_to_tags(GOLD, (3, 4))
    expected = tagger.tags.crf.nll(tagger.project(x), tags, MASK).mean()
    torch.testing.assert_close(tagger.loss(x, MASK, GOLD), expected)


@pytest.mark.parametrize(
    "kind,reduction,count",
    [
        ("softmax", "mean", int(MASK.sum())),
        ("softmax", "tokens", int(MASK.sum())),
        ("crf", "mean", len(MASK)),
        ("crf", "tokens", int(MASK.sum())),
    ],
)
def test_summed_loss(kind, reduction, count):
    x = make_x()
    mean = make_tagger(kind, "BIO", reduction).loss(x, MASK, GOLD)
    total = make_tagger(kind, "BIO", "sum").loss(x, MASK, GOLD)
    torch.testing.assert_close(total, mean * count)


def test_crf_loss_by_token_counts_known_tokens_only():
    known = MASK.clone()
    known[0, 3] = known[1, 0] = False
    x = make_x()
    total = make_tagger("crf", "BIO", "sum").loss(x, MASK, GOLD, known)
    mean = make_tagger("crf", "BIO", "tokens").loss(x, MASK, GOLD, known)
    torch.testing.assert_close(mean * (MASK.sum() - 2), total)


@pytest.mark.parametrize("kind", KINDS)
def test_gold_counts_as_known(kind):
    tagger, x = make_tagger(kind, "BIO"), make_x()
    known = MASK.clone()
    known[0, 0] = False
    loss = tagger.loss(x, MASK, GOLD, known)
    torch.testing.assert_close(loss, tagger.loss(x, MASK, GOLD))


@pytest.mark.parametrize("scheme", [*SCHEMES, "IO"])
def test_independent_scores_equal_enumeration(scheme):
    torch.manual_seed(0)
    tags = TagScheme(scheme, 2 if scheme == "BIO" else 1)
    lengths, longest = [4, 3, 1], 4
    logits = torch.randn(3, longest, tags.n_tags, dtype=torch.float64)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    mass = {
        (row, start, end, label): 0.0
        for row, n in enumerate(lengths)
        for start in range(n)
        for end in range(start + 1, n + 1)
        for label in range(tags.n_labels)
    }
    probs = logits.softmax(2)
    for row, n in enumerate(lengths):
        for path in itertools.product(range(tags.n_tags), repeat=n):
            chance = probs[row, range(n), path].prod().item()
            spans = tags.tags_to_spans(torch.tensor([path]), torch.ones((1, n)) > 0)
            for _, start, end, label in spans.tolist():
                mass[row, start, end, label] += chance
    found = independent_span_scores(tags, logits, mask, torch.tensor(list(mass)))
    expected = torch.tensor(list(mass.values()), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_legal_decoding_equals_enumeration_of_well_formed_tags(scheme):
    torch.manual_seed(1)
    layer = TagLayer(n_labels=2 if scheme == "BIO" else 1, scheme=scheme, legal=True).double()
    tags, lengths, longest = layer.scheme, [4, 3, 1], 4
    logits = 2 * torch.randn(3, longest, tags.n_tags, dtype=torch.float64)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    found = layer.decode(logits, mask, NO_THRESHOLD[: tags.n_labels])
    scores = {tuple(span): score for span, score in zip(found.spans.tolist(), found.scores)}
    expected = {}
    for row, n in enumerate(lengths):
        chances = {}
        for path in itertools.product(range(tags.n_tags), repeat=n):
            spans = tags.tags_to_spans(torch.tensor([path]), torch.ones((1, n)) > 0)
            if tuple(tags.spans_to_tags(spans, (1, n))[0].tolist()) == path:  # well-formed
                chances[path] = logits.softmax(2)[row, range(n), path].prod()
        read = {
            path: {
                tuple(s[1:])
                for s in tags.tags_to_spans(torch.tensor([path]), mask[:1, :n]).tolist()
            }
            for path in chances
        }
        for span in read[max(chances, key=chances.__getitem__)]:
            share = sum(chance for path, chance in chances.items() if span in read[path])
            expected[(row, *span)] = share / sum(chances.values())
    assert scores.keys() == expected.keys() and len(expected) > 2
    torch.testing.assert_close(
        torch.stack([scores[k] for k in expected]), torch.stack([*expected.values()])
    )


def test_legal_decoding_leaves_the_loss_and_the_weights_alone():
    plain, legal = TagLayer(n_labels=2), TagLayer(n_labels=2, legal=True)
    logits = torch.randn(3, 4, plain.n_tags)
    assert torch.equal(plain.loss(logits, MASK, GOLD), legal.loss(logits, MASK, GOLD))
    assert [p for p in legal.parameters() if p.requires_grad] == []
    assert legal.crf is None and TagLayer(n_labels=2, kind="crf", legal=True).rules is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_decode_finds_what_the_logits_say(kind, scheme):
    layer = TagLayer(n_labels=2, scheme=scheme, kind=kind)
    tags = layer.scheme.spans_to_tags(GOLD, (3, 4))
    decoded = layer.decode(20.0 * F.one_hot(tags, layer.n_tags), MASK, NO_THRESHOLD)
    assert torch.equal(decoded.spans, GOLD)
    torch.testing.assert_close(decoded.scores, torch.ones(3), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_threshold_of_the_label(kind):
    tagger, x = make_tagger(kind, "BIO"), make_x()
    everything = tagger.decode(x, MASK, NO_THRESHOLD)
    assert {0, 1} == set(everything.spans[:, 3].tolist())
    limits = torch.tensor([1.0, everything.scores[everything.spans[:, 3] == 1].min().item()])
    kept = tagger.decode(x, MASK, limits.double())
    expected = everything.scores > limits.double()[everything.spans[:, 3]]
    assert torch.equal(kept.spans, everything.spans[expected])
    assert len(kept.spans) < len(everything.spans)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_do_not_depend_on_each_other(kind, scheme):
    tagger, x = make_tagger(kind, scheme), make_x()
    together = tagger.decode(x, MASK, NO_THRESHOLD)
    for row, n in enumerate(MASK.sum(1).tolist()):
        alone = tagger.decode(x[row : row + 1, :n], MASK[row : row + 1, :n], NO_THRESHOLD)
        here = together.spans[:, 0] == row
        assert torch.equal(alone.spans[:, 1:], together.spans[here, 1:])
        torch.testing.assert_close(alone.scores, together.scores[here])


@pytest.mark.parametrize("kind", KINDS)
def test_loss_never_reads_from_the_device(kind):
    tagger = make_tagger(kind, "BIOES").to("meta")
    known = torch.ones_like(MASK).to("meta")
    loss = tagger.loss(make_x().to("meta"), MASK.to("meta"), GOLD.to("meta"), known)
    loss.backward()
    assert loss.shape == () and tagger.project.weight.grad is not None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_ill_formed_rows_are_looked_through(scheme):
    torch.manual_seed(2)
    layer = TagLayer(n_labels=2, scheme=scheme, legal=True)
    mask = torch.arange(4) < torch.randint(1, 5, (60, 1))
    logits = 2 * torch.randn(60, 4, layer.n_tags)
    logits[:30, :, 0] += 6.0  # mostly outside: well-formed as they are
    formed = layer.scheme.well_formed(logits.argmax(2) * mask, mask)  # (B,)
    for row, tags in enumerate(logits.argmax(2)):
        own = tags[mask[row]][None]
        spans = layer.scheme.tags_to_spans(own, torch.ones_like(own, dtype=torch.bool))
        assert formed[row] == torch.equal(layer.scheme.spans_to_tags(spans, own.shape), own)
    assert torch.equal(layer.best_tags(logits, mask), layer.rules.viterbi(logits, mask)[0])
    assert scheme == "IO" or 0 < formed.sum() < 60
