"""Corpora as .spacy files, made once from JSON lines in the folder the user names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List

import spacy
from spacy.tokens import Doc, DocBin

from spacy_spanner.corpus.convert import convert
from spacy_spanner.corpus.stats import Settings, Stats, count_doc

CACHE = Path("corpus") / "bench"
TRANSFORMERS = ("transformer", "huggingface")  # by spacy-transformers, and by our encoder

# The BiLSTM encoder without and with static vectors, and its larger form with them.
SMALL = ("lstm", "lstm_vectors", "lstm_large")


@dataclass(frozen=True)
class Budget:
    """What every system of a table may use."""

    steps: int
    eval_frequency: int
    train_limit: int = 0  # sentences; 0 for all
    batch_words: int = 0  # padded words of a batch; 0 for what the config says


@dataclass(frozen=True)
class Dataset:
    lang: str
    nested: bool
    budgets: Dict[str, Budget]  # by encoder; the first is that of the full table
    running_text: bool = False  # also measured on long documents made of its training part

    @property
    def encoder(self) -> str:
        return next(iter(self.budgets))


DATASETS: Dict[str, Dataset] = {
    "demo": Dataset(
        "en",
        True,
        {
            "hash": Budget(600, 100),
            "lstm": Budget(500, 100),
            **dict.fromkeys(TRANSFORMERS, Budget(192, 48, batch_words=500)),
        },
    ),
    "conll04": Dataset(
        "en",
        False,
        {
            "vectors": Budget(1000, 100),
            "hash": Budget(800, 200),
            **dict.fromkeys(SMALL[:2], Budget(700, 140)),
            SMALL[2]: Budget(1300, 130),
            **dict.fromkeys(TRANSFORMERS, Budget(192, 48, batch_words=500)),
        },
        running_text=True,
    ),
    "wnut17": Dataset(
        "en",
        False,
        {
            "vectors": Budget(1500, 150),
            "tuned": Budget(1600, 160),
            "tuned_intnet": Budget(1280, 160),
            **dict.fromkeys(SMALL[:2], Budget(1200, 240)),
            SMALL[2]: Budget(2000, 200),
            **dict.fromkeys(TRANSFORMERS, Budget(240, 60, batch_words=500)),
        },
    ),
    "genia": Dataset(
        "en",
        True,
        {
            "vectors": Budget(2200, 550, 5000),
            "hash": Budget(600, 300, 2000),
            **dict.fromkeys(SMALL[:2], Budget(1200, 240, 5000)),
            SMALL[2]: Budget(2800, 400, 5000),
            **dict.fromkeys(TRANSFORMERS, Budget(240, 120, 2000, batch_words=500)),
        },
    ),
    "germeval2014": Dataset(
        "de", True, {"hash": Budget(2200, 550, 5000), "lstm": Budget(1200, 240, 5000)}
    ),
}


def corpus(name: str, part: str, data: Path) -> Path:
    """The .spacy file of a part ("train" or "dev") of a corpus under the folder `data`."""
    target = CACHE / name / f"{part}.spacy"
    if not target.exists():
        source = data / name / f"{part}.jsonl"
        if not source.exists():
            raise FileNotFoundError(
                f"{source} is not there. --data must be a folder with {name}/train.jsonl and dev.jsonl, "
                'one {"tokens": [...], "entities": [[start, end, label], ...]} a line.'
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        convert([source], target, lang=DATASETS[name].lang)
    return target


def read_docs(path: Path, lang: str) -> List[Doc]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank(lang).vocab))


def width_of(docs: List[Doc]) -> int:
    """The smallest width that holds 99 % of the gold spans."""
    return stats_of(docs).width_for(99)


def stats_of(docs: List[Doc]) -> Stats:
    """What `spacy spanner config --corpus` counts of these documents."""
    stats = Stats()
    for doc in docs:
        count_doc(doc, Settings(), stats)
    return stats
