"""Whether two pipelines say the same of the same texts."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence

from spacy.language import Language
from spacy.tokens import Doc

SAMPLE = [
    "Ada Lind left the University of Torvik in Norway on 3 May 1995.",
    "The Port Merrow Gazette didn't write about Ines Calder's new (and rather odd) company.",
    "",
    "Nobody came to the harbour that night.\n\nIt rained, the lights were out; who would come?",
    "It was said that the ship, which had left in the morning, would never be seen again. " * 12,
]


def annotation(doc: Doc) -> Dict[str, Any]:
    """All that components of spaCy and of ours write, without scores."""
    spans = {
        key: sorted((span.start, span.end, span.label_) for span in group)
        for key, group in doc.spans.items()
    }
    return {
        "entities": [(ent.start, ent.end, ent.label_) for ent in doc.ents],
        "spans": {key: group for key, group in spans.items() if group},
        "tags": [token.tag_ for token in doc],
        "parts of speech": [token.pos_ for token in doc],
        "lemmas": [token.lemma_ for token in doc],
        "dependencies": [(token.head.i, token.dep_) for token in doc],
        "morphology": [str(token.morph) for token in doc],
        "categories": {label: round(score, 2) for label, score in doc.cats.items()},
    }


def differences(old: Iterable[Doc], new: Iterable[Doc]) -> List[str]:
    """The differences, for each document that has any."""
    found = []
    for one, two in zip(old, new, strict=True):
        left, right = annotation(one), annotation(two)
        kinds = [kind for kind in left if left[kind] != right[kind]]
        if kinds:
            found.append(f"{one.text[:60]!r}: {', '.join(kinds)}")
    return found


def blank_copies(nlp: Language, docs: Sequence[Doc]) -> List[Doc]:
    """The same tokens without annotation."""
    return [
        Doc(nlp.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
        for doc in docs
    ]
