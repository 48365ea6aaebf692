"""Documents cut into articles of bounded size, and articles put on pages of bounded size."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

from .arcs import Drawing, draw_relations, group_relations
from .drawing import draw_blocks
from .marks import MarkedDoc, RelationMark

ARTICLE = 64_000  # bytes of markup; browsers lay out only the articles in view
PAGE = 2_000_000  # bytes of markup
ITEM = 200  # bytes of markup around the texts of a relation, or around an article

Related = Tuple[List[RelationMark], List[Drawing]]
Item = TypeVar("Item")


class Article(NamedTuple):
    """A document, or a part of a long one."""

    doc: MarkedDoc
    markup: str
    relations: Sequence[RelationMark]
    drawings: Sequence[Drawing]  # of these relations
    part: int  # from 1
    n_parts: int

    @property
    def size(self) -> int:
        """About how many bytes of markup it takes."""
        fixed = len(self.markup.encode()) + len(self.doc.title.encode()) + ITEM
        return fixed + relations_size(self.doc, self.relations, self.drawings)


def make_articles(docs: Iterable[MarkedDoc], classes: Mapping[str, str]) -> Iterator[Article]:
    """The articles of the documents, in order.

    classes: The style class of each label.
    """
    for doc in docs:
        texts = join_blocks(draw_blocks(doc.text, doc.marks, classes))
        drawn = join_drawings(doc, classes)
        # the first relations are in the article of the last text
        markups = [*texts, *[""] * (len(drawn) - 1)]
        nothing: Related = ([], [])
        related = [nothing] * (len(texts) - 1) + drawn
        for i, (markup, shown) in enumerate(zip(markups, related, strict=True), start=1):
            yield Article(doc, markup, *shown, i, len(markups))


def join_drawings(doc: MarkedDoc, classes: Mapping[str, str]) -> List[Related]:
    """The relations of a document with their drawings, joined up to the size of an article."""
    drawn: List[Related] = []
    for begin, end, group in group_relations(doc):
        drawings = [draw_relations(doc, begin, end, group, classes)] if begin < end else []
        drawn.append((group, drawings))
    return [
        (
            [mark for marks, _ in group for mark in marks],
            [drawing for _, parts in group for drawing in parts],
        )
        for group in pack(drawn, lambda part: relations_size(doc, *part), ARTICLE)
    ]


def relations_size(
    doc: MarkedDoc, relations: Sequence[RelationMark], drawings: Sequence[Drawing]
) -> int:
    """About how many bytes of markup the list and the drawings take."""
    keys = [key for mark in relations for key in (mark.head, mark.tail)]
    listed = sum(len(doc.text[start:end].encode()) for start, end, _ in keys)
    labels = sum(len(mark.label.encode()) + ITEM for mark in relations)
    return listed + labels + sum(drawing.size for drawing in drawings)


def join_blocks(blocks: Iterable[str]) -> List[str]:
    """Neighbouring blocks joined up to the size of an article."""
    return ["".join(group) for group in pack(blocks, lambda block: len(block.encode()), ARTICLE)]


def pack_pages(articles: Iterable[Article]) -> List[List[Article]]:
    """The articles of each page; one page if there are none."""
    return pack(articles, lambda article: article.size, PAGE)


def pack(items: Iterable[Item], size_of: Callable[[Item], int], most: int) -> List[List[Item]]:
    """Neighbouring items in groups of at most `most` bytes, or of one item; one group if there are none."""
    groups: List[List[Item]] = [[]]
    used = 0
    for item in items:
        size = size_of(item)
        if used and used + size > most:
            groups.append([])
            used = 0
        groups[-1].append(item)
        used += size
    return groups
