"""Warnings about a corpus, from its counts, each with what to do."""

from __future__ import annotations

from collections import Counter
from typing import Collection, Iterator, List, Optional

from .stats import HUGE, Settings, Stats, median

RARE = 10  # spans of a label in training data
ODD_SHARE = 0.01  # share of spans from which odd edges are worth a word
LONGER = 3  # times the median length of training documents from which longer texts are named
N_NAMED = 8  # names listed before "and more"


def advice(
    train: Stats,
    settings: Settings,
    dev: Optional[Stats] = None,
    texts: Optional[Counter[int]] = None,
) -> List[str]:
    """Every warning that applies, the most serious first.

    texts: Lengths of texts that the model will be used on, in tokens.
    """
    found = [*about_gold(train, settings), *about_limits(train, settings)]
    if settings.relations:
        parts = {"train": train} if dev is None else {"train": train, "dev": dev}
        found.extend(text for part in parts.items() for text in about_relations(*part))
    if texts is not None:
        found.extend(about_texts(train, texts))
    found.extend(about_labels(train))
    if dev is not None:
        found.extend(about_dev(train, dev))
    found.extend(about_spans(train))
    found.extend(about_docs(train))
    return found


def about_gold(train: Stats, settings: Settings) -> Iterator[str]:
    where = "`doc.ents`" if settings.output == "ents" else f"spans_key '{settings.spans_key}'"
    if not train.spans:
        yield (
            "There are no spans: every document is annotated as having none. A model "
            "trained on this predicts nothing. Check the conversion of the corpus."
        )
    if train.docs_unannotated:
        yield (
            f"{train.docs_unannotated} of {train.docs} documents carry no annotation in {where}. "
            "They are not used for training (unannotated does not mean empty). If they hold no "
            "entities, store an empty span group in them."
        )
    if settings.output == "ents" and train.keys:
        keys = ", ".join(sorted(train.keys))
        yield (
            f"The corpus also has span groups ({keys}), which may hold nested spans. "
            'To learn them set `output = "spans"` or "both".'
        )


def about_relations(part: str, stats: Stats) -> Iterator[str]:
    without = stats.docs - stats.docs_linked
    if not stats.relations:
        yield (
            f"There are no relations in {part}. Set `doc._.relations`, and store documents in a "
            "`DocBin(store_user_data=True)`."
        )
    elif without:
        yield (
            f"{without} of {stats.docs} documents of {part} carry no annotation of relations: they teach "
            "entities alone, and are not scored. If they hold no relations, set `doc._.relations = []`."
        )


def about_limits(train: Stats, settings: Settings) -> Iterator[str]:
    if train.too_wide:
        yield (
            f"{share(train.too_wide, train.spans)} spans are wider than max_width = "
            f"{settings.max_width} and can never be found. Width {train.width_for(99)} holds 99 % "
            f"of them, {train.width_for(100)} all. Set max_width accordingly."
        )
    elif train.spans and (settings.max_width or 0) > 2 * train.width_for(100):
        yield (
            f"max_width = {settings.max_width} is far above the widest span "
            f"({train.width_for(100)} tokens). A smaller one costs less time and memory."
        )
    if train.cut:
        yield (
            f"{share(train.cut, train.spans)} spans are cut by the window of {settings.window} "
            "tokens and can never be found. Raise `window` or `overlap`, or put a sentence "
            "splitter (`sentencizer`, `senter`) before the component."
        )


def about_texts(train: Stats, texts: Counter[int]) -> Iterator[str]:
    ours, theirs = median(train.doc_lengths), median(texts)
    if theirs > LONGER * max(ours, 1):
        yield (
            f"The training documents are much shorter than the texts: a median of {ours:,} tokens "
            f"against {theirs:,}. Train on joined documents, too: "
            '`[corpora.train] @readers = "spacy-spanner.JoinedCorpus.v1"`, as in every config of '
            "`spacy spanner config`. Then look at F by length of document with `analyze`."
        )


def about_labels(train: Stats) -> Iterator[str]:
    rare = [label for label, count in train.labels.items() if count < RARE]
    if rare:
        yield (
            f"Labels with fewer than {RARE} spans, too few to learn or to measure: {names(rare)}. "
            "Annotate more of them, join them with other labels, or leave them out."
        )


def about_dev(train: Stats, dev: Stats) -> Iterator[str]:
    unknown = [label for label in dev.labels if label not in train.labels]
    if unknown:
        lost = sum(dev.labels[label] for label in unknown)
        yield (
            f"Labels only in dev: {names(unknown)} ({lost} spans). They cannot be learned and "
            "count as missed. Split the corpus differently, or check the spelling of the labels."
        )
    unseen = [label for label in train.labels if label not in dev.labels]
    if unseen:
        yield (
            f"Labels only in train: {names(unseen)}. The dev score says nothing about them. Add "
            "examples to dev."
        )
    shared = train.texts & dev.texts
    if shared:
        yield (
            f"Texts of dev that are in train too, as exact duplicates: {len(shared)}, such as "
            f"{min(shared, key=len)[:60]!r}. The dev score will look better than it is. Remove "
            "them from one side."
        )
    shared_ids = train.doc_ids & dev.doc_ids
    if shared_ids:
        yield (
            f"Documents with parts in train and in dev: {names(shared_ids)}. Parts of one "
            "document repeat its names, so the dev score will look better than it is. Split by "
            "document."
        )
    if dev.docs_unannotated:
        yield (
            f"{dev.docs_unannotated} of {dev.docs} dev documents are not annotated. Leave them "
            "out, for scores are only meaningful over annotated ones."
        )


def about_spans(train: Stats) -> Iterator[str]:
    if train.empty:
        yield (
            f"{train.empty} spans hold no token at all and cannot be learned. Remove them, or fix "
            "the program that wrote them."
        )
    if train.duplicates:
        yield (
            f"{train.duplicates} spans are duplicates (same offsets and label). Training counts them "
            "once, but scorers may not. Remove the copies."
        )
    if train.two_labels:
        yield (
            f"{train.two_labels} times the same tokens have more than one label. Span systems "
            'learn both; with `output = "ents"` only one can be kept. If it is an annotation '
            "error, correct it."
        )
    if train.crossing:
        yield (
            f"{train.crossing} spans cross another (they overlap, neither holding the other). Span "
            "systems can learn them, but they are often annotation errors: look at some with "
            "`spacy spanner render`."
        )
    if train.blank_edges:
        yield (
            f"{train.blank_edges} spans begin or end with white space, which predictions never "
            "do. Trim them in the source and convert again."
        )
    if train.punct_edges > ODD_SHARE * train.spans:
        yield (
            f"{share(train.punct_edges, train.spans)} spans begin or end with punctuation. If the "
            "guideline does not ask for it, trim them: inconsistent boundaries cost exact matches."
        )


def about_docs(train: Stats) -> Iterator[str]:
    if train.docs_huge:
        yield (
            f"{train.docs_huge} documents have more than {HUGE:,} tokens (the longest "
            f"{train.longest_doc:,}). They are processed in windows, but shuffle and batch better "
            "when split into paragraphs."
        )
    if train.docs_empty:
        yield f"{train.docs_empty} documents have no tokens. They do no harm and can be removed."


def share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({100 * part / max(whole, 1):.1f} %)"


def names(items: Collection[str]) -> str:
    shown = sorted(items)[:N_NAMED]
    more = len(items) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
