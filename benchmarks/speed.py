"""Words per second as ratios to the encoder alone, in one process, round by round."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_config_from_str, minibatch
from thinc.api import fix_random_seed
from tqdm import tqdm

from spacy_spanner.training_config import join_config

from .data import DATASETS, corpus, read_docs, width_of
from .systems import SYSTEMS, make_config

ALONE = "encoder alone"
WARM_UP_STEPS = (
    30  # updates before timing: an untrained head writes spans that a trained one does not
)


def measure(
    systems: List[str],
    *,
    encoder: str,
    dataset: str,
    rounds: int,
    sentences: int,
    threads: int,
    data: Path,
    transformer: Optional[str],
) -> Dict[str, Any]:
    torch.set_num_threads(threads)
    lang = DATASETS[dataset].lang
    docs = [doc for doc in read_docs(corpus(dataset, "dev", data), lang) if len(doc)][:sentences]
    width = width_of(docs)
    make: Dict[str, Any] = {ALONE: listener_config(encoder, lang, transformer)}
    for system in systems:
        if encoder in SYSTEMS[system].encoders:
            make[system] = make_config(
                system, encoder, lang=lang, nested=True, max_width=width, transformer=transformer
            )
    pipelines = {name: prepared(config, docs) for name, config in tqdm(make.items(), "warm-up")}
    times: Dict[str, Dict[str, List[float]]] = {
        kind: {name: [] for name in pipelines} for kind in ("predict", "train", "long", "short")
    }
    long_text, short_texts = long_documents(docs)
    for _ in tqdm(range(rounds), "rounds"):
        for name, (nlp, optimizer) in pipelines.items():
            times["predict"][name].append(predict_seconds(nlp, docs))
            times["train"][name].append(train_seconds(nlp, optimizer, docs))
            times["long"][name].append(predict_seconds(nlp, long_text))
            times["short"][name].append(predict_seconds(nlp, short_texts))
    return {
        "encoder": encoder,
        "dataset": dataset,
        "threads": threads,
        "rounds": rounds,
        "sentences": len(docs),
        "max_width": width,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "words_per_second": round(sum(map(len, docs)) / median(times["predict"][ALONE])),
        "predict": ratios(times["predict"], times["predict"][ALONE]),
        "train": ratios(times["train"], times["train"][ALONE]),
        "long": {
            name: round(median(a / b for a, b in zip(times["short"][name], times["long"][name])), 3)
            for name in pipelines
        },
    }


def ratios(times: Dict[str, List[float]], base: List[float]) -> Dict[str, float]:
    """Speed over the encoder's in the same round; the median over rounds."""
    return {
        name: round(median(b / t for b, t in zip(base, own, strict=True)), 3)
        for name, own in times.items()
    }


def listener_config(encoder: str, lang: str, transformer: Optional[str]) -> Any:
    """The encoder with nothing but a listener above it."""
    config = join_config("global_pointer", encoder, lang=lang, transformer=transformer)
    head = config["components"].pop("global_pointer")
    config["components"]["alone"] = {
        "factory": "benchmark_listener",
        "model": head["model"]["tok2vec"],
    }
    config["nlp"]["pipeline"] = list(config["components"])
    config["training"]["score_weights"] = {}
    return config


def prepared(config: Any, docs: List[Doc]) -> Tuple[Language, Any]:
    """The pipeline after a short training, so that it finds about what there is."""
    from . import listener  # noqa: F401  (registers the factory)

    fix_random_seed(0)
    nlp = spacy.util.load_model_from_config(load_config_from_str(config.to_str()), auto_fill=True)
    examples = [example(nlp, doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    for batch, _ in zip(minibatch(examples * 10, 32), range(WARM_UP_STEPS)):
        nlp.update(batch, sgd=optimizer)
    return nlp, optimizer


def example(nlp: Language, doc: Doc) -> Example:
    words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
    reference = Doc(nlp.vocab, words=words, spaces=spaces)
    spans = [Span(reference, s.start, s.end, label=s.label_) for s in doc.spans["sc"]]
    reference.spans["sc"] = spans
    ents = [Span(reference, e.start, e.end, label=e.label_) for e in doc.ents]
    reference.set_ents(ents, default="outside")
    return Example(Doc(nlp.vocab, words=words, spaces=spaces), reference)


def predict_seconds(nlp: Language, docs: List[Doc]) -> float:
    fresh = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in docs]
    before = time.perf_counter()
    for _ in nlp.pipe(fresh):
        pass
    return time.perf_counter() - before


def train_seconds(nlp: Language, optimizer: Any, docs: List[Doc]) -> float:
    examples = [example(nlp, doc) for doc in docs]
    before = time.perf_counter()
    for batch in minibatch(examples, 32):
        nlp.update(batch, sgd=False)
        for _, pipe in nlp.pipeline:
            pipe.finish_update(optimizer)
    return time.perf_counter() - before


def long_documents(docs: List[Doc], *, total: int = 20_000, short: int = 500) -> Tuple[list, list]:
    """The same words as one document without sentences, and as documents of 500 tokens."""
    words = [token.text for doc in docs for token in doc]
    words = (words * (total // len(words) + 1))[:total]
    vocab = docs[0].vocab
    pieces = [Doc(vocab, words=words[i : i + short]) for i in range(0, total, short)]
    return [Doc(vocab, words=words)], pieces
