"""Counts over an annotated corpus: what a model would be trained on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import or_
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

import numpy
import spacy
from spacy.lang.lex_attrs import is_punct
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import Errors
from ..overlaps import nesting_levels
from ..pipeline.rows import doc_rows
from ..relations import get_relations
from .docs import DOC_ID, edges, gold_spans, read_docs
from .nesting import nesting
from .record import CorpusError, RawSpan
from .texts import jsonl_texts

SHARES = (50, 75, 85, 90, 95, 99, 100)  # per cent of the spans
HUGE = 10_000  # tokens of a document


@dataclass(frozen=True)
class Settings:
    """Settings of the component that the statistics depend on. `max_width` None: no limit;
    `relations`: it learns relations."""

    output: str = "spans"
    spans_key: str = "sc"
    max_width: Optional[int] = None
    window: int = 256
    overlap: int = 64
    pack_sentences: bool = True
    relations: bool = False


@dataclass
class Stats:
    """Counts of one corpus. Counts of spans unless the name says documents."""

    docs: int = 0
    docs_unannotated: int = 0
    docs_empty: int = 0  # no tokens
    docs_huge: int = 0
    docs_cut: int = 0  # longer than the window, so cut into rows
    tokens: int = 0
    longest_doc: int = 0
    spans: int = 0
    nested: int = 0
    crossing: int = 0
    overlapping: int = 0  # nested or crossing, or the same tokens with two labels
    duplicates: int = 0
    empty: int = 0  # no token in them; left out of every other count
    two_labels: int = 0  # offsets with more than one label
    blank_edges: int = 0
    punct_edges: int = 0
    too_wide: int = 0
    cut: int = 0  # not held whole by the row that owns the start
    relations: int = 0
    docs_linked: int = 0  # with an annotation of relations
    max_depth: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    levels: Counter[int] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    doc_lengths: Counter[int] = field(default_factory=Counter)
    keys: Set[str] = field(default_factory=set)
    has_ents: bool = False
    texts: Set[str] = field(default_factory=set, repr=False)
    doc_ids: Set[str] = field(default_factory=set, repr=False)

    def width_for(self, share: float) -> int:
        """The smallest width that holds this share (0-100) of the spans."""
        return smallest_for(self.lengths, share)

    def levels_for(self, share: float) -> int:
        """The fewest levels of nesting that hold this share (0-100) of the spans."""
        return smallest_for(self.levels, share) + 1

    def as_dict(self) -> Dict[str, Any]:
        """Everything but the texts, in types JSON has."""
        skipped = {"texts", "doc_ids", "labels", "keys"}
        values = {k: v for k, v in vars(self).items() if k not in skipped}
        values["labels"] = dict(self.labels.most_common())
        values["keys"] = sorted(self.keys)
        for name in ("depths", "levels", "lengths", "doc_lengths"):
            values[name] = {str(k): v for k, v in sorted(values[name].items())}
        values["widths"] = {str(share): self.width_for(share) for share in SHARES}
        return values


def corpus_stats(path: Path, settings: Settings) -> Stats:
    """Count one corpus; an error where nothing in it is annotated as the settings say."""
    stats = Stats()
    for doc in read_docs(path, Vocab()):
        count_doc(doc, settings, stats)
    if not stats.docs:
        raise CorpusError(Errors.S028.format(path=path))
    if settings.output == "ents" and not stats.spans:
        hint = ""
        if stats.keys:
            keys = ", ".join(sorted(stats.keys))
            hint = f". There are span groups ({keys}): use --output spans --spans-key for them"
        raise CorpusError(Errors.S027.format(path=path, docs=stats.docs, hint=hint))
    if settings.output != "ents" and stats.docs_unannotated == stats.docs:
        keys = ", ".join(sorted(stats.keys)) or "none"
        hint = ", or use --output ents: there are entities" if stats.has_ents else ""
        raise CorpusError(
            Errors.S023.format(
                path=path, key=settings.spans_key, docs=stats.docs, keys=keys, hint=hint
            )
        )
    return stats


def smallest_for(counts: Counter[int], share: float) -> int:
    """The smallest number up to which this share (0-100) of what is counted lies; 0 of nothing."""
    reached = 0
    for number in sorted(counts):
        reached += counts[number]
        if reached * 100 >= share * counts.total():
            return number
    return 0


def text_lengths(path: Path) -> Counter[int]:
    """How many tokens the texts of a JSONL file have, one {"text": ...} a line."""
    nlp = spacy.blank("xx")  # lengths are compared by their order of magnitude
    return Counter(len(nlp.tokenizer(text)) for text in jsonl_texts(path))


def median(lengths: Counter[int]) -> int:
    """The median of numbers that are counted; 0 of none."""
    values = sorted(lengths.elements())
    return values[len(values) // 2] if values else 0


def count_doc(doc: Doc, settings: Settings, stats: Stats) -> None:
    stats.docs += 1
    stats.tokens += len(doc)
    stats.longest_doc = max(stats.longest_doc, len(doc))
    stats.doc_lengths[len(doc)] += 1
    stats.docs_empty += len(doc) == 0
    stats.docs_huge += len(doc) > HUGE
    stats.keys.update(doc.spans)
    stats.has_ents = stats.has_ents or bool(doc.ents)
    if len(doc):
        stats.texts.add(doc.text)
    if DOC_ID in doc.user_data:
        stats.doc_ids.add(str(doc.user_data[DOC_ID]))
    relations = get_relations(doc)
    stats.docs_linked += relations is not None
    stats.relations += len(relations or [])
    spans = gold_spans(doc, output=settings.output, spans_key=settings.spans_key)
    if spans is None:
        stats.docs_unannotated += 1
        return
    stats.empty += sum(start >= end for start, end, _ in spans)
    spans = [span for span in spans if span[0] < span[1]]
    count_spans(doc, spans, stats)
    if settings.max_width is not None:
        stats.too_wide += sum(end - start > settings.max_width for start, end, _ in spans)
    stats.docs_cut += len(doc) > settings.window
    stats.cut += n_cut(doc, spans, settings)


def count_spans(doc: Doc, spans: List[RawSpan], stats: Stats) -> None:
    unique = sorted(set(spans))
    offsets = [(start, end) for start, end, _ in unique]
    lie = nesting(offsets)
    stats.spans += len(unique)
    stats.duplicates += len(spans) - len(unique)
    stats.two_labels += sum(count > 1 for count in Counter(offsets).values())
    stats.nested += sum(lie.nested)
    stats.crossing += sum(lie.crossing)
    stats.overlapping += sum(map(or_, lie.nested, lie.crossing))
    stats.depths.update(lie.depth)
    starts, ends = numpy.array(offsets, dtype="int64").reshape(-1, 2).T
    stats.levels.update(nesting_levels(starts, ends).tolist())
    stats.max_depth = max(stats.max_depth, *lie.depth, 0)
    stats.lengths.update(end - start for start, end in offsets)
    stats.labels.update(label for _, _, label in unique)
    for span in unique:
        first, last = edges(doc, span)
        stats.blank_edges += first.isspace() or last.isspace()
        stats.punct_edges += is_punct(first) or is_punct(last)


def n_cut(doc: Doc, spans: List[RawSpan], settings: Settings) -> int:
    """Spans that the row which owns their start does not hold whole."""
    if not spans:
        return 0
    rows = doc_rows(
        doc, window=settings.window, overlap=settings.overlap, pack=settings.pack_sentences
    )
    own_end = [0] * len(doc)
    for _, end, own_start, own_stop in rows:
        own_end[own_start:own_stop] = [end] * (own_stop - own_start)
    return sum(end > own_end[start] for start, end, _ in set(spans))
