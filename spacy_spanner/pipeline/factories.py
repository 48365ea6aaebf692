"""The factories. Imported whenever a pipeline is made, so nothing here imports a model."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from spacy.language import Language
from thinc.api import Model

from .component import SpanTablePipe

# A small encoder of its own, so that `nlp.add_pipe(factory)` works bare.
TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 96,
    "depth": 4,
    "embed_size": 2000,
    "window_size": 1,
    "maxout_pieces": 3,
    "subword_features": True,
}

SETTINGS = {
    "spans_key": "sc",
    "ents_key": "ents",
    "threshold": None,
    "temperature": 1.0,
    "overlaps": "best",
    "window": 256,
    "overlap": 64,
    "pack_sentences": True,
    "join_training": 0.5,
    "width_factor": 2.0,
    "max_cells": 4_000_000,
    "scorer": {"@scorers": "spacy-spanner.span_table_scorer.v1"},
}

SPANS_WEIGHTS = {"spans_sc_f": 1.0, "spans_sc_p": 0.0, "spans_sc_r": 0.0, "spans_sc_per_type": None}
ENTS_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}


def entity_factory(
    factory: str, architecture: str, *, output: str, **changes: Any
) -> Callable[..., SpanTablePipe]:
    """Register a factory. `changes` are settings that differ from the common ones."""
    model = {"@architectures": f"spacy-spanner.{architecture}.v1", "tok2vec": dict(TOK2VEC)}
    assigns = {
        "spans": ["doc.spans"],
        "ents": ["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    }

    # The hints are simple because spaCy validates config blocks strictly.
    def make(
        nlp: Language,
        name: str,
        model: Model,
        output: str,
        spans_key: str,
        ents_key: str,
        threshold: Optional[float],
        temperature: float,
        overlaps: str,
        window: int,
        overlap: int,
        pack_sentences: bool,
        join_training: float,
        width_factor: Optional[float],
        max_cells: int,
        scorer: Optional[Callable],
    ) -> SpanTablePipe:
        return SpanTablePipe(
            nlp.vocab,
            model,
            name,
            output=output,
            spans_key=spans_key,
            ents_key=ents_key,
            threshold=threshold,
            temperature=temperature,
            overlaps=overlaps,
            window=window,
            overlap=overlap,
            pack_sentences=pack_sentences,
            join_training=join_training,
            width_factor=width_factor,
            max_cells=max_cells,
            scorer=scorer,
        )

    defaults: Dict[str, Any] = {"model": model, "output": output, **SETTINGS, **changes}
    assigned: List[str] = assigns[output]
    return Language.factory(
        factory,
        assigns=assigned,
        default_config=defaults,
        default_score_weights=SPANS_WEIGHTS if output == "spans" else ENTS_WEIGHTS,
        func=make,
    )


make_global_pointer = entity_factory("global_pointer", "GlobalPointer", output="spans")
make_efficient_global_pointer = entity_factory(
    "efficient_global_pointer", "EfficientGlobalPointer", output="spans"
)
make_locate_and_label = entity_factory("locate_and_label", "LocateAndLabel", output="spans")
make_modularized_interaction = entity_factory(
    "modularized_interaction", "ModularizedInteraction", output="ents"
)
make_seq_ner = entity_factory("seq_ner", "SeqNER", output="ents")
make_span_ner = entity_factory("span_ner", "SpanNER", output="ents")
make_bundled_ner = entity_factory("bundled_ner", "BundledNER", output="ents")
# Its sentence vector and its memory are of sentences, so it takes them one by one.
make_hierarchical_ner = entity_factory(
    "hierarchical_ner", "HierarchicalNER", output="ents", pack_sentences=False
)
