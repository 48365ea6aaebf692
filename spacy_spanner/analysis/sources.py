"""Documents to show: from a pipeline or a file of predictions, beside gold or over plain text."""

from __future__ import annotations

from itertools import islice, zip_longest
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docs import DOC_ID, read_docs
from ..corpus.record import CorpusError
from ..errors import Errors
from .marks import compare, doc_spans
from .relations import compare_relations
from .render import Shown
from .tables import System, read_systems

Pair = Tuple[Doc, Optional[Doc]]  # predicted, gold
SUFFIX = ".spacy"


def load_pairs(source: str, data: Sequence[str], *, limit: Optional[int] = None) -> List[Pair]:
    """
    source: A pipeline (name or folder), or a .spacy file of predictions.
    data: Gold as one .spacy file; for a pipeline also .txt files, of which each line is a document,
        or texts themselves.
    limit: Most documents.
    """
    if source.endswith(SUFFIX):
        pairs = stored_pairs(source, data)
    else:
        pairs = predicted_pairs(spacy.load(source), data, limit)
    return list(islice(pairs, limit))


def stored_pairs(source: str, data: Sequence[str]) -> Iterator[Pair]:
    """Predictions of a file, with gold document by document if there is any."""
    vocab = Vocab()
    preds = read_docs(Path(source), vocab)
    if not data:
        yield from ((pred, None) for pred in preds)
        return
    if len(data) > 1 or not data[0].endswith(SUFFIX):
        reason = "beside a .spacy file of predictions there can be only one .spacy file of gold"
        raise CorpusError(Errors.S029.format(path=data[-1], reason=reason))
    golds = read_docs(Path(data[0]), vocab)
    for number, (pred, gold) in enumerate(zip_longest(preds, golds), start=1):
        if pred is None or gold is None or pred.text != gold.text:
            reason = f"they differ in text at document {number}"
            if pred is None or gold is None:
                shorter = source if pred is None else data[0]
                reason = f"{shorter} ends after {number - 1} documents, the other goes on"
            raise CorpusError(Errors.S024.format(pred=source, gold=data[0], reason=reason))
        yield pred, gold


def predicted_pairs(nlp: Language, data: Sequence[str], limit: Optional[int]) -> Iterator[Pair]:
    """Predictions of a pipeline over gold documents and plain texts."""
    golds: List[Optional[Doc]] = []
    docs: List[Doc] = []
    for doc, gold in blank_docs(nlp, data):
        if limit is not None and len(docs) >= limit:
            break
        docs.append(doc)
        golds.append(gold)
    yield from zip(nlp.pipe(docs), golds, strict=True)


def blank_docs(nlp: Language, data: Sequence[str]) -> Iterator[Pair]:
    for item in data:
        path = Path(item)
        if item.endswith(SUFFIX):
            for gold in read_docs(path, nlp.vocab):
                # as spaCy's own corpus reader: gold tokens where the spaces are unknown
                if gold.has_unknown_spaces:
                    yield Doc(nlp.vocab, words=[token.text for token in gold]), gold
                else:
                    yield nlp.make_doc(gold.text), gold
        elif item.endswith(".txt"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.strip():
                    yield nlp.make_doc(line), None
        else:
            yield nlp.make_doc(item), None


def shown_docs(pairs: Sequence[Pair], *, output: str, spans_key: str) -> List[Shown]:
    """What to show of each pair. "auto": the span group if any prediction has it, else ents."""
    if output == "auto":
        output = "spans" if any(spans_key in pred.spans for pred, _ in pairs) else "ents"
    shown = []
    for pred, gold in pairs:
        annotated = gold is not None and (
            doc_spans(gold, output=output, spans_key=spans_key) is not None
        )
        marks = compare(pred, gold, output=output, spans_key=spans_key)
        name = (pred if gold is None else gold).user_data.get(DOC_ID, "")
        relations = compare_relations(pred, gold)
        shown.append(Shown(pred.text, marks, str(name), annotated, relations))
    return shown


def load_systems(
    sources: Sequence[str], gold: str, *, output: str, spans_key: str
) -> Tuple[List[System], str]:
    """Systems over the same gold file, and whether "spans" or "ents" are compared. "auto": the span
    group if gold has it anywhere, else ents."""
    loaded = [load_pairs(source, [gold]) for source in sources]
    golds = [own for _, own in loaded[0] if own is not None]
    if output == "auto":
        output = "spans" if any(spans_key in own.spans for own in golds) else "ents"
    if not any(doc_spans(own, output=output, spans_key=spans_key) for own in golds):
        keys = ", ".join(sorted({key for own in golds for key in own.spans})) or "none"
        hint = ", or compare `doc.ents` with --output ents"
        if output == "ents":
            raise CorpusError(Errors.S027.format(path=gold, docs=len(golds), hint=""))
        raise CorpusError(
            Errors.S023.format(path=gold, key=spans_key, docs=len(golds), keys=keys, hint=hint)
        )
    preds = [[pred for pred, _ in pairs] for pairs in loaded]
    return read_systems(
        short_names(sources), preds, golds, output=output, spans_key=spans_key
    ), output


def short_names(sources: Sequence[str]) -> List[str]:
    """Sources by as few of the last parts of their paths as tell them apart."""
    parts = [[part for part in Path(source).parts if part != "model-best"] for source in sources]
    for size in range(1, max(map(len, parts)) + 1):
        names = ["/".join(own[-size:]).removesuffix(SUFFIX) for own in parts]
        if len(set(names)) == len(names):
            return names
    return list(sources)
