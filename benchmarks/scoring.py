"""The scores of a trained pipeline on annotated documents: spans and relations, confidences, speed, and
what is left of them in longer documents."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span

from spacy_spanner.callbacks import fitted_copy
from spacy_spanner.relations import doc_relations

from .calibration import calibration_scores
from .documents import FORMS, documents, to_predict
from .peer_threshold import fitted_threshold


def score(nlp: Any, docs: List[Doc], *, brief: bool = False) -> Dict[str, Any]:
    """Micro P, R and F of all predicted spans against all gold spans, nested or not: sentence by
    sentence, and with the sentences joined to documents.

    brief: Only documents whose sentences are marked.
    """
    before = time.process_time()
    predicted = predict(nlp, docs)
    seconds = time.process_time() - before
    by_width: Dict[int, PRFScore] = defaultdict(PRFScore)
    for gold_doc, pred_doc in zip(docs, predicted, strict=True):
        found = found_spans(pred_doc)
        for gold in map(key_of, gold_doc.spans["sc"]):
            by_width[gold[1] - gold[0]].score_set(found & {gold}, {gold})
    scores = score_pairs(docs, predicted)
    scores.update(calibration_scores(docs, predicted))
    scores["predict_words_per_second"] = round(sum(map(len, docs)) / seconds)
    # width -> [found, all] of the gold spans
    scores["by_width"] = {w: [s.tp, s.tp + s.fn] for w, s in sorted(by_width.items())}
    scores["documents"] = {}
    for name, (size, marked) in FORMS.items():
        if brief and not marked:
            continue
        joined = documents(docs, size)
        pairs = list(nlp.pipe(to_predict(joined, nlp.vocab, marked=marked), batch_size=4))
        scores["documents"][name] = score_pairs(joined, pairs)
    return scores


def fitted_scores(nlp: Any, docs: List[Doc]) -> Dict[str, Any]:
    """The same with thresholds, temperature and biases as training saves them, fitted on the development
    part ("fitted"); and fitted on each half of it for the other one ("held_out"). Of spaCy's, the threshold
    of `spancat` alone, as `ner` has none."""
    with fitted(nlp, docs) as pipeline:
        if pipeline is None:
            return {}
        predicted = predict(pipeline, docs)
    halves = [docs[::2], docs[1::2]]
    others: List[Doc] = []
    for half, other in (halves, halves[::-1]):
        with fitted(nlp, half) as pipeline:
            others += predict(pipeline, other)
    pairs = {"fitted": (docs, predicted), "held_out": ([*halves[1], *halves[0]], others)}
    return {name: {**score_pairs(*own), **calibration_scores(*own)} for name, own in pairs.items()}


@contextmanager
def fitted(nlp: Any, docs: List[Doc]) -> Iterator[Any]:
    """The pipeline as fitted on these documents; None if nothing of it is."""

    def pairs() -> List[Tuple[Doc, Optional[Doc]]]:
        return [(unannotated(doc, nlp.vocab), doc) for doc in docs]

    with fitted_threshold(nlp, docs) as is_spancat:
        copied, _ = fitted_copy(nlp, pairs, fit=True)
        yield None if copied is nlp and not is_spancat else copied


def unannotated(doc: Doc, vocab: Any) -> Doc:
    """The same text, so that spans can be compared by characters, too."""
    spaces = [bool(token.whitespace_) for token in doc]
    return Doc(vocab, words=[token.text for token in doc], spaces=spaces)


def predict(nlp: Any, docs: List[Doc]) -> List[Doc]:
    return list(nlp.pipe(to_predict(docs, nlp.vocab, marked=False)))


def score_pairs(docs: List[Doc], predicted: List[Doc]) -> Dict[str, Any]:
    """P, R and F of spans, and of relations where there are any."""
    spans, relations = PRFScore(), PRFScore()
    for gold_doc, pred_doc in zip(docs, predicted, strict=True):
        spans.score_set(found_spans(pred_doc), set(map(key_of, gold_doc.spans["sc"])))
        relations.score_set(linked(pred_doc), linked(gold_doc))
    scores: Dict[str, Any] = percent(spans)
    if any(linked(doc) for doc in predicted):
        scores["relations"] = percent(relations)
    return scores


def found_spans(doc: Doc) -> Set[tuple]:
    return {key_of(span) for span in doc.spans.get("sc", doc.ents)}


def percent(scores: PRFScore) -> Dict[str, Any]:
    parts = {"p": scores.precision, "r": scores.recall, "f": scores.fscore}
    return {name: round(100 * value, 2) for name, value in parts.items()}


def key_of(span: Span) -> tuple:
    return span.start, span.end, span.label_


def linked(doc: Doc) -> Set[tuple]:
    """Relations, right only with both ends and all labels right; in tokens, unlike the scorer of the
    component, because documents made from words alone have other spaces than the gold."""
    return {(key_of(r.head), r.label, key_of(r.tail)) for r in doc_relations(doc)}
