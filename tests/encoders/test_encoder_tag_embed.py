"""Tag embeddings and their warning."""

from __future__ import annotations

import warnings

import pytest
from numpy.testing import assert_array_equal
from spacy.tokens import Doc

from spacy_spanner.encoders.tags import build_tag_embed

POS_TAGS = ["NOUN", "VERB", "ADJ", "DET"]


@pytest.mark.parametrize("attr", ["TAG", "POS"])
def test_equal_vectors_for_equal_tags_only(vocab, attr):
    words = ["a", "b", "c", "d", "e"]
    tags = [*POS_TAGS, "VERB"]
    doc = Doc(vocab, words=words, **{"tags" if attr == "TAG" else "pos": tags})
    model = build_tag_embed(width=4, attr=attr)
    model.initialize([doc])
    vectors = model.predict([doc])[0]
    assert_array_equal(vectors[1], vectors[4])
    assert len({tuple(row) for row in vectors.tolist()}) == len(POS_TAGS)


def test_two_tags_of_one_row_still_differ(vocab):
    """A tag is the sum of two rows: hardly any of many tags share both."""
    tags = [f"tag{i}" for i in range(100)]
    doc = Doc(vocab, words=tags, tags=tags)
    model = build_tag_embed(width=4, n_rows=500)
    model.initialize([doc])
    assert len({tuple(row) for row in model.predict([doc])[0].tolist()}) == len(tags)


def untagged(vocab):
    return [Doc(vocab, words=["a", "b"])]


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if "TagEmbed" in str(w.message)]


def test_missing_tags_are_reported_once_and_not_before_training(vocab):
    docs = untagged(vocab)
    model = build_tag_embed(width=4)
    model.initialize(docs)
    assert not warned(lambda: model.predict(docs))
    assert len(warned(lambda: model.begin_update(docs))) == 1
    assert not warned(lambda: model.begin_update(docs))
    loaded = build_tag_embed(width=4).from_bytes(model.to_bytes())
    assert "`tag_`" in warned(lambda: loaded.predict(docs))[0]
    assert not warned(lambda: loaded.predict(docs))


def test_tagged_documents_are_no_reason_to_warn(vocab):
    docs = [Doc(vocab, words=["a", "b"], tags=["", "X"])]
    model = build_tag_embed(width=4)
    model.initialize(docs)
    assert not warned(lambda: model.begin_update(docs))
    assert not warned(lambda: model.begin_update([*untagged(vocab), *docs]))
    assert len(warned(lambda: model.predict(untagged(vocab)))) == 1
