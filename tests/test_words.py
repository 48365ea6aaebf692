"""Word keys of many documents at once are those of each by itself."""

import spacy
from spacy.strings import get_string_id

from spacy_spanner import words
from spacy_spanner.words import word_keys

TEXTS = ["Ada met Bo in 1995.", "", "In 2007, Ada met 12 others; in 2007!", "ada Ada 1995"]


def slow_keys(doc):
    return [get_string_id(words.DIGIT.sub("0", token.text)) for token in doc]


def unsigned(keys):
    return keys.astype("uint64").tolist()


def test_keys_of_documents_of_several_vocabularies(monkeypatch):
    monkeypatch.setattr(words, "AT_ONCE", 2)
    one, two = spacy.blank("en"), spacy.blank("de")
    docs = [nlp(text) for nlp in (one, two, one) for text in TEXTS]
    found = list(word_keys(docs))
    assert list(map(unsigned, found)) == list(map(slow_keys, docs))
    assert {keys.dtype.name for keys in found} == {"int64"}


def test_no_documents():
    assert list(word_keys([])) == []
