"""`python -m benchmarks.encoder_worker SETTINGS`: one encoder in one environment.

Reads tasks from standard input, one JSON object a line, and answers each with one line. So two
environments, which cannot be one process, are measured in turn on the same machine in the same state.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, List

import numpy
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, offsets_to_biluo_tags
from spacy.util import load_config_from_str, minibatch
from thinc.api import fix_random_seed

from spacy_spanner import use_fastest_ops
from spacy_spanner.timing.worker import peak_mb
from spacy_spanner.training_config import join_config

from .systems import make_config

RATE = 1e-4


class Worker:
    """encoder: "huggingface" or "transformer" (spacy-transformers)."""

    def __init__(self, *, encoder: str, transformer: str, data: str, batch: int):
        torch.set_num_threads(1)
        use_fastest_ops()
        self.encoder, self.transformer, self.data = encoder, transformer, Path(data)
        self.batch = batch

    def pipeline(self, texts: List[Dict[str, Any]]) -> Any:
        """Encoder and Global Pointer, initialized."""
        fix_random_seed(0)
        config = join_config("global_pointer", self.encoder, transformer=self.transformer)
        config["training"]["optimizer"]["learn_rate"] = RATE
        nlp = spacy.util.load_model_from_config(
            load_config_from_str(config.to_str()), auto_fill=True
        )
        return nlp, nlp.initialize(lambda: examples(nlp, texts))

    def read(self, name: str, n_sentences: int) -> List[Dict[str, Any]]:
        lines = (self.data / name).read_text(encoding="utf8").splitlines()[:n_sentences]
        return [json.loads(line) for line in lines]

    def versions(self) -> Dict[str, str]:
        names = ["transformers", "tokenizers", "torch", "spacy", "thinc"]
        if self.encoder == "transformer":
            names.append("spacy-transformers")
        return {name: version(name) for name in names}

    def start(self, dataset: str, sentences: int, long_words: int) -> Dict[str, Any]:
        self.texts = self.read(f"{dataset}/dev.jsonl", sentences)
        self.nlp, self.optimizer = self.pipeline(self.texts)
        words = [word for text in self.texts for word in text["tokens"]]
        self.long = [{"tokens": (words * (1 + long_words // len(words)))[:long_words]}]
        self.predict()
        return {"words": len(words), "versions": self.versions()}

    def predict(self) -> float:
        return self.timed(self.texts)

    def predict_long(self) -> float:
        return self.timed(self.long)

    def timed(self, texts: List[Dict[str, Any]]) -> float:
        docs = [Doc(self.nlp.vocab, words=text["tokens"]) for text in texts]
        start = time.process_time()
        for _ in self.nlp.pipe(docs):
            pass
        return time.process_time() - start

    def train(self, steps: int) -> float:
        made = examples(self.nlp, self.texts)
        batches = list(minibatch(made * (1 + steps * self.batch // len(made)), self.batch))[:steps]
        start = time.process_time()
        for batch in batches:
            self.nlp.update(batch, sgd=self.optimizer)
        return time.process_time() - start

    def vectors(self, path: str) -> None:
        """Of every token, pooled by the mean."""
        docs = [Doc(self.nlp.vocab, words=text["tokens"]) for text in self.texts]
        tok2vec = self.nlp.get_pipe("global_pointer").model.get_ref("tok2vec")  # type: ignore
        first = self.nlp.get_pipe(self.nlp.pipe_names[0])
        found = [v for doc in docs for v in tok2vec.predict([first(doc)])]  # type: ignore
        numpy.save(path, numpy.concatenate(found))

    def peak(self) -> float:
        return peak_mb()

    def accuracy(self, dataset: str, steps: int, seed: int) -> Dict[str, float]:
        """spaCy's own `ner`, and a `tagger` that learns the same entities as BILUO tags."""
        fix_random_seed(seed)
        train, dev = (self.read(f"{dataset}/{part}.jsonl", 10**6) for part in ("train", "dev"))
        config = make_config(
            "ner", self.encoder, lang="en", nested=False, transformer=self.transformer
        )
        config["training"]["optimizer"]["learn_rate"] = RATE
        tok2vec = config["components"]["ner"]["model"]["tok2vec"]
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
        config["components"]["tagger"] = {"factory": "tagger", "model": model}
        config["nlp"]["pipeline"].append("tagger")
        nlp = spacy.util.load_model_from_config(
            load_config_from_str(config.to_str()), auto_fill=True
        )
        made = examples(nlp, train)
        optimizer = nlp.initialize(lambda: made)
        order = numpy.random.default_rng(seed)
        for _ in range(steps):
            rows = order.choice(len(made), self.batch, replace=False)
            nlp.update([made[row] for row in rows], sgd=optimizer)
        scores = nlp.evaluate(examples(nlp, dev))
        return {"ents_f": scores["ents_f"], "tag_acc": scores["tag_acc"]}


def examples(nlp: Language, texts: List[Dict[str, Any]]) -> List[Example]:
    made = []
    for text in texts:
        reference = Doc(nlp.vocab, words=text["tokens"])
        spans = [spacy.tokens.Span(reference, a, b, label=c) for a, b, c in text["entities"]]
        reference.spans["sc"] = spans
        outer = spacy.util.filter_spans(spans)
        reference.set_ents(outer, default="outside")
        offsets = [(e.start_char, e.end_char, e.label_) for e in outer]
        for token, tag in zip(reference, offsets_to_biluo_tags(reference, offsets), strict=True):
            token.tag_ = tag
        made.append(Example(Doc(nlp.vocab, words=text["tokens"]), reference))
    return made


def main() -> None:
    worker = Worker(**json.loads(sys.argv[1]))
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    for line in sys.stdin:
        task = json.loads(line)
        answer = getattr(worker, task.pop("task"))(**task)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
