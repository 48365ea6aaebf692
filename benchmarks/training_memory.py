"""Resident memory of a training, epoch by epoch: it must not grow after the first ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import torch
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches
from spacy.util import load_config_from_str, registry, resolve_dot_names

from spacy_spanner import use_fastest_ops

from .accuracy import Run, training_config
from .data import DATASETS, corpus, read_docs, stats_of
from .production import resident_mb
from .tables import Record, table

TEXT = """## Memory of training

Resident memory in MB of a process at the end of each epoch, in brackets the most within it, with the
heap of the system as it is (no environment variables). Batches are those of the config. The memory of
Hire-NER answers from the second epoch on.
"""


def measure(system: str, *, dataset: str, encoder: str, epochs: int, data: Path) -> Dict[str, Any]:
    """Train for some epochs, without evaluation; gives the memory at the end of each epoch and its most."""
    torch.set_num_threads(1)
    use_fastest_ops()
    paths = {part: corpus(dataset, part, data) for part in ("train", "dev")}
    docs = read_docs(paths["train"], DATASETS[dataset].lang)
    run = Run(dataset, encoder, system, learn_rate=0.002, seed=0, steps=1000)
    words = sum(map(len, docs))
    config = training_config(run, paths, stats_of(docs), words, transformer=None)
    nlp = init_nlp(load_config_from_str(config.to_str()))
    filled = nlp.config.interpolate()
    settings = registry.resolve(filled["training"], schema=ConfigSchemaTraining)
    (read,) = resolve_dot_names(filled, [settings["train_corpus"]])
    optimizer = settings["optimizer"]
    seen: Dict[int, List[float]] = {}
    for epoch, batch in create_train_batches(nlp, read, settings["batcher"], epochs):
        nlp.update(batch, drop=settings["dropout"], sgd=optimizer)
        optimizer.step_schedules()
        seen.setdefault(epoch, []).append(resident_mb())
    return {
        "system": system,
        "dataset": dataset,
        "encoder": encoder,
        "updates": sum(map(len, seen.values())),
        "last": [round(values[-1]) for values in seen.values()],
        "most": [round(max(values)) for values in seen.values()],
    }


def training_memory_section(records: List[Record]) -> str:
    """The last measurement of each system."""
    if not records:
        return ""
    last = {(record["dataset"], record["encoder"], record["system"]): record for record in records}
    epochs = max(len(record["last"]) for record in last.values())
    head = ["corpus, encoder", "system", "updates", *(f"epoch {n + 1}" for n in range(epochs))]
    rows = []
    for (dataset, encoder, system), record in last.items():
        cells = [f"{a:,} ({b:,})" for a, b in zip(record["last"], record["most"], strict=True)]
        cells += [""] * (epochs - len(cells))
        rows.append([f"{dataset}, `{encoder}`", f"`{system}`", f"{record['updates']:,}", *cells])
    commits = ", ".join(dict.fromkeys(record["commit"] for record in last.values()))
    command = 'make bench BENCH="training-memory --data DATA"'
    return "\n".join([TEXT, *table([*head], rows), "", f"`{command}`; commit {commits}.", ""])
