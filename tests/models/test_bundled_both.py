"""Spans decoded from both heads of a bundle, held to all tag paths and classes."""

import itertools
import math
from collections import Counter
from functools import partial

import pytest
import spacy
import torch
from torch import nn

from spacy_spanner.contract import Tokens
from spacy_spanner.grouping import padding_budget
from spacy_spanner.models.bundled import build_bundled_ner
from spacy_spanner.models.global_pointer import GlobalPointer
from spacy_spanner.models.seq_ner import SeqNER

from ..systems import TEXTS, TRAIN_DATA, found, trained
from .test_bundled import HEADS, LENGTHS, N_LABELS, SEQ, make_bundle, make_tokens

TAGGERS = [
    {"tagging": "crf", "scheme": "BIO"},
    {"tagging": "crf", "scheme": "BIOES"},
    {"tagging": "softmax", "scheme": "BIOES"},
    {"tagging": "softmax", "scheme": "BIO", "legal": False},
]


def entity_odds(head: SeqNER, x: torch.Tensor) -> Counter:
    """The probability of each entity (start, end, label) of one row (n, D), by all of its paths."""
    tags = head.tagger.tags
    logits, n = head.tagger.project(x), len(x)
    paths = torch.tensor(list(itertools.product(range(tags.n_tags), repeat=n)))  # (P, n)
    scores = logits[torch.arange(n), paths].sum(1)  # (P,)
    if tags.paths is not None:
        start, trans, end = tags.paths.scores()
        scores = scores + start[paths[:, 0]] + end[paths[:, -1]]
        scores = scores + trans[paths[:, :-1], paths[:, 1:]].sum(1)
    probabilities, found = scores.softmax(0).tolist(), Counter()
    for path, *entity in tags.scheme.tags_to_spans(paths, torch.ones_like(paths) > 0).tolist():
        found[tuple(entity)] += probabilities[path]
    return found


@pytest.mark.parametrize("options", TAGGERS)
def test_joined_odds_are_those_of_all_paths_and_classes(options):
    share = 0.3
    seq = partial(SEQ, **options)
    bundle = make_bundle(seq=seq, decode_from="both", seq_weight=share).double().eval()
    for parameter in bundle.parameters():
        nn.init.normal_(parameter, std=0.7)
    x = make_tokens().x.double()
    tokens = Tokens(x, make_tokens().mask, LENGTHS)
    classes = bundle.span.band_logits(bundle.span.project(tokens)).softmax(3)  # (B, L, W, K)
    expected = {}
    for row, n in enumerate(LENGTHS):
        of_tags = entity_odds(bundle.seq, x[row, :n])
        for start, end, label in itertools.product(range(n), range(1, n + 1), range(N_LABELS)):
            if 0 < end - start <= 3:
                p = classes[row, start, end - start - 1, label + 1].item()
                q = min(max(of_tags[start, end, label], 0.01), 0.99)
                joined = (1 - share) * math.log(p / (1 - p)) + share * math.log(q / (1 - q))
                expected[row, start, end, label] = 1 / (1 + math.exp(-joined))
    assert len(expected) == 2 * (12 + 3 + 6)
    for threshold in (0.0, 0.3, 0.7):
        found = bundle.decode(tokens, torch.full((N_LABELS,), threshold).double())
        scores = dict(zip(map(tuple, found.spans.tolist()), found.scores.tolist(), strict=True))
        assert scores == pytest.approx({k: v for k, v in expected.items() if v > threshold})
        assert threshold == 0.0 or 0 < len(scores) < len(expected)


@pytest.mark.parametrize("efficient", [False, True])
def test_a_pointer_and_a_tagger_decode_together(efficient):
    """The log-odds of a pointer are its logits, of spans of any width."""
    share = 0.3
    span = partial(GlobalPointer, head_size=4, efficient=efficient)
    bundle = make_bundle(span=span, decode_from="both", seq_weight=share).double().eval()
    for parameter in bundle.parameters():
        nn.init.normal_(parameter, std=0.5)
    tokens = Tokens(make_tokens().x.double(), make_tokens().mask, LENGTHS)
    logits = bundle.span.logits(tokens)  # (B, C, L, L)
    expected = {}
    for row, n in enumerate(LENGTHS):
        of_tags = entity_odds(bundle.seq, tokens.x[row, :n])
        for start, end, label in itertools.product(range(n), range(1, n + 1), range(N_LABELS)):
            if start < end:
                q = min(max(of_tags[start, end, label], 0.01), 0.99)
                odds = logits[row, label, start, end - 1].item()
                joined = (1 - share) * odds + share * math.log(q / (1 - q))
                expected[row, start, end, label] = 1 / (1 + math.exp(-joined))
    for threshold in (0.0, 0.3, 0.7):
        found = bundle.decode(tokens, torch.full((N_LABELS,), threshold).double())
        scores = dict(zip(map(tuple, found.spans.tolist()), found.scores.tolist(), strict=True))
        assert scores == pytest.approx({k: v for k, v in expected.items() if v > threshold})
        assert threshold == 0.0 or len(scores) < len(expected)


def test_both_heads_decode_what_they_can():
    facts = build_bundled_ner(decode_from="both").attrs
    assert (facts["levels"], facts["max_width"], facts["threshold"]) == (None, 10, 0.5)
    bundle = make_bundle(decode_from="both")
    assert padding_budget(bundle.eval(), 4) == padding_budget(bundle.train(), 4)
    nothing = bundle.decode(make_tokens(), torch.ones(N_LABELS))
    assert nothing.spans.shape == (0, 4) and nothing.scores.shape == (0,)
    for heads in ({"seq": HEADS["modular"]()}, {"span": HEADS["locate"]()}):
        with pytest.raises(ValueError, match="decode_from"):
            build_bundled_ner(decode_from="both", **heads)
    with pytest.raises(ValueError, match="seq_weight"):
        build_bundled_ner(decode_from="both", seq_weight=1.0)


def test_a_pipeline_decodes_from_both_heads_after_loading():
    nlp = trained("bundled_ner", model={"decode_from": "both"}, output="both")
    assert nlp.get_pipe("bundled_ner").threshold == 0.5
    expected = [sorted(spans) for _, spans in TRAIN_DATA]
    before = list(nlp.pipe(TEXTS))
    learned = [[(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]] for doc in before]
    assert list(map(sorted, learned)) == expected
    loaded = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert [found(doc) for doc in loaded.pipe(TEXTS)] == [found(doc) for doc in before]
