"""One reader of the spans and relations of a document, in three forms."""

import pytest
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_spanner.corpus.docs import doc_spans, gold_spans, scored_spans
from spacy_spanner.corpus.pairs import choose_output
from spacy_spanner.relations import StoredRelation, keyed_relations, set_relations

SPANS = [(0, 1, "A"), (2, 4, "B")]
READERS = [doc_spans, gold_spans, scored_spans]


def make_doc(*, scores=None, ents=False):
    doc = Doc(Vocab(), words=list("uvwxyz"))
    spans = [Span(doc, *span) for span in SPANS]
    attrs = {} if scores is None else {"scores": scores}
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans, attrs=attrs)
    if ents:
        doc.set_ents(spans[1:], default="outside")
    return doc


def test_forms_of_the_same_spans():
    doc = make_doc(scores=[0.5, 0.25], ents=True)
    for output, first in (("spans", 0), ("ents", 1)):
        spans, options = SPANS[first:], {"output": output, "spans_key": "sc"}
        assert [(s.start, s.end, s.label_) for s in doc_spans(doc, **options)] == spans
        assert gold_spans(doc, **options) == spans
        expected = {(0, 1, "A"): 0.5, (4, 7, "B"): 0.25}
        assert scored_spans(doc, **options) == dict(list(expected.items())[first:])


@pytest.mark.parametrize("read", READERS)
def test_unannotated_is_not_the_same_as_empty(read):
    doc = make_doc()
    assert read(doc, output="spans", spans_key="other") is None
    assert read(doc, output="ents", spans_key="sc") is None
    doc.spans["other"] = []
    doc.set_ents([], default="outside")
    assert not read(doc, output="spans", spans_key="other") and not read(
        doc, output="ents", spans_key="sc"
    )
    assert read(doc, output="ents", spans_key="sc") is not None


def test_scores_that_do_not_fit_are_left_out():
    options = {"output": "spans", "spans_key": "sc"}
    for scores in (None, [0.5], []):
        assert set(scored_spans(make_doc(scores=scores), **options).values()) == {None}


def test_relations_by_characters():
    doc = make_doc()
    assert keyed_relations(doc) is None
    set_relations(doc, [StoredRelation(2, 4, "B", 0, 1, "A", "r", 0.5)])
    [(key, relation)] = keyed_relations(doc).items()
    assert key == ((4, 7, "B"), (0, 1, "A"), "r") and relation.score == 0.5


def test_output_is_chosen_by_what_is_there():
    doc = make_doc()
    assert choose_output("auto", [Doc(doc.vocab), doc], spans_key="sc") == "spans"
    assert choose_output("auto", [doc], spans_key="other") == "ents"
    assert choose_output("ents", [doc], spans_key="sc") == "ents"


@pytest.mark.parametrize("order", [("ents", "sc"), ("sc", "ents")])
def test_entities_have_the_confidence_of_the_component_that_wrote_them(order):
    """Another component found the same span, and one more."""
    doc = Doc(Vocab(), words=list("uvwxyz"))
    spans = [Span(doc, *span) for span in SPANS]
    doc.set_ents(spans[1:], default="outside")
    groups = {"ents": (spans[1:], [0.75]), "sc": (spans, [0.5, 0.25])}
    for key in order:
        own, scores = groups[key]
        doc.spans[key] = SpanGroup(doc, name=key, spans=own, attrs={"scores": scores})
    assert list(scored_spans(doc, output="ents", spans_key="sc").values()) == [0.75]
    assert list(scored_spans(doc, output="spans", spans_key="sc").values()) == [0.5, 0.25]
