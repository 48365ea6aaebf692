"""Corpora of relations in formats of their own: NYT and WebNLG, SciERC, ADE."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .json_source import json_items
from .objects import doc_id
from .record import (
    Place,
    RawRelation,
    RawSpan,
    ReadOptions,
    Record,
    checked_relation,
    checked_span,
    checked_text_span,
    checked_words,
)
from .source import numbered_lines

ENTITY = "ENTITY"  # label of the ends of triples, which have none
EFFECT, DRUG = "Adverse-Effect", "Drug"  # of ADE; the relation has the name of its head
NOT_THERE = "relations with an end that is not in the text"
ACROSS = "relations across sentences"
ADE_LINE = re.compile(r"^\d+\|.+(\|.+\|\s*\d+\s*\|\s*\d+\s*){2}$")
# A letter or digit of a script with blanks between words: not of Thai to Khmer, Chinese and Japanese.
IN_WORD = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]"
N_ADE = 8  # fields of a line


class Builder:
    """The spans, each once, and the relations of one document."""

    def __init__(self) -> None:
        self.numbers: Dict[RawSpan, int] = {}
        self.relations: List[RawRelation] = []
        self.skipped: Counter[str] = Counter()

    def span(self, span: RawSpan) -> int:
        return self.numbers.setdefault(span, len(self.numbers))

    def link(self, place: Place, ends: Sequence[Optional[RawSpan]], label: Any) -> None:
        """A relation from the first to the second, or a lost one where one of them is not there."""
        there = [self.span(end) for end in ends if end is not None]
        if len(there) < 2:
            self.skipped[NOT_THERE] += 1
            return
        relation = checked_relation(place, there[0], there[1], label, n_spans=len(self.numbers))
        if relation not in self.relations:
            self.relations.append(relation)

    def record(self, place: Place, *, looked: bool = True, **content: Any) -> Record:
        """looked: Whether the file says anything about the relations of this document."""
        relations, skipped = self.relations if looked else None, dict(self.skipped)
        spans = list(self.numbers)
        return Record(place, spans=spans, relations=relations, skipped=skipped, **content)


def read_triples(path: Path, options: ReadOptions) -> Iterator[Record]:
    """NYT and WebNLG: objects with `text` and `triple_list` (subject, relation, object as texts, of
    which the first occurrence counts; in the "star" versions their last words), or `relation_list`
    with characters of both and `entity_list` with types; or `tokens` and `spo_details`."""
    for place, item in json_items(path):
        if isinstance(item, dict) and "spo_details" in item:
            yield read_details(place, item)
            continue
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            place.fail("expected an object with 'text' and 'triple_list' or 'relation_list'")
        text, found = item["text"], Builder()
        labels = {}
        for entity in objects(place, item, "entity_list"):
            start, end = characters(place, entity, "char_span")
            labels[start, end] = entity.get("type", ENTITY)
            found.span(text_span(place, text, (start, end), labels, entity.get("text")))
        for relation in objects(place, item, "relation_list"):
            ends = []
            for name, short in (("subject", "subj"), ("object", "obj")):
                words, at = relation.get(name), relation.get(f"{short}_char_span")
                if at is None and is_text(words):  # as the texts come, without offsets
                    ends.append(first_occurrence(text, str(words), ENTITY))
                    continue
                at = characters(place, relation, f"{short}_char_span")
                ends.append(text_span(place, text, at, labels, words))
            found.link(place, ends, relation.get("predicate"))
        for triple in item.get("triple_list") or []:
            if not isinstance(triple, list) or len(triple) != 3 or not all(map(is_text, triple)):
                place.fail(f"each of 'triple_list' must be three texts, found {triple!r:.80}")
            head, label, tail = triple
            found_ends = [first_occurrence(text, words, ENTITY) for words in (head, tail)]
            found.link(place, found_ends, label)
        looked = any(item.get(key) is not None for key in ("triple_list", "relation_list"))
        yield found.record(place, looked=looked, text=text, doc_id=doc_id(item, "id"))


def read_details(place: Place, item: Dict[str, Any]) -> Record:
    """NYT with types: `tokens`, and `spo_details` of start, end (exclusive) and type of the subject, the
    relation, and the same of the object."""
    words, found = checked_words(place, item.get("tokens")), Builder()
    for start, end, label, relation, *tail in rows(place, item["spo_details"], 7):
        ends = [
            checked_span(place, *span, length=len(words), unit="token")
            for span in ((start, end, label), tail)
        ]
        found.link(place, ends, relation)
    return found.record(place, words=words, doc_id=doc_id(item, "id"))


def read_scierc(path: Path, options: ReadOptions) -> Iterator[Record]:
    """SciERC: an object a document, with `sentences` (words), `ner` and `relations` of each sentence;
    offsets are those of tokens in the document, ends inclusive. Each sentence is a document; relations
    across sentences are left out and counted."""
    for place, item in json_items(path):
        if not isinstance(item, dict) or not isinstance(item.get("sentences"), list):
            place.fail("expected an object with 'sentences', 'ner' and 'relations'")
        first, sentences = 0, item["sentences"]
        parts = {key: item.get(key) or [[]] * len(sentences) for key in ("ner", "relations")}
        for key, part in parts.items():
            if not isinstance(part, list) or len(part) != len(sentences):
                place.fail(f"'{key}' must be a list with an entry for each of 'sentences'")
        for words, spans, links in zip(sentences, parts["ner"], parts["relations"]):
            length, found = len(checked_words(place, words)), Builder()
            labels = {}
            for start, end, label in rows(place, spans, 3):
                span = in_sentence(place, start, end, label, first=first, length=length)
                labels[span[:2]] = label
                found.span(span)
            for head, head_end, tail, tail_end, label in rows(place, links, 5):
                spans_of: List[RawSpan] = []
                pair = ((head, head_end), (tail, tail_end))
                if is_across(pair, sentences, first, first + length):
                    found.skipped[ACROSS] += 1
                    continue
                for start, end in pair:
                    at = in_sentence(place, start, end, ENTITY, first=first, length=length)[:2]
                    spans_of.append((*at, labels.get(at, ENTITY)))
                found.link(place, spans_of, label)
            looked, name = item.get("relations") is not None, doc_id(item, "doc_key")
            yield found.record(place, looked=looked, words=words, doc_id=name)
            first += length


def is_across(ends: Iterable[Tuple[Any, Any]], sentences: List[Any], begin: int, stop: int) -> bool:
    """Whether spans of a document, ends inclusive, are in it, but not all of them in one sentence."""
    total = sum(len(words) for words in sentences if isinstance(words, list))
    offsets = [offset for end in ends for offset in end]
    if not all(type(offset) is int and 0 <= offset < total for offset in offsets):
        return False  # and no span at all
    return not all(begin <= offset < stop for offset in offsets)


def read_ade(path: Path, options: ReadOptions) -> Iterator[Record]:
    """ADE (`DRUG-AE.rel`): lines of an id, a sentence, an adverse effect and a drug with their offsets
    in the abstract, separated by `|`. The lines of a sentence are one document."""
    sentences: Dict[Tuple[str, str], Tuple[Place, Builder]] = {}
    for place, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split("|")
        if len(fields) != N_ADE or not ADE_LINE.match(line.strip()):
            place.fail(f"expected {N_ADE} fields separated by '|', found {line!r:.80}")
        name, text, effect, begin, _, drug, drug_begin, _ = map(str.strip, fields)
        _, found = sentences.setdefault((name, text), (place, Builder()))
        # Of several occurrences, those as far apart as in the abstract.
        apart = int(drug_begin) - int(begin)
        heads, tails = (occurrences(text, words) for words in (effect, drug))
        pairs = [(i, j) for i in heads for j in tails]
        best = min(pairs, key=lambda pair: abs(pair[1] - pair[0] - apart), default=None)
        if best is None:
            found.link(place, (), EFFECT)
            continue
        head = (best[0], best[0] + len(effect), EFFECT)
        found.link(place, (head, (best[1], best[1] + len(drug), DRUG)), EFFECT)
    for (name, text), (place, found) in sentences.items():
        yield found.record(place, text=text, doc_id=name)


def occurrences(text: str, words: str) -> List[int]:
    """The offsets at which words occur in a text, not inside of other words."""
    if not words.strip():
        return []
    pattern = rf"(?<!{IN_WORD}){re.escape(words)}(?!{IN_WORD})"
    return [match.start() for match in re.finditer(pattern, text)]


def first_occurrence(text: str, words: str, label: str) -> Optional[RawSpan]:
    start = next(iter(occurrences(text, words)), None)
    return None if start is None else (start, start + len(words), label)


def text_span(
    place: Place, text: str, at: Tuple[int, int], labels: Mapping[Any, Any], words: Any
) -> RawSpan:
    """A span by its characters and the text that the file repeats for it, if it does."""
    return checked_text_span(place, *at, labels.get(at, ENTITY), text=text, covered=words)


def in_sentence(
    place: Place, start: Any, end: Any, label: Any, *, first: int, length: int
) -> RawSpan:
    """A span of the tokens of a sentence, from the tokens of its document, with the end inclusive."""
    if not all(type(offset) is int for offset in (start, end)):
        place.fail(f"offsets must be whole numbers, found {start!r} and {end!r}")
    return checked_span(place, start - first, end + 1 - first, label, length=length, unit="token")


def rows(place: Place, values: Any, size: int) -> List[Any]:
    """Lists of this size."""
    if not isinstance(values, list) or not all(
        isinstance(value, list) and len(value) == size for value in values
    ):
        place.fail(f"expected a list of lists of {size} values, found {values!r:.80}")
    return values


def objects(place: Place, item: Dict[str, Any], key: str) -> List[Dict[str, Any]]:
    values = item.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        place.fail(f"'{key}' must be a list of objects, found {values!r:.80}")
    return values


def characters(place: Place, item: Dict[str, Any], key: str) -> Tuple[int, int]:
    value = item.get(key)
    if not isinstance(value, list) or [type(offset) for offset in value] != [int, int]:
        place.fail(f"'{key}' must be two offsets of characters, found {value!r:.80}")
    return value[0], value[1]


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
