"""Documents to rows: whole sentences packed together, or overlapping windows where there are none."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..batch import END, START, Rows
from ..sentences import LONGEST, ONE_SENTENCE, found_starts, marked_starts, sentence_starts

Row = Tuple[int, int, int, int]  # start, end, own start, own end


def cut_rows(
    docs: Sequence[Doc],
    *,
    window: int,
    overlap: int,
    pack: bool,
    joined: Optional[numpy.ndarray] = None,
    marked: Optional[Sequence[Doc]] = None,
) -> Rows:
    """The rows of a batch of documents; those without tokens have none.

    window: Most tokens of a row.
    overlap: Tokens that consecutive windows share where a text without a sentence boundary has to be
        cut. Any span of up to three quarters of it is held whole by the row that owns its start.
    pack: Put as many whole sentences into a row as fit; otherwise each sentence is a row.
    joined: Documents (D,) that are joined to rows of up to `window` tokens, if sentences are packed:
        in training, so that rows are as long as those of prediction.
    marked: Documents of the same tokens, from which to read where sentences begin; None for rows
        that need not know.
    """
    lengths = numpy.array([len(doc) for doc in docs], dtype="int64")
    if joined is None:
        joined = numpy.zeros(len(docs), dtype=bool)
    order = numpy.argsort(~joined, kind="stable")  # documents to be joined come first
    starts = lengths[order].cumsum() - lengths[order]  # (D,) by place
    table = [
        [start + position for position in row]
        for number, start in zip(order.tolist(), starts.tolist())
        if lengths[number]
        for row in doc_rows(docs[number], window=window, overlap=overlap, pack=pack)
    ]
    rows = Rows(lengths, order, numpy.array(table, dtype="int64").reshape(-1, 4))
    if pack and joined.any():
        rows.table = join_rows(rows.table, end=int(lengths[joined].sum()), window=window)
    if marked is not None:
        # As `found_starts` has it, so that a head sees the sentences that its encoder sees.
        found = sentence_starts([marked[i] for i in order], LONGEST, whole=ONE_SENTENCE)
        rows.sentence_starts, rows.marked = found
    return rows


def doc_rows(doc: Doc, *, window: int, overlap: int, pack: bool) -> Iterator[Row]:
    if pack and len(doc) <= window:
        yield (0, len(doc), 0, len(doc))
        return
    starts = marked_starts(doc) or ([0] if pack else found_starts(doc))
    for start, end in stretches(starts, len(doc), window if pack else 0):
        yield from windows(start, end, window=window, overlap=overlap)


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


def join_rows(table: numpy.ndarray, *, end: int, window: int) -> numpy.ndarray:
    """Join consecutive rows (R, 4) of the line up to its position `end`, as long as they have no
    more than `window` tokens together. Windows that overlap stay as they are."""
    joined: List[List[int]] = []
    for row in table.tolist():
        last = joined[-1] if joined else row
        whole = row[:2] == row[2:] and last[:2] == last[2:]
        if joined and row[END] <= end and whole and row[END] - last[START] <= window:
            joined[-1] = [last[START], row[END], last[START], row[END]]
        else:
            joined.append(row)
    return numpy.array(joined, dtype="int64").reshape(-1, 4)
