"""Arcs join the boxes of their entities, and nothing covers anything else."""

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spacy_spanner.analysis import arcs
from spacy_spanner.analysis.arcs import draw_relations, group_relations
from spacy_spanner.analysis.articles import ARTICLE, make_articles
from spacy_spanner.analysis.marks import MarkedDoc, RelationMark, SpanMark
from spacy_spanner.analysis.word_line import visual_order

from .cases import SPANS

TEXT = "Ann of Trent University met Bob"
WORDS = [(m.start(), m.end()) for m in re.finditer("[a-z]+", TEXT, re.I)]
NUMBER = r"(-?[\d.]+)"
HEBREW = ["\u05d3\u05d5\u05d3", "\u05db\u05d4\u05df"]


def draw(doc, classes=()):
    return [draw_relations(doc, *group, dict(classes)) for group in group_relations(doc)]


def marked(text, spans, pairs, status="tp"):
    marks = [SpanMark(*span, status) for span in spans]
    relations = [RelationMark(spans[i], spans[j], "r", status) for i, j in pairs]
    return MarkedDoc(text, marks, "", True, relations)


def apart(one, other):
    return one.x + one.width <= other.x or other.x + other.width <= one.x or one.y != other.y


@given(SPANS.filter(bool), st.data())
def test_arcs_join_their_boxes(spans, data):
    spans = sorted((WORDS[a][0], WORDS[b - 1][1], label) for a, b, label in spans)
    number = st.integers(0, len(spans) - 1)
    pairs = sorted(data.draw(st.sets(st.tuples(number, number), min_size=1, max_size=8)))
    doc = marked(TEXT, spans, pairs)
    [(begin, end, group)] = group_relations(doc)
    drawing = draw_relations(doc, begin, end, group, {})
    assert [own.text for own in drawing.words] == TEXT.split()
    assert all(apart(one, other) for one, other in combinations(drawing.boxes, 2))
    boxes = dict(zip(spans, drawing.boxes, strict=True))
    levels = []
    for relation, arc in zip(group, drawing.arcs, strict=True):
        begin, top, bend = map(float, re.match(f"M{NUMBER} {NUMBER}V{NUMBER}", arc.path).groups())
        tip = list(map(float, re.match(f"M{NUMBER} {NUMBER}", arc.arrow).groups()))
        for (x, y), key in [((begin, top), relation.head), (tip, relation.tail)]:
            box = boxes[key]
            assert y == box.y and box.x <= x <= box.x + box.width
        assert 0 < bend < min(box.y for box in drawing.boxes)
        levels.append((min(begin, tip[0]), max(begin, tip[0]), bend))
    labels = [own for own in drawing.labels if own.kind.startswith("link")]
    for (one, a), (other, b) in combinations(list(zip(levels, labels, strict=True)), 2):
        assert a.y != b.y or one[1] <= other[0] or other[1] <= one[0]


def test_inner_entities_are_nearer_to_the_words():
    outer, inner = (7, 23, "ORG"), (7, 12, "LOC")
    [drawing] = draw(marked(TEXT, [outer, inner], [(0, 1)]))
    big, small = drawing.boxes
    assert big.width > small.width and big.y < small.y < drawing.words[0].y
    assert big.x == small.x


def test_words_from_right_to_left():
    assert visual_order(["a", "b", "c"], turned=False) == [0, 1, 2]
    assert visual_order([*HEBREW, "."], turned=True) == [2, 1, 0]
    # words of the other direction keep their own order
    assert visual_order([HEBREW[0], "New", "York", HEBREW[1]], turned=True) == [3, 1, 2, 0]
    assert visual_order(["a", *HEBREW, "b"], turned=False) == [0, 2, 1, 3]
    text = " ".join([*HEBREW, *HEBREW])
    [drawing] = draw(marked(text, [(0, 3, "A"), (12, 15, "B")], [(0, 1)]))
    first, last = drawing.boxes
    assert drawing.turned and last.x < first.x
    assert [own.text for own in drawing.words] == text.split()[::-1]


def test_an_entity_torn_apart_has_two_boxes():
    text = f"{HEBREW[0]} {HEBREW[1]} New York {HEBREW[0]} {HEBREW[1]}"
    [drawing] = draw(marked(text, [(4, 11, "A"), (0, 3, "B")], [(0, 1)]))
    assert len(drawing.boxes) == 3


def test_white_space_and_unmarked_ends_are_drawn():
    for text in ("a  b", "   "):
        relation = RelationMark((1, 2, "X"), (1, 1, "Y"), "r", "fp")
        [drawing] = draw(MarkedDoc(text, [], "", True, [relation]))
        assert len(drawing.boxes) == 2 and drawing.boxes[0].kind == "plain"


def test_drawings_show_what_is_near_and_are_bounded():
    text = "word " * 2000
    near, far, wide = (0, 4, 5, 9), (5000, 5004, 5010, 5014), (0, 4, 9000, 9004)
    relations = [
        RelationMark((a, b, "A"), (c, d, "B"), "r", "tp") for a, b, c, d in (near, far, wide)
    ]
    doc = MarkedDoc(text, [], "", True, relations)
    groups = list(group_relations(doc))
    assert sorted(end - begin for begin, end, _ in groups)[0] == 0  # too wide to be drawn
    assert all(end - begin < arcs.LONGEST + 3 * arcs.CONTEXT for begin, end, _ in groups)
    assert sorted(own for *_, group in groups for own in group) == sorted(relations)
    first = draw_relations(doc, *next(own for own in groups if own[0] == 0 < own[1]), {})
    assert [first.words[0].text, first.words[-1].text] == ["word", "word …"]
    many = MarkedDoc(text, [], "", True, [relations[1]] * 1000)
    parts = list(make_articles([many], {}))
    assert sum(len(part.relations) for part in parts) == 1000
    assert all(len(own.arcs) <= arcs.MOST_ARCS for part in parts for own in part.drawings)
    assert all(part.size < 2 * ARTICLE for part in parts)
