"""Words per second as ratios to the encoder alone, in one process, both timed one after the other."""

from __future__ import annotations

import gc
import os
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, List, Optional, Tuple

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_config_from_str, minibatch
from thinc.api import fix_random_seed
from tqdm import tqdm

from spacy_spanner import use_fastest_ops
from spacy_spanner.training_config import join_config

from .data import DATASETS, corpus, read_docs
from .peak import peak_memory
from .systems import LEARN_RATES, make_config
from .timed import ALONE, KINDS, TIMED

WARM_UP_STEPS, WARM_UP_BATCH = 150, 8
BATCH = 32  # sentences of an update

Timings = Dict[str, Dict[str, List[float]]]  # ratios by kind and system, one for each round


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
    """Every kind of timing of every system, and the memory of a long document."""
    torch.set_num_threads(threads)
    use_fastest_ops()
    lang = DATASETS[dataset].lang
    docs = [doc for doc in read_docs(corpus(dataset, "dev", data), lang) if len(doc)][:sentences]
    make: Dict[str, Any] = {ALONE: listener_config(encoder, lang, transformer)}
    for system in systems:
        make[system] = make_config(
            TIMED[system], encoder, lang=lang, nested=True, transformer=transformer
        )
    pipelines = {
        name: prepared(config, docs, LEARN_RATES[encoder][0])
        for name, config in tqdm(make.items(), "warm-up")
    }
    found = {name: spans_found(nlp, docs) for name, (nlp, _) in pipelines.items()}
    timings = timed_rounds(pipelines, docs, KINDS[encoder], rounds)
    seconds = median(predict_seconds(pipelines[ALONE][0], docs) for _ in range(5))
    long_text, _ = long_documents(docs)
    with TemporaryDirectory() as folder:
        memory = peak_memory({n: nlp for n, (nlp, _) in pipelines.items()}, long_text[0], folder)
    return {
        "encoder": encoder,
        "dataset": dataset,
        "threads": threads,
        "rounds": rounds,
        "sentences": len(docs),
        "words_per_second": round(sum(map(len, docs)) / seconds),
        "spans_per_gold": found,
        **{kind: medians(own) for kind, own in timings.items()},
        "memory": memory,
    }


def timed_rounds(
    pipelines: Dict[str, Tuple[Language, Any]], docs: List[Doc], kinds: Dict[str, int], rounds: int
) -> Timings:
    """Ratios to the encoder alone, and for "long" of documents of 500 tokens to a long one.

    kinds: What to time, and how often in a round."""
    timings: Timings = defaultdict(lambda: defaultdict(list))
    long_text, short_texts = long_documents(docs)
    listener, listener_optimizer = pipelines[ALONE]
    for _ in tqdm(range(rounds), "rounds"):
        for name, (nlp, optimizer) in pipelines.items():
            pairs = {
                "predict": (
                    partial(predict_seconds, listener, docs),
                    partial(predict_seconds, nlp, docs),
                ),
                "train": (
                    partial(train_seconds, listener, listener_optimizer, docs),
                    partial(train_seconds, nlp, optimizer, docs),
                ),
                "long": (
                    partial(predict_seconds, nlp, short_texts),
                    partial(predict_seconds, nlp, long_text),
                ),
            }
            for kind, times in kinds.items():
                timings[kind][name] += [time_ratio(*pairs[kind]) for _ in range(times)]
    return timings


def time_ratio(base: Callable[[], float], other: Callable[[], float]) -> float:
    """Seconds of one over seconds of the other, right after one another, so that what else the
    machine does meets both; and in both orders, as the second finds memory ready."""
    first, second, third, fourth = base(), other(), other(), base()
    return (first + fourth) / (second + third)


def medians(timings: Dict[str, List[float]]) -> Dict[str, float]:
    return {name: round(median(ratios), 3) for name, ratios in timings.items()}


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


def prepared(config: Any, docs: List[Doc], learn_rate: float) -> Tuple[Language, Any]:
    """The pipeline after a short training, so that it finds about what there is."""
    from . import listener  # noqa: F401  (registers the factory)

    fix_random_seed(0)
    config["training"]["optimizer"]["learn_rate"] = learn_rate  # schedules are not stepped here
    nlp = spacy.util.load_model_from_config(load_config_from_str(config.to_str()), auto_fill=True)
    examples = [example(nlp, doc) for doc in docs]
    optimizer = nlp.initialize(lambda: examples)
    warm_up(nlp, examples, optimizer)
    return nlp, optimizer


def warm_up(nlp: Language, examples: List[Example], optimizer: Any) -> None:
    """Updates before timing: an untrained head writes spans that a trained one does not. The vectors
    of a transformer, which stays as it is, are computed once."""
    *_, (_, head) = nlp.pipeline
    encoder = nlp.get_pipe(nlp.pipe_names[0])
    is_transformer = "transformer" in nlp.pipe_names or encoder.model.name == "HuggingFaceEncoder"
    if is_transformer:
        for _ in encoder.pipe(eg.predicted for eg in examples):
            pass
    for step in range(WARM_UP_STEPS):
        places = range(WARM_UP_BATCH * step, WARM_UP_BATCH * (step + 1))
        batch = [examples[place % len(examples)] for place in places]
        if is_transformer:
            head.update(batch, sgd=optimizer)
        else:
            nlp.update(batch, sgd=optimizer)


def example(nlp: Language, doc: Doc) -> Example:
    words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
    reference = Doc(nlp.vocab, words=words, spaces=spaces)
    spans = [Span(reference, s.start, s.end, label=s.label_) for s in doc.spans["sc"]]
    reference.spans["sc"] = spans
    ents = [Span(reference, e.start, e.end, label=e.label_) for e in doc.ents]
    reference.set_ents(ents, default="outside")
    return Example(Doc(nlp.vocab, words=words, spaces=spaces), reference)


def copies(nlp: Language, docs: List[Doc]) -> List[Doc]:
    return [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in docs]


def spans_found(nlp: Language, docs: List[Doc]) -> float:
    """Spans or entities written for each gold span: writing them is a part of what is timed."""
    found = list(nlp.pipe(copies(nlp, docs)))
    n_found = sum(len(doc.spans.get("sc", doc.ents)) for doc in found)
    return round(n_found / max(1, sum(len(doc.spans["sc"]) for doc in docs)), 2)


def now() -> float:
    """Where all is one thread, the processor's time: what else the machine does counts less then."""
    is_one_thread = torch.get_num_threads() == 1 and os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return time.process_time() if is_one_thread else time.perf_counter()


def predict_seconds(nlp: Language, docs: List[Doc]) -> float:
    fresh = copies(nlp, docs)
    gc.collect()
    before = now()
    for _ in nlp.pipe(fresh):
        pass
    return now() - before


def train_seconds(nlp: Language, optimizer: Any, docs: List[Doc]) -> float:
    examples = [example(nlp, doc) for doc in docs]
    gc.collect()
    before = now()
    for batch in minibatch(examples, BATCH):
        nlp.update(batch, sgd=optimizer)
    return now() - before


def long_documents(docs: List[Doc], *, total: int = 20_000, short: int = 500) -> Tuple[list, list]:
    """The same words as one document without sentences, and as documents of 500 tokens."""
    words = [token.text for doc in docs for token in doc]
    words = (words * (total // len(words) + 1))[:total]
    vocab = docs[0].vocab
    pieces = [Doc(vocab, words=words[i : i + short]) for i in range(0, total, short)]
    return [Doc(vocab, words=words)], pieces
