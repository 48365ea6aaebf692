"""Gold: aligned, unannotated is not negative, and every lost span is counted."""

import random
import warnings
from collections import Counter

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_spanner.pipeline.gold import (
    BLANK,
    CROSSING,
    EMPTY,
    MISALIGNED,
    NESTED,
    TOO_WIDE,
    UNKNOWN_LABEL,
    DocGold,
    read_gold,
    row_gold,
)
from spacy_spanner.pipeline.rows import cut_rows

from ..systems import TEXTS, make_examples, make_nlp, train

NLP = spacy.blank("en")
LABELS = {NLP.vocab.strings.add(label): i for i, label in enumerate(["A", "B"])}


def example(words, gold, *, predicted=None, key="sc"):
    reference = Doc(NLP.vocab, words=words, spaces=[True] * len(words))
    reference.spans[key] = [Span(reference, s, e, label=label) for s, e, label in gold]
    if predicted is None:
        other = Doc(NLP.vocab, words=words, spaces=[True] * len(words))
    else:
        other = Doc(NLP.vocab, words=[w for w, _ in predicted], spaces=[s for _, s in predicted])
    return Example(other, reference)


def read(eg, key="sc"):
    counts = Counter()
    return read_gold(eg, spans_key=key, label_ids=LABELS, counts=counts), counts


def test_duplicates_are_merged_and_unknown_labels_counted():
    gold, counts = read(example(list("abcd"), [(0, 2, "A"), (0, 2, "A"), (1, 3, "Z")]))
    assert gold.spans.tolist() == [[0, 2, 0]] and gold.known is None
    assert counts["total"] == 3 and counts[UNKNOWN_LABEL] == 1 and not counts[MISALIGNED]


def test_misaligned_spans_are_found_where_white_space_differs():
    """References of tokenised corpora have a space behind each token, so offsets differ."""
    predicted = [("(", False), ("ab", False), (")", False), ("cd", False), (".", False)]
    words, gold = ["(", "ab", ")", "c", "d", "."], [(1, 2, "A"), (3, 4, "B")]
    found, counts = read(example(words, gold, predicted=predicted))
    assert found.spans.tolist() == [[1, 2, 0]] and counts[MISALIGNED] == 1
    assert found.known.tolist() == [True, True, True, False, True]


def test_white_space_at_an_edge_is_counted():
    _, counts = read(example(["a", "\n", "b"], [(0, 1, "A"), (0, 2, "A"), (1, 3, "B")]))
    assert counts[BLANK] == 2


@pytest.mark.parametrize("predicted", [None, [("a", True), ("b", True), ("c", False)]])
def test_spans_without_tokens_are_counted(predicted):
    words = ["a", "b", "c"] if predicted is None else ["a", "bc"]
    gold, counts = read(
        example(words, [(0, 0, "A"), (0, 1, "A"), (2, 2, "Z")], predicted=predicted)
    )
    assert gold.spans.tolist() == [[0, 1, 0]]
    assert +counts == {"total": 3, EMPTY: 2}


def test_other_tokens_are_aligned_and_misaligned_ones_are_unknown():
    # "ab" "cd" against "a" "b" "c" "d": the last span ends inside a predicted token.
    pieces = [("a", False), ("b", True), ("cd", True)]
    eg = example(["ab", "c", "d"], [(0, 1, "A")], predicted=None)
    reference = Doc(NLP.vocab, words=["ab", "c", "d"], spaces=[True, False, True])
    reference.spans["sc"] = [Span(reference, 0, 1, label="A"), Span(reference, 1, 2, label="B")]
    other = Doc(NLP.vocab, words=[w for w, _ in pieces], spaces=[s for _, s in pieces])
    gold, counts = read(Example(other, reference))
    assert gold.spans.tolist() == [[0, 2, 0]]
    assert gold.known.tolist() == [True, True, False] and counts[MISALIGNED] == 1
    assert read(eg)[0].known is None


def test_a_missing_group_is_not_negative():
    eg = example(list("ab"), [], key="other")
    assert read(eg)[0] is None
    assert read(eg, key="other")[0].spans.shape == (0, 3)


@pytest.mark.parametrize("retokenize", [False, True])
def test_missing_entities_are_unknown_tokens(retokenize):
    reference = Doc(NLP.vocab, words=["ab", "c", "d"], ents=["B-A", "O", ""])
    words = ["a", "b", "c", "d"] if retokenize else ["ab", "c", "d"]
    spaces = [False, True, True, True] if retokenize else None
    eg = Example(Doc(NLP.vocab, words=words, spaces=spaces), reference)
    gold, _ = read(eg, key=None)
    assert gold.spans.tolist() == [[0, 2 if retokenize else 1, 0]]
    assert gold.known.tolist() == [True] * (len(words) - 1) + [False]
    blank = Example(Doc(NLP.vocab, words=["x"]), Doc(NLP.vocab, words=["x"]))
    assert read(blank, key=None)[0] is None


def rows_and_gold(n_words, spans, *, window, overlap, **options):
    eg = example(["w"] * n_words, spans)
    gold, counts = read(eg)
    rows = cut_rows([eg.predicted], window=window, overlap=overlap, pack=True)
    return rows, row_gold([gold], rows, counts=counts, **options), counts


def test_what_cannot_be_learned_is_counted():
    spans = [(0, 6, "A"), (1, 3, "B"), (4, 8, "B"), (12, 28, "A")]
    options = {"levels": 1, "max_width": 5}
    _, table, counts = rows_and_gold(30, spans, window=16, overlap=8, **options)
    assert counts[TOO_WIDE] == 1  # 0-6; the longest is lost already
    assert counts[NESTED] == 2  # inside and across 0-6
    assert counts[CROSSING] == 1
    assert table.spans[table.level == 0].tolist() == [[0, 0, 6, 0]]
    assert len(table.spans) == 3


@pytest.mark.parametrize("levels, lost", [(1, 3), (2, 1), (3, 0), (None, 0)])
def test_spans_of_too_deep_a_level_are_counted(levels, lost):
    spans = [(0, 6, "A"), (1, 4, "A"), (2, 3, "B"), (4, 8, "B")]
    options = {"levels": levels, "max_width": None}
    _, table, counts = rows_and_gold(10, spans, window=16, overlap=8, **options)
    assert counts[NESTED] == lost
    found = {tuple(span[1:3]): level for span, level in zip(table.spans.tolist(), table.level)}
    assert found == {(0, 6): 0, (1, 4): 1, (4, 8): 1, (2, 3): 2}


def test_spans_cut_by_a_window_are_unknown_to_it():
    rows, table, counts = rows_and_gold(
        20, [(9, 12, "A")], window=10, overlap=4, levels=None, max_width=None
    )
    assert counts[CROSSING] == 0  # the row that owns its start holds it
    for number, (start, end, _, _) in enumerate(rows.table):
        held = table.spans[table.spans[:, 0] == number][:, 1:3].tolist()
        inside = start <= 9 and end >= 12
        assert held == ([[9 - start, 12 - start]] if inside else [])
        cut = not inside and start < 12 and end > 9
        assert table.known[number].all() == (not cut)


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_gold_of_rows_is_what_a_slow_loop_says(seed):
    """Documents of any length, joined or cut, with spans anywhere and tokens that are unknown."""
    rng = random.Random(seed)
    numpy.random.seed(seed)
    golds, docs = [], []
    for _ in range(rng.randint(1, 6)):
        n = rng.randint(0, 30)
        docs.append(Doc(NLP.vocab, words=["w"] * n))
        spans = set()
        for _ in range(rng.randint(0, 5) if n else 0):
            start = rng.randrange(n)
            spans.add((start, rng.randint(start + 1, min(n, start + 12)), rng.randrange(2)))
        known = None
        if rng.random() < 0.5:
            known = numpy.array([rng.random() < 0.8 for _ in range(n)], dtype=bool)
        golds.append(DocGold(numpy.array(sorted(spans), dtype="int64").reshape(-1, 3), known))
    joined = numpy.array([rng.random() < 0.5 for _ in docs], dtype=bool)
    rows = cut_rows(docs, window=16, overlap=8, pack=True, joined=joined)
    counts = Counter()
    got = row_gold(golds, rows, levels=None, max_width=None, counts=counts)
    held, known, lost = [], [], 0
    for number, (start, end, own_start, own_end) in enumerate(rows.table.tolist()):
        mask = [True] * (end - start)
        for gold, first in zip(golds, rows.doc_starts.tolist()):
            for token, is_known in enumerate([] if gold.known is None else gold.known):
                if start <= first + token < end and not is_known:
                    mask[first + token - start] = False
            for a, b, label in gold.spans.tolist():
                a, b = a + first, b + first
                if start <= a and b <= end:
                    held.append([number, a - start, b - start, label])
                else:
                    lost += own_start <= a < own_end
                    for token in range(max(a, start), min(b, end)):
                        mask[token - start] = False
        known.append(mask)
    assert sorted(got.spans.tolist()) == sorted(held)
    assert counts[CROSSING] == lost
    assert (got.known is None and all(map(all, known))) or [k.tolist() for k in got.known] == known


def test_warning_tells_numbers_once():
    nlp = make_nlp("global_pointer", model={"max_width": 1})
    with pytest.warns(
        UserWarning,
        match=r"5 of 10 gold spans .* 5 wider than max_width = 1\. .*beside the single ones",
    ):
        train(nlp, make_examples(nlp), steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(make_examples(nlp))


def test_no_gold_under_the_key_names_the_keys_that_are_there():
    nlp = make_nlp("global_pointer", spans_key="wrong")
    with pytest.raises(ValueError, match=r"S001.*'wrong'.*Existing keys: 'sc'"):
        nlp.initialize(lambda: make_examples(nlp, spans_key="sc"))
    nlp = make_nlp("global_pointer", output="ents")
    blank = [Example(nlp.make_doc(t), nlp.make_doc(t)) for t in TEXTS]
    with pytest.raises(ValueError, match="no entities in the training data"):
        nlp.initialize(lambda: blank)


def test_other_tokenisation_trains():
    nlp = make_nlp("global_pointer")
    examples = []
    for eg in make_examples(nlp):
        text = eg.reference.text
        words = [c for c in text]
        characters = Doc(nlp.vocab, words=words, spaces=[False] * len(words))
        spans = [
            characters.char_span(s.start_char, s.end_char, s.label_)
            for s in eg.reference.spans["sc"]
        ]
        characters.spans["sc"] = spans
        examples.append(Example(nlp.make_doc(text), characters))
    train(nlp, examples)
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["spans_sc_f"] == 1.0
    assert numpy.isclose(scores["spans_sc_r"], 1.0)


@pytest.mark.parametrize(
    "options,warned",
    [({"spans_key": "mine"}, True), ({"spans_key": "sc"}, False), ({"output": "ents"}, True)],
)
def test_score_weights_that_cannot_be_filled_are_told(options, warned):
    nlp = make_nlp("global_pointer", **options)
    nlp.add_pipe("tok2vec", first=True)
    examples = make_examples(nlp, spans_key=options.get("spans_key", "sc"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp.initialize(lambda: examples)
    assert any("'spans_sc_f'" in str(warning.message) for warning in caught) == warned
