"""A loaded pipeline of spacy-transformers by our encoder, where that changes nothing but the speed."""

from __future__ import annotations

from typing import Any, Iterable, List, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps, get_current_ops

from .check import SAMPLE, blank_copies, differences
from .config import MODEL, NO_ANNOTATION, note_changes
from .pipeline import migrate_loaded

OURS, THEIRS = "spacy-spanner", "spacy-transformers"
TOLERANCE = 1e-4  # of a vector
KNOWN = {"spacy", "spacy_legacy", "spacy_spanner", "spacy_transformers", "thinc"}
LISTENER = "transformer-listener"  # the name of the layer


def fastest_encoder(nlp: Language, texts: Sequence[str] = ()) -> Tuple[Language, str]:
    """A copy of the pipeline over our encoder if that is safe, or the pipeline itself; and which of the
    two it is, with the reason why; "" without a component of spacy-transformers.

    texts: Some of those that are to be read; on them, and on a few sentences of ours, the vectors of
        both are compared.
    """
    encoders = [name for name, pipe in nlp.pipeline if is_transformer(pipe)]
    if not encoders:
        return nlp, ""
    reason = obstacle(nlp, encoders)
    if reason:
        return nlp, f"{THEIRS} ({reason})"
    try:
        new, notes = migrate_loaded(nlp)
    except (ValueError, ImportError) as error:
        return nlp, f"{THEIRS} ({first_line(error)})"
    changes = note_changes(notes)
    if changes:
        return nlp, f"{THEIRS} ({changes[0]})"
    try:
        distance, different = compare(nlp, new, [*SAMPLE, *texts])
    except Exception as error:  # what these texts do to components is reported when they are read
        return nlp, f"{THEIRS} (comparing vectors failed: {first_line(error)})"
    if distance > TOLERANCE or different:
        return nlp, f"{THEIRS} (vectors differ by {distance:.1e})"
    return new, f"{OURS} (vectors differ by {distance:.0e} at most)"


def is_transformer(pipe: Any) -> bool:
    """Is it the component of spacy-transformers?"""
    return type(pipe).__module__.split(".")[0] == "spacy_transformers"


def obstacle(nlp: Language, encoders: List[str]) -> str:
    """Why the component of spacy-transformers has to stay; "" if it need not."""
    if not isinstance(get_current_ops(), NumpyOps):
        return "on a GPU it stays"
    if len(encoders) > 1 or any(isinstance(pipe, Tok2Vec) for _, pipe in nlp.pipeline):
        # Listeners of spaCy find their vectors in `doc.tensor`, which holds those of one encoder.
        return "the pipeline has a second encoder"
    block = nlp.get_pipe_config(encoders[0])
    setter = block.get("set_extra_annotations", {}).get("@annotation_setters", NO_ANNOTATION)
    if setter != NO_ANNOTATION or not block["model"]["@architectures"].startswith(MODEL):
        return f"component '{encoders[0]}' is not the usual one"
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        nodes = list(model.walk()) if isinstance(model, Model) else []
        parts = [type(pipe), *(node._func for node in nodes)]
        if not all(module_of(part) in KNOWN for part in parts):
            return f"component '{name}' may read `doc._.trf_data`"
    return ""


def module_of(part: Any) -> str:
    """The package of a class or function, also of one with arguments."""
    return getattr(getattr(part, "func", part), "__module__", "").split(".")[0]


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def compare(old: Language, new: Language, texts: Sequence[str]) -> Tuple[float, List[str]]:
    """The largest difference of a number in a vector that a listener gives, and the documents that are
    annotated differently."""
    docs = list(old.pipe(texts))
    others = list(new.pipe(blank_copies(new, docs)))
    different = differences(docs[: len(SAMPLE)], others[: len(SAMPLE)])
    largest = 0.0
    for name in old.pipe_names:
        pairs = zip(old_listeners(old, name), new_listeners(new, name), strict=True)
        for left, right in pairs:
            for one, two in zip(
                left.predict(filled(docs)), right.predict(filled(others)), strict=True
            ):
                largest = max(largest, float(numpy.abs(one - two).max()))
    return largest, different


def filled(docs: List[Doc]) -> List[Doc]:
    """Those with tokens: others have vectors of no width."""
    return [doc for doc in docs if len(doc)]


def nodes_of(nlp: Language, name: str) -> Iterable[Model]:
    model = getattr(nlp.get_pipe(name), "model", None)
    return model.walk() if isinstance(model, Model) else ()


def old_listeners(nlp: Language, name: str) -> List[Model]:
    """The layers of a component that give it the vectors of spacy-transformers."""
    return [node for node in nodes_of(nlp, name) if node.layers and node.layers[0].name == LISTENER]


def new_listeners(nlp: Language, name: str) -> List[Model]:
    """The same with our encoder."""
    return [node for node in nodes_of(nlp, name) if isinstance(node, Tok2VecListener)]
