"""Relations as arcs over the text: where everything of a drawing lies. The template makes the SVG.

Words are in one line. Over them are the boxes of entities, inner ones lowest, and over these the arcs.
Texts are centred in their places, as their widths are estimates.
"""

from __future__ import annotations

from itertools import count
from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ..span_scores import SpanKey
from .drawing import direction
from .marks import PLAIN, MarkedDoc, RelationMark, SpanMark, caption
from .word_line import LABEL_SIZE, WORD_SIZE, Extent, lay_words, text_width

CONTEXT = 60  # characters around relations
LONGEST = 2_000  # characters of a drawing; longer relations are only listed
MOST_ARCS = 40  # of a drawing
TEXT_BYTES, BOX_BYTES, ARC_BYTES = 50, 90, 350  # bytes of markup of an element, without its text
BOX, LEVEL, RADIUS = 19, 24, 8  # pixels
PORT = 7  # pixels between the ends of arcs
TRIES = 20  # places of the ends of arcs in a box


class Placed(NamedTuple):
    """A text at its place."""

    text: str
    x: float  # of its middle
    y: float
    kind: str = ""  # style classes


class Box(NamedTuple):
    """A stretch of an entity. One that text of both directions tears apart has several."""

    x: float
    y: float
    width: float
    kind: str


class Arc(NamedTuple):
    """A relation: the line from head to tail, and the arrow head."""

    path: str
    arrow: str
    kind: str


class Drawing(NamedTuple):
    """A stretch of a document with its relations."""

    left: float
    width: float
    height: float
    turned: bool  # written from right to left
    words: List[Placed]
    boxes: List[Box]
    arcs: List[Arc]
    labels: List[Placed]  # of entities and relations

    @property
    def size(self) -> int:
        """About how many bytes of markup it takes."""
        texts = [placed.text for placed in self.words + self.labels]
        markup = TEXT_BYTES * len(texts) + BOX_BYTES * len(self.boxes) + ARC_BYTES * len(self.arcs)
        return sum(len(text.encode()) for text in texts) + markup


def group_relations(doc: MarkedDoc) -> Iterator[Tuple[int, int, List[RelationMark]]]:
    """Relations near each other, with the stretch of text that shows them; an empty stretch if it is
    too long."""
    begin = end = 0
    group: List[RelationMark] = []
    for relation in sorted(doc.relations, key=lambda mark: min(mark.head[:2], mark.tail[:2])):
        first, last = relation_bounds(relation)
        near = first - CONTEXT <= end + CONTEXT and max(last, end) - begin <= LONGEST
        if group and (not near or len(group) == MOST_ARCS):
            yield (*with_context(doc.text, begin, end), group)
            group = []
        if not group:
            begin, end = first, last
        group.append(relation)
        end = max(end, last)
    if group:
        yield (*with_context(doc.text, begin, end), group)


def relation_bounds(relation: RelationMark) -> Tuple[int, int]:
    """From the first to the last character of both ends."""
    head, tail = relation.head, relation.tail
    return min(head[0], tail[0]), max(head[1], tail[1])


def with_context(text: str, begin: int, end: int) -> Tuple[int, int]:
    """A stretch with some of the text around it, cut at a blank if there is one, and within its line."""
    if end - begin > LONGEST:
        return begin, begin
    before, after = text[max(begin - CONTEXT, 0) : begin], text[end : end + CONTEXT]
    if len(before) < begin:
        before = before.partition(" ")[2] or before
    if end + len(after) < len(text):
        after = after.rpartition(" ")[0] or after
    line_before, line_after = before.rpartition("\n")[2], after.partition("\n")[0]
    return begin - len(line_before), end + len(line_after)


def draw_relations(
    doc: MarkedDoc,
    begin: int,
    end: int,
    relations: Sequence[RelationMark],
    classes: Mapping[str, str],
) -> Drawing:
    """The drawing of some relations in a stretch of the text.

    classes: The style class of each label of an entity.
    """
    entities = stretch_entities(doc, begin, end, relations)
    line = lay_words(doc.text, begin, end, entities)
    stretches = [line.stretches(i) for i in range(len(entities))]
    widest = [max(extents, key=lambda place: place[1]) for extents in stretches]
    middles = [left + width / 2 for left, width in widest]
    layers = stack([mark[:2] for mark in entities])
    ends = {mark[:3]: i for i, mark in enumerate(entities)}
    lines = route(relations, ends, widest)
    labels = [caption(mark) for mark in relations]
    spans = []
    for (x1, x2), text in zip(lines, labels, strict=True):
        half = text_width(text, LABEL_SIZE) / 2 + 4
        middle = (x1 + x2) / 2
        spans.append((min(x1, x2, middle - half), max(x1, x2, middle + half)))
    levels = stack_free(spans)
    top = LEVEL * (max(levels, default=0) + 1) + 12  # of the highest box
    n_layers = max(layers, default=0) + 1

    def box_top(entity: int) -> float:
        return top + BOX * (n_layers - 1 - layers[entity])

    arcs, texts = [], []
    for relation, (x1, x2), level, text in zip(relations, lines, levels, labels, strict=True):
        y = top - 12 - LEVEL * level
        tops = [box_top(ends[key]) for key in (relation.head, relation.tail)]
        arcs.append(make_arc(x1, x2, y, tops, relation.status))
        texts.append(Placed(text, (x1 + x2) / 2, y - 4, f"link {relation.status}"))
    boxes = []
    for i, mark in enumerate(entities):
        kind = f"{mark.status} {classes.get(mark.label, '')}".strip()
        boxes += [Box(x, box_top(i), width, kind) for x, width in stretches[i]]
        texts.append(Placed(caption(mark), middles[i], box_top(i) + 12, f"name {kind}"))
    base = top + BOX * n_layers + WORD_SIZE
    words = [Placed(line.words[i], x + width / 2, base) for i, (x, width) in line.places.items()]
    left = min([0.0, *(a for a, _ in spans)]) - 4
    right = max([line.width, *(b for _, b in spans)]) + 4
    turned = direction(doc.text) == "rtl"
    return Drawing(left, right - left, base + 8, turned, words, boxes, arcs, texts)


def stretch_entities(
    doc: MarkedDoc, begin: int, end: int, relations: Sequence[RelationMark]
) -> List[SpanMark]:
    """The entities within a stretch; ends of relations that are not among them have no status."""
    entities = [mark for mark in doc.marks if begin <= mark.start < mark.end <= end]
    known = {mark[:3] for mark in entities}
    more = {key for mark in relations for key in (mark.head, mark.tail)} - known
    return entities + [SpanMark(*key, PLAIN) for key in sorted(more)]


def stack(spans: Sequence[Tuple[float, float]]) -> List[int]:
    """A layer for each span, over those of all shorter spans that it touches."""
    layers: Dict[int, int] = {}
    for i in sorted(range(len(spans)), key=lambda i: spans[i][1] - spans[i][0]):
        below = [layers[j] for j in layers if touch(spans[i], spans[j])]
        layers[i] = max(below, default=-1) + 1
    return [layers[i] for i in range(len(spans))]


def stack_free(spans: Sequence[Tuple[float, float]]) -> List[int]:
    """The lowest free level for each span, short spans first."""
    rows: List[List[Tuple[float, float]]] = []
    levels = [0] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: spans[i][1] - spans[i][0]):
        levels[i] = next(
            n for n in count() if n == len(rows) or not any(touch(spans[i], o) for o in rows[n])
        )
        rows[levels[i] :] = rows[levels[i] :] or [[]]
        rows[levels[i]].append(spans[i])
    return levels


def touch(one: Tuple[float, float], other: Tuple[float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def route(
    relations: Sequence[RelationMark],
    ends: Mapping[SpanKey, int],
    places: Sequence[Extent],
) -> List[Tuple[float, float]]:
    """Where the arcs of relations leave their heads and reach their tails. Ends at the same entity lie
    beside each other so that arcs of one side do not cross."""
    middles = [left + width / 2 for left, width in places]
    wanted: Dict[int, List[Tuple[bool, float, int, int]]] = {}
    for number, relation in enumerate(relations):
        pair = (ends[relation.head], ends[relation.tail])
        for side, (end, other) in enumerate([pair, pair[::-1]]):
            right = middles[other] > middles[end]
            wanted.setdefault(end, []).append((right, -middles[other], number, side))
    found: Dict[Tuple[int, int], float] = {}
    used: List[float] = []
    for entity, wishes in wanted.items():
        ports = free_ports(places[entity], len(wishes), used)
        for x, (*_, number, side) in zip(ports, sorted(wishes), strict=True):
            found[number, side] = x
        used += ports
    return [(found[n, 0], found[n, 1]) for n in range(len(relations))]


def free_ports(place: Extent, size: int, used: Sequence[float]) -> List[float]:
    """So many ends of arcs within a box, in its middle if those of nested entities leave it free."""
    left, width = place
    step = min(PORT, width / (size + 1))
    room = width - step * (size - 1)
    tries = []
    for share in sorted(range(1, TRIES), key=lambda n: abs(n - TRIES / 2)):
        ports = [left + room * share / TRIES + step * k for k in range(size)]
        distance = min((abs(x - other) for x in ports for other in used), default=step)
        tries.append((min(distance, step / 2), ports))
    return max(tries, key=lambda option: option[0])[1]  # the first of equal ones


def make_arc(x1: float, x2: float, y: float, tops: Sequence[float], status: str) -> Arc:
    """A line with round corners at height y, from the top of one box to that of another."""
    sign = 1 if x2 > x1 else -1
    radius = min(RADIUS, abs(x2 - x1) / 2)
    bend = sign * radius
    path = (
        f"M{x1:.1f} {tops[0]:.1f}V{y + radius:.1f}q0 {-radius:.1f} {bend:.1f} {-radius:.1f}"
        f"H{x2 - bend:.1f}q{bend:.1f} 0 {bend:.1f} {radius:.1f}V{tops[1] - 6:.1f}"
    )
    return Arc(path, f"M{x2:.1f} {tops[1]:.1f}l-4 -8h8z", status)
