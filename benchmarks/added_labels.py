"""What a trained pipeline forgets when a label is added to it and learned from mixed data.

    python -m benchmarks.added_labels --data DATA [--systems seq_ner ...] [--steps 500] [--rate 0.001]

One entity label of CoNLL04 (for relations, "Other" and a relation label) is hidden at first. The rows have
F of the other labels before, directly after `add_label`, and after more training with all labels, and F of
the new label. With `--fit` the threshold is fitted before and after, as configs do when a pipeline is
saved: on every other document of the development part, and F is of the rest.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config, minibatch
from thinc.api import fix_random_seed

from spacy_spanner.relations import get_relations, set_relations
from spacy_spanner.training_config import complete
from spacy_spanner.tuning.component import fit_settings, write_setting

from .data import corpus, read_docs, width_of
from .systems import make_config

RELATIONS = "relations"


@dataclass(frozen=True)
class Hidden:
    """The labels that are learned later. Where there is one of relations, those are measured."""

    entity: str
    relation: Optional[str] = None


SYSTEMS = [
    *("hscrf", "bilstm_pointer"),
    *("global_pointer", "efficient_global_pointer", "locate_and_label", "seq_ner", "seq_ner_crf"),
    *("span_ner", "biaffine_ner", "bl_span_ner", "bl_seq_ner", "min", "hire", RELATIONS),
]
BATCH, LEARN_RATE = 24, 0.001


def hide(doc: Doc, hidden: Hidden) -> Doc:
    """A copy of a document without what is to be learned later."""
    copied = doc.copy()
    copied.spans["sc"] = [span for span in copied.spans["sc"] if span.label_ != hidden.entity]
    copied.set_ents([ent for ent in copied.ents if ent.label_ != hidden.entity], default="outside")
    kept = [r for r in get_relations(doc) or [] if r.label != hidden.relation]
    set_relations(copied, [r for r in kept if hidden.entity not in (r.head_label, r.tail_label)])
    return copied


def blank(nlp: Language, gold: Doc) -> Doc:
    """The same tokens without annotation."""
    spaces = [bool(token.whitespace_) for token in gold]
    return Doc(nlp.vocab, words=[token.text for token in gold], spaces=spaces)


def keys(doc: Doc, hidden: Hidden, *, new: bool) -> Set[tuple]:
    """Entities or relations of the label that was hidden, or of all others."""
    if hidden.relation is not None:
        found = {tuple(relation)[:7] for relation in get_relations(doc) or []}
    else:
        found = {(ent.start, ent.end, ent.label_) for ent in doc.ents}
    return {key for key in found if (key[-1] == (hidden.relation or hidden.entity)) == new}


def f_score(docs: List[Doc], golds: List[Doc], hidden: Hidden, *, new: bool) -> float:
    """F in points."""
    right = total = 0
    for doc, gold in zip(docs, golds, strict=True):
        found, wanted = keys(doc, hidden, new=new), keys(gold, hidden, new=new)
        right += len(found & wanted)
        total += len(found) + len(wanted)
    return 200 * right / max(total, 1)


def batches(docs: List[Doc], steps: int) -> Iterator[List[Doc]]:
    """As many batches as there are steps, epoch after epoch."""
    done = 0
    while True:
        for batch in minibatch(random.sample(docs, len(docs)), BATCH):
            if done == steps:
                return
            yield batch
            done += 1


def train(nlp: Language, docs: List[Doc], optimizer: Any, steps: int, rate: float) -> None:
    """The learning rate falls to zero, so that what is measured does not depend on the last batch."""
    for step, batch in enumerate(batches(docs, steps)):
        optimizer.learn_rate = rate * (1 - step / steps)
        nlp.update([Example(blank(nlp, gold), gold) for gold in batch], sgd=optimizer)


def fit_threshold(nlp: Language, golds: List[Doc]) -> None:
    """The threshold of the best F of all labels that the component has."""
    name = nlp.pipe_names[-1]
    pairs = [(blank(nlp, gold), gold) for gold in golds]
    for prefix, fit in fit_settings(nlp, name, pairs, fit=False).items():
        write_setting(nlp, name, fit.best, prefix)


def measure(
    system: str,
    data: Path,
    *,
    label: str,
    steps: int,
    more: int,
    rate: float,
    seed: int,
    fit: bool,
) -> Dict[str, Any]:
    fix_random_seed(seed)
    torch.manual_seed(seed)
    golds = {part: read_docs(corpus("conll04", part, data), "en") for part in ("train", "dev")}
    width = width_of(golds["train"])
    config = make_config(system, "hash", lang="en", nested=False, max_width=width)
    nlp = load_model_from_config(complete(config))
    hidden = Hidden("Other", "Live_In") if system == RELATIONS else Hidden(label)
    held_back = golds["dev"][::2]
    golds["dev"] = golds["dev"][1::2] if fit else golds["dev"]

    def predicted() -> List[Doc]:
        return list(nlp.pipe([blank(nlp, gold) for gold in golds["dev"]]))

    first = [hide(doc, hidden) for doc in golds["train"]]
    optimizer = nlp.initialize(lambda: [Example(blank(nlp, gold), gold) for gold in first])
    train(nlp, first, optimizer, steps, LEARN_RATE)
    if fit:
        fit_threshold(nlp, [hide(doc, hidden) for doc in held_back])
    before = predicted()
    pipe = nlp.get_pipe(nlp.pipe_names[-1])
    pipe.add_label(hidden.entity)
    if hidden.relation is not None:
        pipe.add_relation_label(hidden.relation)
    after = predicted()
    pairs = zip(before, after, strict=True)
    changed = sum(keys(a, hidden, new=False) != keys(b, hidden, new=False) for a, b in pairs)
    train(nlp, golds["train"], nlp.resume_training(), more, rate)
    if fit:
        fit_threshold(nlp, held_back)
    last = predicted()
    scores = {
        "before": f_score(before, golds["dev"], hidden, new=False),
        "added": f_score(after, golds["dev"], hidden, new=False),
        "changed": changed,
        "after": f_score(last, golds["dev"], hidden, new=False),
        "new": f_score(last, golds["dev"], hidden, new=True),
    }
    return {
        "system": system,
        "label": label,
        "seed": seed,
        **{k: round(v, 2) for k, v in scores.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--label", default="Peop", help="the entity label that is added")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--more", type=int, default=300)
    parser.add_argument("--rate", type=float, default=LEARN_RATE, help="of the training after")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", action="store_true", help="fit the threshold before and after")
    options = vars(parser.parse_args())
    systems, data = options.pop("systems"), options.pop("data")
    for system in systems:
        print(json.dumps(measure(system, data, **options)), flush=True)


if __name__ == "__main__":
    main()
