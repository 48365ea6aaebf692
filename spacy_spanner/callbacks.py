"""Callbacks of a training config."""

from __future__ import annotations

from typing import Callable

from spacy.language import Language
from spacy.util import resolve_dot_names

from .pipeline.base import TablePipe, show_words


def make_learn_words() -> Callable[[Language], None]:
    """For `[initialize.after_init]`: encoders whose vectors are tuned see the words of the training
    corpus also where no component of this package, which would show them, is in the pipeline."""
    return learn_words


def learn_words(nlp: Language) -> None:
    config = nlp.config.interpolate()
    corpus = config["training"]["train_corpus"]
    section, _, name = corpus.partition(".")
    has_file = config.get(section, {}).get(name, {}).get("path") is not None
    if has_file and not any(isinstance(pipe, TablePipe) for _, pipe in nlp.pipeline):
        (read,) = resolve_dot_names(config, [corpus])
        show_words([pipe for _, pipe in nlp.pipeline], lambda: read(nlp))
