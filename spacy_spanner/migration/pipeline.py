"""Trained pipelines of spacy-transformers with the weights they have, over the new encoder.

spacy-transformers itself is not needed: its files are read, and its listeners are stood in for by
layers of the same shape while the weights of the heads above them are loaded.
"""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import safetensors.torch
import srsly
import torch
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.util import load_model_from_config
from thinc.api import Config, Model, chain

from ..encoders.huggingface import set_pretrained
from ..encoders.huggingface_files import Pretrained, load_pretrained
from ..errors import Errors
from .config import OWN, Migrated, blocks_of, migrate_config

PARTS = [
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
]


class MigratedPipeline(NamedTuple):
    nlp: Language
    notes: List[str]


def migrate_pipeline(source: Path) -> MigratedPipeline:
    """The pipeline in this folder over the new encoder; nothing is written."""
    return migrate(
        Config().from_disk(source / "config.cfg", interpolate=False),
        lambda name: (source / name / "model").read_bytes(),
        lambda nlp, encoders: nlp.from_disk(source, exclude=encoders),
    )


def migrate_loaded(nlp: Language) -> MigratedPipeline:
    """A copy of a pipeline in memory over the new encoder. It has its own vocabulary."""
    return migrate(
        nlp.config,
        lambda name: nlp.get_pipe(name).model.to_bytes(),  # type: ignore[attr-defined]
        lambda new, encoders: new.from_bytes(nlp.to_bytes(exclude=encoders), exclude=encoders),
        disabled=nlp.disabled,
    )


def migrate(
    config: Config,
    stored_model: Callable[[str], bytes],
    load: Callable[[Language, List[str]], Any],
    *,
    disabled: Sequence[str] = (),
) -> MigratedPipeline:
    """The pipeline with this config over the new encoder.

    stored_model: The model of a component, as it is stored.
    load: Fills a pipeline, but for the components that are named.
    """
    pipes: Dict[str, Any] = config["components"]
    for name, pipe in pipes.items():
        if any(blocks_of(pipe, OWN)):
            reason = f"component '{name}' has a transformer of its own, not a listener"
            raise ValueError(Errors.S087.format(reason=reason))
    stored: Dict[str, Pretrained] = {}

    def width(component: str, transformer: str) -> int:
        stored[component] = read_transformer(stored_model(component), component)
        settings = json.loads(stored[component].config)
        return int(settings["hidden_size"] if "hidden_size" in settings else settings["dim"])

    migrated = migrate_config(config, widths=width)
    nlp = load_model_from_config(migrated.config, auto_fill=True, disable=disabled)
    with old_shapes(nlp, migrated):
        load(nlp, migrated.encoders)
    for name in migrated.encoders:
        set_pretrained(nlp.get_pipe(name).model, stored[name], name)  # type: ignore[attr-defined]
    nlp._link_components()  # the listeners are back
    return MigratedPipeline(nlp, migrated.notes)


def read_transformer(content: bytes, name: str) -> Pretrained:
    """The transformer that spacy-transformers stored. Its weights are read by torch's reader of
    plain tensors (`weights_only`), which refuses anything else."""
    try:
        shims = [s for node in srsly.msgpack_loads(content)["shims"] for s in node]
        data = srsly.msgpack_loads(shims[0])
        state = torch.load(io.BytesIO(data["state"]), map_location="cpu", weights_only=True)
        files = {file: data["tokenizer"][file] for file in PARTS if file in data["tokenizer"]}
        settings = json.dumps(data["config"], default=str)
    except Exception as err:  # files of many versions, with many ways not to be what was expected
        reason = f"the weights of component '{name}' cannot be read ({err})"
        raise ValueError(Errors.S087.format(reason=reason)) from err
    with TemporaryDirectory() as folder:
        for file, content in files.items():
            (Path(folder) / file).write_bytes(content)
        (Path(folder) / "config.json").write_text(settings, encoding="utf8")
        tensors = {key: value.contiguous().clone() for key, value in state.items()}
        safetensors.torch.save_file(
            tensors, Path(folder) / "model.safetensors", metadata={"format": "pt"}
        )
        return load_pretrained(folder)


def stand_in() -> Model:
    """The shape of a listener of spacy-transformers."""
    listener: Model = Model("transformer-listener", no_forward, dims={"nO": None})
    pooling: Model = Model("pooling", no_forward)
    return chain(listener, Model("trfs2arrays", no_forward, layers=[pooling]))


def no_forward(model: Model, inputs: Any, is_train: bool) -> Any:
    raise NotImplementedError


@contextmanager
def old_shapes(nlp: Language, migrated: Migrated) -> Iterator[None]:
    """Models as they were stored, with a stand-in for each listener."""
    swapped: List[Tuple[Model, Model, Model]] = []
    for name in migrated.listeners:
        model: Model = nlp.get_pipe(name).model  # type: ignore[attr-defined]
        for node in list(model.walk()):
            if isinstance(node, Tok2VecListener):
                other = stand_in()
                model.replace_node(node, other)
                swapped.append((model, node, other))
    try:
        yield
    finally:
        for model, node, other in swapped:
            model.replace_node(other, node)
