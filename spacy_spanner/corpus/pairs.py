"""Predicted documents beside their gold: from a pipeline or a file of predictions."""

from __future__ import annotations

import os
from itertools import islice, zip_longest
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import Errors
from .docs import SUFFIX, read_docs
from .record import CorpusError
from .texts import read_texts

DocPair = Tuple[Doc, Optional[Doc]]  # predicted, gold


def load_pairs(
    source: Union[str, Language], data: Sequence[str], *, limit: int = 0
) -> Tuple[List[DocPair], bool]:
    """Predicted documents with their gold, and whether there are more than `limit`.

    source: A pipeline (name, folder, or loaded), or a .spacy file of predictions.
    data: Gold as one .spacy file; for a pipeline also .txt files, of which each line is a document,
        or texts themselves.
    limit: The maximum number of documents; 0 for all.
    """
    stop = limit + 1 if limit else None
    if isinstance(source, str) and source.endswith(SUFFIX):
        pairs = stored_pairs(source, data)
    else:
        nlp = spacy.load(source) if isinstance(source, str) else source
        pairs = predicted_pairs(nlp, data, limit=stop)
    found = list(islice(pairs, stop))
    return found[: limit or None], len(found) > limit > 0


def stored_pairs(source: str, data: Sequence[str]) -> Iterator[DocPair]:
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
                reason = f"{shorter} ends after {number - 1} documents, the other has more"
            raise CorpusError(Errors.S024.format(pred=source, gold=data[0], reason=reason))
        yield pred, gold


def predicted_pairs(
    nlp: Language, data: Sequence[str], *, limit: Optional[int] = None
) -> Iterator[DocPair]:
    """Predictions of a pipeline over gold documents and plain texts."""
    pairs = list(islice(unpredicted_pairs(nlp, data), limit))
    preds = nlp.pipe(doc for doc, _ in pairs)
    yield from zip(preds, (gold for _, gold in pairs), strict=True)


def unpredicted_pairs(nlp: Language, data: Iterable[str]) -> Iterator[DocPair]:
    """Tokenized documents for a pipeline to predict, each with its gold if there is any.

    data: .spacy files, folders of them, .txt files, or texts.
    """
    for item in data:
        path = Path(item)
        if item.endswith(SUFFIX) or os.path.isdir(item):  # a text may be too long for a `Path`
            for gold in read_docs(path, nlp.vocab):
                # as spaCy's own corpus reader: gold tokens where the spaces are unknown
                if gold.has_unknown_spaces:
                    yield Doc(nlp.vocab, words=[token.text for token in gold]), gold
                else:
                    yield nlp.make_doc(gold.text), gold
        elif item.endswith(".txt"):
            for line in read_texts(path):
                if line.strip():
                    yield nlp.make_doc(line), None
        elif os.path.isfile(item):
            raise CorpusError(Errors.S251.format(path=item))
        else:
            yield nlp.make_doc(item), None


def require_group(docs: Iterable[Doc], source: object, *, spans_key: str) -> None:
    """An error where no document has a span group that the user named; entities are no replacement."""
    number, keys = 0, set[str]()
    for doc in docs:
        if spans_key in doc.spans:
            return
        number += 1
        keys.update(doc.spans)
    if number:
        known, hint = ", ".join(sorted(keys)) or "none", ", or take `doc.ents` with --output ents"
        reason = Errors.S023.format(path=source, key=spans_key, docs=number, keys=known, hint=hint)
        raise CorpusError(reason)


def choose_output(
    output: str, golds: Iterable[Doc], systems: Sequence[Sequence[Doc]] = (), *, spans_key: str
) -> str:
    """ "spans" or "ents". "auto" is what gold and all systems have, spans before ents. Where there is
    no such thing, it is what gold has; if it has both or nothing, what the first system wrote."""
    if output != "auto":
        return output
    gold, *written = (annotated_kinds(docs, spans_key) for docs in (golds, *systems))
    for kind in ("spans", "ents"):
        if gold[kind] and all(has[kind] for has in written):
            return kind
    first = "spans" if written and written[0]["spans"] else "ents"
    if gold[first] or not any(gold.values()):
        return first
    return "ents" if first == "spans" else "spans"


def annotated_kinds(docs: Iterable[Doc], spans_key: str) -> Dict[str, bool]:
    """Whether any document has the span group, and whether any has entities."""
    found = {"spans": False, "ents": False}
    for doc in docs:
        found["spans"] = found["spans"] or spans_key in doc.spans
        found["ents"] = found["ents"] or bool(doc.ents)
        if all(found.values()):
            break
    return found
