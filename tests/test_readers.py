"""The reader that joins sentences to documents."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_spanner.corpus.joining import annotation_of, join_docs, join_examples, neighbours
from spacy_spanner.relations import StoredRelation, get_relations, set_relations

NLP = spacy.blank("en")


def make_doc(words, *, key="sc", relations=False, spaces=None):
    doc = Doc(NLP.vocab, words=words.split(), spaces=spaces)
    if key:
        doc.spans[key] = [Span(doc, 0, 1, label="A"), Span(doc, 0, 2, label="B")]
    if relations:
        set_relations(doc, [StoredRelation(0, 1, "A", 0, 2, "B", "in")])
    doc.set_ents([Span(doc, 1, 2, label="E")], default="outside")
    return doc


def write(path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def read(path, **options):
    return list(registry.readers.get("spacy-spanner.JoinedCorpus.v1")(path, **options)(NLP))


def test_every_document_comes_alone_and_joined(tmp_path):
    docs = [make_doc("Ada Lind left", relations=True) for _ in range(5)]
    examples = read(write(tmp_path / "a.spacy", docs), max_tokens=7)
    assert [len(eg.predicted) for eg in examples] == [3, 3, 6, 3, 3, 6, 3]
    joined = examples[2]
    assert joined.predicted.text == joined.reference.text
    spans = [(s.start, s.end, s.label_) for s in joined.reference.spans["sc"]]
    assert spans == [(0, 1, "A"), (0, 2, "B"), (3, 4, "A"), (3, 5, "B")]
    assert [(e.start, e.end) for e in joined.reference.ents] == [(1, 2), (4, 5)]
    ends = [tuple(r[:2]) + tuple(r[3:5]) for r in get_relations(joined.reference)]
    assert ends == [(0, 1, 0, 2), (3, 4, 3, 5)]
    assert not joined.predicted.ents and not joined.predicted.spans


def test_joined_documents_keep_spans_without_tokens():
    """They are counted as lost there, as they are in the single documents."""
    docs = [make_doc("Ada Lind left"), make_doc("Port Merrow")]
    docs[0].spans["sc"].append(Span(docs[0], 3, 3, label="C", kb_id="Q1", span_id="s1"))
    joined = join_docs(docs)
    spans = [(s.start, s.end, s.label_, s.kb_id_, s.id_) for s in joined.spans["sc"]]
    rest = [(3, 4, "A", "", ""), (3, 5, "B", "", "")]
    assert spans == [(0, 1, "A", "", ""), (0, 2, "B", "", ""), (3, 3, "C", "Q1", "s1"), *rest]
    assert len(docs[0].spans["sc"]) == 3


@pytest.mark.parametrize("alone,n_alone", [(0.0, 1), (1.0, 5)])
def test_share_of_documents_that_also_come_alone(tmp_path, alone, n_alone):
    """The last of five fits beside no neighbour, so it comes alone in any case."""
    path = write(tmp_path / "a.spacy", [make_doc("Ada Lind left") for _ in range(5)])
    sizes = [len(eg.predicted) for eg in read(path, max_tokens=7, alone=alone)]
    assert sizes.count(6) == 2 and sizes.count(3) == n_alone


def test_without_joining_it_is_spacys_own_reader(tmp_path):
    path = write(tmp_path / "a.spacy", [make_doc("Ada Lind left") for _ in range(3)])
    plain = [eg.reference.text for eg in Corpus(path)(NLP)]
    assert [eg.reference.text for eg in read(path, max_tokens=0)] == plain
    assert len(read(path, limit=2, max_tokens=0)) == 2


def test_documents_that_are_not_annotated_alike_stay_apart(tmp_path):
    """An absent span group, or absent relations, must not turn into an empty one."""
    docs = [make_doc("a b"), make_doc("c d", key=None), make_doc("e f", relations=True)]
    docs += [make_doc("g h", relations=True)]
    assert len({str(annotation_of(doc)) for doc in docs}) == 3
    examples = [Example(Doc(NLP.vocab, words=[t.text for t in doc]), doc) for doc in docs]
    assert [len(run) for run in neighbours(examples, max_tokens=99)] == [1, 1, 2]


def test_long_documents_come_once(tmp_path):
    path = write(tmp_path / "a.spacy", [make_doc("a b c d e f g h") for _ in range(3)])
    assert [len(eg.predicted) for eg in read(path, max_tokens=10)] == [8, 8, 8]


def test_other_tokens_on_the_predicted_side_are_kept():
    reference = make_doc("Ada Lind left", spaces=[True, True, False])
    predicted = Doc(NLP.vocab, words=["Ada", "Li", "nd", "left"], spaces=[True, False, True, False])
    joined = join_examples([Example(predicted, reference)] * 2)
    assert [t.text for t in joined.predicted] == ["Ada", "Li", "nd", "left"] * 2
    assert joined.predicted.text == joined.reference.text
    aligned = joined.get_aligned_spans_y2x(joined.reference.spans["sc"], allow_overlap=True)
    assert [(s.start, s.end) for s in aligned] == [(0, 1), (0, 3), (4, 5), (4, 7)]


def test_no_path_is_refused_as_by_spacy():
    with pytest.raises(ValueError, match="E913"):
        read(None)
