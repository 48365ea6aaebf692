"""The factories. Imported whenever a pipeline is made, so nothing here imports a model.

The settings of a factory, with their types and defaults, are those of its component's `__init__`.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Callable, Dict, List, Type

from spacy.language import Language
from thinc.api import Config, Model

from .base import TablePipe
from .component import SpanTablePipe
from .settings import settings_of

SYSTEMS = Path(__file__).parent.parent / "configs" / "systems"

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

SPANS_WEIGHTS = {"spans_sc_f": 1.0, "spans_sc_p": 0.0, "spans_sc_r": 0.0, "spans_sc_per_type": None}
ENTS_WEIGHTS = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}


def register(
    factory: str,
    pipe: Type[TablePipe],
    *,
    architecture: str,
    scorer: str,
    assigns: List[str],
    weights: Dict[str, Any],
    **changes: Any,
) -> Callable[..., TablePipe]:
    """Register the factory of a component. `changes` are defaults that differ from those of its
    `__init__`."""
    settings = list(settings_of(pipe).values())
    kind = Parameter.POSITIONAL_OR_KEYWORD
    given = {"nlp": Language, "name": str, "model": Model}
    first = [Parameter(name, kind, annotation=hint) for name, hint in given.items()]

    def make(nlp: Language, name: str, model: Model, **values: Any) -> TablePipe:
        return pipe(nlp.vocab, model, name, **values)

    # spaCy validates a config block by this signature and fills in the default config.
    no_defaults = [p.replace(default=Parameter.empty) for p in settings]
    make.__annotations__ = {p.name: p.annotation for p in [*first, *settings]}
    vars(make)["__signature__"] = Signature([*first, *no_defaults], return_annotation=pipe)
    defaults: Dict[str, Any] = {
        p.name: list(p.default) if isinstance(p.default, tuple) else p.default for p in settings
    }  # a config file holds lists
    defaults["model"] = {"@architectures": architecture, "tok2vec": dict(TOK2VEC)}
    defaults["scorer"] = {"@scorers": scorer}
    return Language.factory(
        factory,
        assigns=assigns,
        default_config={**defaults, **changes},
        default_score_weights=weights,
        func=make,
    )


def entity_factory(
    factory: str, architecture: str, *, output: str = "spans", **changes: Any
) -> Callable[..., TablePipe]:
    """Register a factory of the entity component for an architecture."""
    ents = ["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"]
    return register(
        factory,
        SpanTablePipe,
        architecture=architecture,
        scorer="spacy-spanner.span_table_scorer.v1",
        assigns=["doc.spans"] if output == "spans" else ents,
        weights=SPANS_WEIGHTS if output == "spans" else ENTS_WEIGHTS,
        output=output,
        **changes,
    )


def __getattr__(name: str) -> Callable[..., TablePipe]:
    """`make_<system>`, as entry points name it, from the config file of the system: its architecture,
    and defaults of the factory that differ from the component's."""
    system = name.removeprefix("make_")
    path = SYSTEMS / f"{system}.cfg"
    if system == name or not path.exists():
        raise AttributeError(name)
    overlay = Config().from_disk(path, interpolate=False)
    architecture = overlay["component"]["model"]["@architectures"]
    # Systems of spaCy have a config here, too, and those that are another form of a factory.
    if not architecture.startswith("spacy-spanner.") or "overlay" in overlay:
        raise AttributeError(name)
    globals()[name] = entity_factory(system, architecture, **overlay.get("defaults", {}))
    return globals()[name]
