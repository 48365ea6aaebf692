"""Documents to rows: whole sentences packed together, or overlapping windows where there are none."""

from __future__ import annotations

from typing import Iterator, List, Sequence, Tuple

import numpy
from spacy.attrs import SENT_START
from spacy.tokens import Doc

Row = Tuple[int, int, int, int]  # start, end, own start, own end


def cut_rows(docs: Sequence[Doc], *, window: int, overlap: int, pack: bool) -> numpy.ndarray:
    """The rows of a batch of documents; those without tokens have none.

    window: Most tokens of a row.
    overlap: Tokens that consecutive windows share where a text without a sentence boundary has to be
        cut. Any span of up to three quarters of it is held whole by the row that owns its start.
    pack: Put as many whole sentences into a row as fit; otherwise each sentence is a row.
    RETURNS: (R, 5) int64, columns as in `batch`.
    """
    table = [
        (i, *row)
        for i, doc in enumerate(docs)
        if len(doc)
        for row in doc_rows(doc, window=window, overlap=overlap, pack=pack)
    ]
    return numpy.array(table, dtype="int64").reshape(-1, 5)


def doc_rows(doc: Doc, *, window: int, overlap: int, pack: bool) -> Iterator[Row]:
    if pack and len(doc) <= window:
        yield (0, len(doc), 0, len(doc))
        return
    for start, end in stretches(sentence_starts(doc), len(doc), window if pack else 0):
        yield from windows(start, end, window=window, overlap=overlap)


def sentence_starts(doc: Doc) -> List[int]:
    """Where sentences are known to start; only the first token where nothing is annotated."""
    marks = doc.to_array(SENT_START)[1:]
    return [0, *(numpy.flatnonzero(marks == 1) + 1).tolist()]


def stretches(starts: Sequence[int], length: int, most: int) -> Iterator[Tuple[int, int]]:
    """Runs of consecutive sentences with no more than `most` tokens, or single sentences."""
    begin = end = 0
    for sentence_end in [*starts[1:], length]:
        if end > begin and sentence_end - begin > most:
            yield begin, end
            begin = end
        end = sentence_end
    yield begin, end


def windows(start: int, end: int, *, window: int, overlap: int) -> Iterator[Row]:
    """Overlapping windows in which every start token is owned by exactly one.

    A quarter of the overlap lies before a row's first own token, so that a head which reads from left
    to right does not begin in the middle of nowhere; the rest lies behind its last one."""
    left = overlap // 4
    own_start = start
    for begin in range(start, max(end - overlap, start + 1), window - overlap):
        last = begin + window >= end
        own_end = end if last else begin + window - overlap + left
        yield begin, min(begin + window, end), own_start, own_end
        own_start = own_end
