"""Configs that use spacy-transformers, rewritten to `spacy-spanner.HuggingFaceEncoder.v1`."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from spacy.util import CONFIG_SECTION_ORDER
from thinc.api import Config

from ..errors import Errors
from ..training_config import vector_width

Block = Dict[str, Any]
MODEL = "spacy-transformers.TransformerModel."
LISTENER = "spacy-transformers.TransformerListener."
OWN = "spacy-transformers.Tok2VecTransformer."
NO_ANNOTATION = "spacy-transformers.null_annotation_setter.v1"
POOLINGS = {"reduce_mean.v1": "mean", "reduce_first.v1": "first", "reduce_max.v1": "max"}
# What it may say without a change of meaning.
IGNORED: Dict[str, List[Block]] = {
    "tokenizer_config": [{}, {"use_fast": True}],
    "transformer_config": [{}],
}


class Migrated(NamedTuple):
    config: Config
    notes: List[str]  # what the new config does not say any more
    encoders: List[str]  # components that were transformers
    listeners: List[str]  # components that listen to them


def blocks_of(block: Any, architecture: str) -> Iterator[Block]:
    """All blocks in a block whose architecture begins like this."""
    if isinstance(block, dict):
        if str(block.get("@architectures", "")).startswith(architecture):
            yield block
        for value in block.values():
            yield from blocks_of(value, architecture)


def migrate_config(
    config: Config, *, widths: Optional[Callable[[str, str], int]] = None
) -> Migrated:
    """The same pipeline over the new encoder. Components keep their names, so that what refers to
    them does, too.

    widths: Gives the width of the vectors of a component's transformer, from the names of both;
        otherwise it is read from the transformer's own config.json.
    """
    new = Config(config.copy(), section_order=CONFIG_SECTION_ORDER)
    components: Dict[str, Block] = new.get("components", {})
    encoders = [name for name, pipe in components.items() if is_transformer(pipe)]
    notes: List[str] = []
    width_of = widths or (lambda component, transformer: vector_width(transformer))
    listeners = {
        name: found
        for name, pipe in components.items()
        if (found := list(blocks_of(pipe.get("model"), LISTENER)))
    }
    own = {n: f for n, pipe in components.items() if (f := list(blocks_of(pipe, OWN)))}
    if not encoders and not own:
        raise ValueError(Errors.S087.format(reason="it has no component of spacy-transformers"))
    for name in encoders:
        found = [
            b
            for all_blocks in listeners.values()
            for b in all_blocks
            if listens_to(b, name, encoders)
        ]
        old = components[name]["model"]
        block = encoder_block(old, pooling_of(found), width_of(name, old["name"]), notes, name)
        setter = components[name].get("set_extra_annotations", {}).get("@annotation_setters")
        if setter not in (None, NO_ANNOTATION):
            notes.append(f"the annotation setter '{setter}' of '{name}' was left out")
        components[name] = {"factory": "tok2vec", "model": block}
        for listener in found:
            note_factor(listener, notes, name)
            upstream = listener.get("upstream", "*")
            listener.clear()
            listener.update(
                {
                    "@architectures": "spacy.Tok2VecListener.v1",
                    "width": "${components." + name + ".model.width}",
                    "upstream": upstream,
                }
            )
    for name, found in own.items():
        for old in found:
            note_factor(old, notes, name)
            width = width_of(name, old["name"])
            block = encoder_block(old, pooling_of([old]), width, notes, name)
            old.clear()
            old.update(block)
    return Migrated(new, notes, encoders, sorted({*listeners, *own}))


def is_transformer(pipe: Block) -> bool:
    architecture = str(pipe.get("model", {}).get("@architectures", ""))
    if pipe.get("factory") == "transformer" and not architecture.startswith(MODEL):
        reason = f"its transformer has the architecture '{architecture}', not one of {MODEL}v1-v3"
        raise ValueError(Errors.S087.format(reason=reason))
    return architecture.startswith(MODEL)


def listens_to(listener: Block, name: str, encoders: List[str]) -> bool:
    return listener.get("upstream", "*") == name or (
        listener.get("upstream", "*") == "*" and name == encoders[-1]
    )


def pooling_of(listeners: List[Block]) -> str:
    """All listeners get the same vectors now, so they must want the same pooling."""
    names = {str(listener.get("pooling", {}).get("@layers")) for listener in listeners}
    if len(names) > 1 or not names <= set(POOLINGS):
        reason = (
            f"its listeners pool pieces by {', '.join(sorted(names))}; the new encoder pools for "
            f"all of them, by one of {', '.join(POOLINGS)}"
        )
        raise ValueError(Errors.S087.format(reason=reason))
    return POOLINGS[names.pop()] if names else "mean"


def note_factor(listener: Block, notes: List[str], name: str) -> None:
    factor = listener.get("grad_factor", 1.0)
    if factor != 1.0:
        notes.append(
            f"grad_factor = {factor} of a listener of '{name}' was left out; `learn_rate_scale` and "
            "`frozen` of the encoder come near it"
        )


def note_changes(notes: List[str]) -> List[str]:
    """The notes on what matters in prediction, too."""
    return [note for note in notes if not note.startswith("grad_factor")]


def encoder_block(old: Block, pooling: str, width: int, notes: List[str], name: str) -> Block:
    for setting, harmless in IGNORED.items():
        if old.get(setting, {}) not in harmless:
            notes.append(f"{setting} = {old[setting]} of '{name}' was left out")
    return {
        "@architectures": "spacy-spanner.HuggingFaceEncoder.v1",
        "name": old["name"],
        "width": width,
        **windows(old.get("get_spans", {})),
        "overlap": "spacy-transformers",
        "pooling": pooling,
        "mixed_precision": "fp16" if old.get("mixed_precision") else "none",
    }


def windows(getter: Block) -> Block:
    name = getter.get("@span_getters")
    if name == "spacy-transformers.strided_spans.v1":
        return {"window": getter["window"], "stride": getter["stride"]}
    if name == "spacy-transformers.sent_spans.v1":
        return {"split": "sentences", "window": None}
    if name == "spacy-transformers.doc_spans.v1":
        return {"window": None}
    reason = f"the span getter '{name}' has no counterpart"
    raise ValueError(Errors.S087.format(reason=reason))
