"""Documents cut into articles of bounded size, and articles put on pages of bounded size."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from .drawing import draw_blocks
from .marks import MarkedDoc, RelationMark

ARTICLE = 64_000  # bytes of markup; browsers lay out only the articles in view
PAGE = 2_000_000  # bytes of markup
RELATIONS = 200  # of an article
ITEM = 200  # bytes of markup around the texts of a relation, or around an article


class Article(NamedTuple):
    """A document, or a part of a long one."""

    doc: MarkedDoc
    markup: str
    relations: Sequence[RelationMark]
    part: int  # from 1
    n_parts: int

    @property
    def size(self) -> int:
        """About how many bytes of markup it takes."""
        texts = [self.doc.title, *(own.head + own.tail + own.label for own in self.relations)]
        return len(self.markup.encode()) + sum(len(own.encode()) + ITEM for own in texts)


def make_articles(docs: Iterable[MarkedDoc], classes: Mapping[str, str]) -> Iterator[Article]:
    """The articles of the documents, in order.

    classes: The style class of each label.
    """
    for doc in docs:
        texts = join_blocks(draw_blocks(doc.text, doc.marks, classes))
        lists = [doc.relations[i : i + RELATIONS] for i in range(0, len(doc.relations), RELATIONS)]
        parts: List[Tuple[str, Sequence[RelationMark]]] = [(text, ()) for text in texts]
        parts[-1:] = [
            (texts[-1], own) if i == 0 else ("", own) for i, own in enumerate(lists or [()])
        ]
        for i, (markup, relations) in enumerate(parts, start=1):
            yield Article(doc, markup, relations, i, len(parts))


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
