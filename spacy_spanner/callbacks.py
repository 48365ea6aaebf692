"""Callbacks of a training config."""

from __future__ import annotations

import warnings
from copy import copy, deepcopy
from functools import partial
from itertools import islice
from typing import Any, Callable, Iterable, List, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from .errors import Warnings
from .pipeline.base import TablePipe, show_words

Reader = Callable[[Language], Iterable[Example]]
Pairs = List[Tuple[Doc, Optional[Doc]]]  # predicted, gold


def make_learn_words() -> Callable[[Language], None]:
    """For `[initialize.after_init]`: encoders whose vectors are tuned see the words of the training
    corpus also where no component of this package, which would show them, is in the pipeline."""
    return learn_words


def learn_words(nlp: Language) -> None:
    pipes = [pipe for _, pipe in nlp.pipeline]
    read = corpus_reader(nlp, nlp.config["training"]["train_corpus"])
    if read is not None and not any(isinstance(pipe, TablePipe) for pipe in pipes):
        show_words(pipes, partial(read, nlp))


def make_fit_thresholds(
    corpus: str = "corpora.dev",
    per_label: bool = False,
    temperature: bool = True,
    min_gold: int = 10,
    limit: int = 2000,
) -> Callable[[Language], Language]:
    """For `[training.before_to_disk]`: what is saved has the threshold of the best F, and the temperature
    and biases that calibrate its confidences, for spans and for relations; training continues with its own
    settings.

    corpus: What they are fitted on: the development part, or another section of `[corpora]`.
    per_label: Also a threshold for each label that has at least `min_gold` gold spans.
    temperature: Calibrate confidences, by a temperature, a bias and biases of labels.
    limit: Most documents to look at.
    """

    options = {"per_label": per_label, "fit": temperature, "min_gold": min_gold}

    def fit_all(nlp: Language) -> Language:
        read = corpus_reader(nlp, corpus)
        if read is None:
            return nlp

        def pairs() -> Pairs:
            return [(eg.predicted, eg.reference) for eg in islice(read(nlp), limit)]

        saved, without_gold = fitted_copy(nlp, pairs, **options)
        for name in without_gold:
            warnings.warn(Warnings.SW20.format(name=name, corpus=corpus), stacklevel=2)
        return saved

    return fit_all


def fitted_copy(
    nlp: Language, read: Callable[[], Pairs], **options: Any
) -> Tuple[Language, List[str]]:
    """The same pipeline with fitted settings, and the components that found no gold; the pipeline itself
    where it has no component of ours.

    read: Gives fresh documents without predictions, each with its gold.
    options: Those of `tuning.thresholds.tune`.
    """
    from .tuning.component import fit_settings, write_setting

    names = [name for name, pipe in nlp.pipeline if isinstance(pipe, TablePipe)]
    saved = copy_settings(nlp) if names else nlp
    without_gold = []
    for name in names:
        fits = fit_settings(nlp, name, read(), **options)
        known = {prefix: fit for prefix, fit in fits.items() if fit.candidates.n_gold}
        for prefix, fit in known.items():
            write_setting(saved, name, fit.best, prefix)
        if not known:
            without_gold.append(name)
    return saved, without_gold


def corpus_reader(nlp: Language, corpus: str) -> Optional[Reader]:
    """The reader of a section of `[corpora]`; None where it names no file, as where examples are
    handed over."""
    section, _, name = corpus.partition(".")
    block = nlp.config.interpolate().get(section, {}).get(name, {})
    return None if block.get("path") is None else registry.resolve({"read": block})["read"]


def copy_settings(nlp: Language) -> Language:
    """The same pipeline, in which settings of components of ours can be changed: models are shared."""
    saved = copy(nlp)
    saved._components = [(name, copy_pipe(pipe)) for name, pipe in nlp._components]
    saved._pipe_configs = deepcopy(nlp._pipe_configs)
    return saved


def copy_pipe(pipe: Any) -> Any:
    if not isinstance(pipe, TablePipe):
        return pipe
    copied = copy(pipe)
    copied.cfg = deepcopy(pipe.cfg)
    return copied
