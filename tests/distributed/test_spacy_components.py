"""Annotation by spaCy's own components."""

import spacy

from spacy_spanner.distributed.records import InputRecord
from spacy_spanner.distributed.worker import Annotator

from ..systems import TEXTS, make_examples


def make_ner():
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def records():
    return [InputRecord(number, text) for number, text in enumerate(TEXTS, start=1)]


def test_ner():
    nlp = make_ner()
    expected = [[str(ent) for ent in doc.ents] for doc in nlp.pipe(TEXTS)]
    found = Annotator(nlp, batch_words=20)(records())
    assert [[str(ent) for ent in result.doc.ents] for result in found] == expected


def test_a_text_that_ner_fails_on():
    nlp = make_ner()
    tok2vec = nlp.get_pipe("ner").model.get_ref("tok2vec")
    forward = tok2vec._func

    def fail(model, docs, is_train):
        if any(doc.text == TEXTS[1] for doc in docs):
            raise ValueError("too odd a text")
        return forward(model, docs, is_train)

    tok2vec._func = fail
    found = Annotator(nlp, batch_words=100)(records())
    assert [result.reason for result in found if result.doc is None] == [
        "ValueError: too odd a text"
    ]
    assert [result.record.number for result in found if result.doc is None] == [2]
