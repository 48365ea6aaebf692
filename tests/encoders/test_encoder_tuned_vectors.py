"""Which vector a word gets, what training changes, and what it must not."""

from __future__ import annotations

import copy
import pickle

import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from spacy.vectors import Vectors
from spacy.vocab import Vocab
from thinc.api import Adam

from spacy_spanner.encoders import tuned_vectors
from spacy_spanner.encoders.tuned_vectors import build_tuned_vectors, vector_form

from .conftest import STATIC


def started(docs, *, learn=True, **options):
    model = build_tuned_vectors(**options)
    model.initialize(docs)
    if learn:
        model.attrs["learn_words"](model, iter(docs))
    return model


def vectors_of(model, vocab, text):
    return model.predict([Doc(vocab, words=text.split())])[0]


def step(model, docs, rate=0.1):
    outputs, backprop = model.begin_update(docs)
    backprop([numpy.ones_like(v) for v in outputs])
    model.finish_update(Adam(rate, L2=0.0))


@pytest.mark.parametrize(
    "word, form, is_static",
    [
        ("cat", "cat", True),
        ("CAT", "cat", True),
        ("1995", "1995", True),  # as it is, before digits are folded
        ("1996", "0000", True),
        ("B7", "b0", True),
        ("C7", "c0", False),
        ("Haus", "Haus", True),  # a cased table is of use, too
        ("haus", "haus", False),
        ("Zebra", "zebra", False),
    ],
)
def test_form_of_a_word(vocab, word, form, is_static):
    assert vector_form(word, vocab.vectors) == (form, is_static)


def test_starts_from_the_static_vectors(vocab, make_docs):
    docs = make_docs("The cat zzz zzz", "yyy 1996")
    model = started(docs)
    found = vectors_of(model, vocab, "THE Cat 1996 1997 moscow")
    expected = [vocab.vectors[vocab.strings[w]] for w in ("the", "cat", "0000", "0000", "moscow")]
    assert_array_equal(found, numpy.stack(expected))


def test_words_without_a_vector(vocab, make_docs):
    docs = make_docs("zzz Zzz once", "x1 x2")
    model = started(docs, min_count=2)
    zzz, upper, once, never, x3, x4 = vectors_of(model, vocab, "zzz ZZZ once never x3 x4")
    assert_array_equal(zzz, upper)
    assert_array_equal(once, never)  # rarer than min_count: unknown
    assert_array_equal(x3, x4)  # both are x0, which occurred twice
    assert (zzz != never).all() and (x3 != never).all() and (x3 != zzz).all()
    once, never = vectors_of(started(docs, min_count=1), vocab, "once never")
    assert (once != never).all()


def test_only_trained_words_move(vocab, make_docs):
    table = vocab.vectors.data.copy()
    model = started(make_docs("the cat zzz zzz", "sat once"))
    words = "the cat zzz sat moscow 1995 never"
    before = vectors_of(model, vocab, words)
    step(model, make_docs("the zzz moscow never"))
    moved = (vectors_of(model, vocab, words) != before).any(axis=1)
    assert moved.tolist() == [True, False, True, False, False, False, True]
    assert_array_equal(vocab.vectors.data, table)


def test_training_reaches_every_row_by_its_words(vocab, make_docs):
    """A row's gradient is the sum over the tokens that use it."""
    docs = make_docs("the cat The", "the zzz zzz moscow")
    model = started(make_docs("the cat zzz zzz"))
    outputs, backprop = model.begin_update(docs)
    backprop([numpy.ones_like(v) for v in outputs])
    module = model.shims[0].module
    keys = module.keys.numpy().tolist()
    times = [float(g[0]) for g in module.rows.grad]
    found = {
        word: times[1 + keys.index(numpy.uint64(vocab.strings[word]).astype("int64"))]
        for word in ("the", "cat", "zzz")
    }
    assert found == {"the": 3.0, "cat": 1.0, "zzz": 2.0}
    assert times[0] == 0.0  # moscow is static, not unknown


def test_the_static_table_is_not_stored(vocab, make_docs):
    model = started(make_docs("the cat"))
    assert model.shims[0].module.state_dict()["rows"].shape == (3, 6)


def test_tuned_rows_come_back(vocab, make_docs):
    docs = make_docs("the cat zzz zzz", "sat 1996")
    model = started(docs)
    step(model, docs)
    loaded = build_tuned_vectors().from_bytes(model.to_bytes())
    # A vocab with the same vectors that has seen other words, as after loading a pipeline.
    other = Vocab()
    keys = [other.strings.add(vocab.strings[key]) for key in vocab.vectors.key2row]
    rows = list(vocab.vectors.key2row.values())
    other.vectors = Vectors(strings=other.strings, data=vocab.vectors.data[rows], keys=keys)
    text = "1997 never ZZZ the moscow sat"
    assert_array_equal(vectors_of(loaded, other, text), vectors_of(model, vocab, text))


def test_without_the_hook_all_is_static_or_unknown(vocab, make_docs):
    model = started(make_docs("the zzz zzz"), learn=False)
    the, zzz, never = vectors_of(model, vocab, "the zzz never")
    assert_array_equal(the, vocab.vectors[vocab.strings["the"]])
    assert_array_equal(zzz, never)


def test_untuned_vectors_have_no_hook(vocab, make_docs):
    model = started(make_docs("the never"), learn=False, tune=False)
    assert "learn_words" not in model.attrs
    before = vectors_of(model, vocab, "the never")
    step(model, make_docs("the never"))
    moved = (vectors_of(model, vocab, "the never") != before).any(axis=1)
    assert moved.tolist() == [False, True]


def test_hook_before_init_waits(vocab, make_docs):
    model = build_tuned_vectors()
    model.attrs["learn_words"](model, make_docs("the"))
    assert not model.shims[0].is_built


def test_learning_words_again_changes_nothing(vocab, make_docs):
    """Each component that is initialized shows its words to all encoders of the pipeline."""
    docs = make_docs("zzz zzz the")
    model = started(docs)
    step(model, docs)
    before = vectors_of(model, vocab, "zzz the never")
    for texts in ("zzz zzz the", "never never"):
        model.attrs["learn_words"](model, make_docs(texts))
        assert_array_equal(vectors_of(model, vocab, "zzz the never"), before)
    model.initialize(docs)
    model.attrs["learn_words"](model, make_docs("never never"))
    assert_array_equal(
        vectors_of(model, vocab, "zzz")[0], model.shims[0].module.rows[0].detach().numpy()
    )


def test_pipeline_without_vectors():
    vocab = Vocab()
    docs = [Doc(vocab, words=["a", "b", "a", "1", "2"])]
    model = started(docs, width=400)
    a, b, three, never = vectors_of(model, vocab, "A b 3 never")
    assert model.get_dim("nO") == 400
    assert_array_equal(b, never)
    assert (a != b).all() and (three != a).all()
    bound = (3 / 400) ** 0.5
    assert 0.95 * bound < numpy.abs(a).max() < bound


def test_another_table_is_looked_up_anew(vocab, make_docs):
    """Also one of the same size, in which other words have vectors."""
    model = started(make_docs("the"))
    assert_array_equal(vectors_of(model, vocab, "cat")[0], vocab.vectors[vocab.strings["cat"]])
    keys = [vocab.strings.add(f"other{word}") for word in STATIC]
    twin = Vocab(strings=vocab.strings)
    twin.vectors = Vectors(strings=vocab.strings, data=vocab.vectors.data.copy(), keys=keys)
    cat, never, other = vectors_of(model, twin, "cat never otherCat")
    assert_array_equal(cat, never)
    assert_array_equal(other, twin.vectors[vocab.strings["othercat"]])
    assert_array_equal(vectors_of(model, vocab, "cat")[0], vocab.vectors[vocab.strings["cat"]])


def test_a_vector_added_later_is_found(vocab, make_docs):
    model = started(make_docs("the"))
    vectors_of(model, vocab, "late")
    vocab.vectors.add("late", row=0)
    assert_array_equal(vectors_of(model, vocab, "late")[0], vocab.vectors.data[0])


def test_other_vectors_than_in_training_are_refused(vocab, make_docs):
    model = started(make_docs("the"))
    with pytest.raises(ValueError, match="width 6"):
        vectors_of(model, Vocab(), "the")


def test_copies_of_the_lookup_are_empty(vocab, make_docs):
    model = started(make_docs("the cat"))
    vectors_of(model, vocab, "the moscow")
    lookup = model.attrs["lookup"]
    assert len(lookup.codes) == 2
    assert not copy.deepcopy(lookup).codes
    assert not pickle.loads(pickle.dumps(lookup)).codes


def test_lookup_is_bounded(vocab, make_docs, monkeypatch):
    monkeypatch.setattr(tuned_vectors, "MOST_WORDS", 3)
    model = started(make_docs("the cat"))
    expected = vectors_of(started(make_docs("the cat")), vocab, "the cat sat moscow 1995")
    for _ in range(3):
        assert_allclose(vectors_of(model, vocab, "the cat sat moscow 1995"), expected)
    assert len(model.attrs["lookup"].codes) <= 5


def test_floret_vectors(make_docs):
    vocab = Vocab()
    data = numpy.random.default_rng(0).normal(size=(20, 4)).astype("float32")
    vocab.vectors = Vectors(
        strings=vocab.strings, data=data, mode="floret", minn=2, maxn=3, hash_count=1
    )
    docs = [Doc(vocab, words=["seen", "seen"])]
    model = started(docs)
    before = vectors_of(model, vocab, "seen Unseen")
    assert_allclose(before, [vocab.vectors["seen"], vocab.vectors["unseen"]], rtol=1e-6)
    step(model, docs)
    after = vectors_of(model, vocab, "seen Unseen")
    assert (after[0] != before[0]).all()
    assert_array_equal(after[1], before[1])
