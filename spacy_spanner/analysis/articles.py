"""Documents cut into articles of bounded size, and articles put on pages of bounded size."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from .arcs import Drawing, draw_relations, group_relations
from .drawing import draw_blocks
from .marks import MarkedDoc, RelationMark

ARTICLE = 64_000  # bytes of markup; browsers lay out only the articles in view
PAGE = 2_000_000  # bytes of markup
ITEM = 200  # bytes of markup around the texts of a relation, or around an article

Related = Tuple[List[RelationMark], List[Drawing]]


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
    joined: List[Related] = [([], [])]
    used = 0
    for begin, end, group in group_relations(doc):
        drawings = [draw_relations(doc, begin, end, group, classes)] if begin < end else []
        size = relations_size(doc, group, drawings)
        if joined[-1][0] and used + size > ARTICLE:
            joined.append(([], []))
            used = 0
        joined[-1][0].extend(group)
        joined[-1][1].extend(drawings)
        used += size
    return joined


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
    joined = [""]
    for block in blocks:
        if joined[-1] and len(joined[-1].encode()) + len(block.encode()) > ARTICLE:
            joined.append("")
        joined[-1] += block
    return joined


def pack_pages(articles: Iterable[Article]) -> List[List[Article]]:
    """The articles of each page; one page if there are none."""
    pages: List[List[Article]] = [[]]
    used = 0
    for article in articles:
        if pages[-1] and used + article.size > PAGE:
            pages.append([])
            used = 0
        pages[-1].append(article)
        used += article.size
    return pages
