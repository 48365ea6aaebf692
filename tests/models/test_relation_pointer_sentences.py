"""Links in rows of several sentences are those of the sentences alone."""

import pytest
import torch

from ..rows import make_tokens, with_sentences
from .relation_pointer_cases import (
    LENGTHS,
    RELATIONS,
    THRESHOLDS,
    D,
    all_spans,
    make,
    make_relation_gold,
    triples,
)

SENTENCES = {0: [0, 0, 1, 2, 2], 3: [0, 0, 0, 1]}  # of the tokens of rows that have several


def sentences_alone():
    """The same tokens with a row for each sentence, and where each of these was."""
    tokens = make_tokens(LENGTHS, D)
    places = []
    for row, length in enumerate(LENGTHS):
        numbers = SENTENCES.get(row, [0] * length)
        for number in sorted(set(numbers)):
            inside = [i for i in range(length) if numbers[i] == number]
            places.append((row, inside[0], inside[-1] + 1))
    lengths = [end - start for _, start, end in places]
    alone = make_tokens(lengths, D)
    for i, (row, start, end) in enumerate(places):
        alone.x[i, : end - start] = tokens.x[row, start:end]
    return with_sentences(tokens, [(0, 2), (0, 3), (3, 3)]), alone, places


@pytest.mark.parametrize("known", [None, torch.ones((4, 5), dtype=torch.bool)])
def test_loss_of_links_does_not_depend_on_how_sentences_are_joined(known):
    inside, alone, places = sentences_alone()
    module = make(n_labels=0)
    apart, kept = [], []
    if known is not None:
        known[0, 4] = known[3, 1] = False
    for number, (row, start, end) in enumerate(places):
        for relation in RELATIONS:
            if relation[0] == row and start <= min(relation[1:5]) and max(relation[1:5]) <= end:
                apart.append((number, *(p - start for p in relation[1:5]), relation[5]))
                kept.append(relation)
    assert 0 < len(kept) < len(RELATIONS)
    known_alone = None
    if known is not None:
        known_alone = torch.ones(tuple(alone.mask.shape), dtype=torch.bool)
        for number, (row, start, end) in enumerate(places):
            known_alone[number, : end - start] = known[row, start:end]
    expected = module(alone, make_relation_gold(apart, [], known_alone))
    got = module(inside, make_relation_gold(kept, [], known))
    assert got.item() == pytest.approx(expected.item(), abs=1e-5)


def test_a_link_across_sentences_counts_only_for_the_ends_that_share_one():
    inside, _, _ = sentences_alone()
    module = make(n_labels=0)
    nothing = module(inside, make_relation_gold([], []))
    across = module(inside, make_relation_gold([(0, 0, 1, 3, 4, 1)], []))
    assert across.item() == pytest.approx(nothing.item(), abs=1e-6)
    starts = module(inside, make_relation_gold([(0, 0, 2, 1, 5, 1)], []))
    assert starts.item() != pytest.approx(nothing.item(), abs=1e-3)


def test_links_are_found_inside_sentences():
    inside, alone, places = sentences_alone()
    module = make().eval()
    spans = torch.tensor(all_spans(LENGTHS))
    expected = []
    for relation, score in zip(*vars(module.link(alone, own_spans(places), THRESHOLDS)).values()):
        number, *ends, label = relation.tolist()
        row, start, _ = places[number]
        expected.append((row, *(p + start for p in ends), label, score.item()))
    got = triples(module.link(inside, spans, THRESHOLDS))
    assert [t[:6] for t in got] == [t[:6] for t in sorted(expected)] and got
    assert [t[6] for t in got] == pytest.approx([t[6] for t in sorted(expected)], abs=1e-5)


def own_spans(places):
    return torch.tensor(all_spans([end - start for _, start, end in places]))
