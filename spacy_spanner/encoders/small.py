"""Small encoders without pretraining: spaCy's hash features, our word vectors and characters, put
together from the blocks of this package."""

from __future__ import annotations

from typing import List

from spacy.ml.models.tok2vec import MultiHashEmbed
from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, with_array
from thinc.types import Floats2d

from .characters import build_char_cnn
from .joined import build_joined_encoder
from .torch_layer import Encoder, check_option, check_rates
from .tuned_vectors import build_tuned_vectors

FEATURES = {"NORM": 5000, "PREFIX": 1000, "SUFFIX": 2500, "SHAPE": 2500}  # rows of hash tables


def hash_features(width: int) -> Encoder:
    """The hash embedding of spaCy's small pipelines, without static vectors."""
    return MultiHashEmbed(width, list(FEATURES), list(FEATURES.values()), False)


def build_hash_vectors(
    width: int = 128, tune: bool = False, word_width: int = 100, min_count: int = 2
) -> Model[List[Doc], List[Floats2d]]:
    """Hash features beside word vectors, mixed by one layer: the `embed` of `spacy.Tok2Vec.v2`.
    spaCy's own finds a word in the static vectors only as it is written; this one as `TunedVectors`
    does, whose options these are.

    width: Of the result.
    tune: Also learn the vectors of the words of the training data.
    word_width: Width of word vectors where the pipeline has no static ones.
    """
    words = build_tuned_vectors(word_width, tune=tune, min_count=min_count, cased=True)
    mixed = Maxout(width, nP=3, dropout=0.0, normalize=True)
    model: Encoder = chain(build_joined_encoder(hash_features(width), words), with_array(mixed))
    model.name = "HashVectors"
    return model


def build_lstm_encoder(
    width: int = 256,
    layers: int = 1,
    word_width: int = 100,
    tune: bool = True,
    min_count: int = 2,
    feature_width: int = 96,
    char_filters: int = 50,
    dropout: float = 0.5,
    output_dropout: float = 0.0,
    by_sentence: bool = False,
    learn_rate_scale: float = 1.0,
) -> Model[List[Doc], List[Floats2d]]:
    """Word vectors, hash features and characters of a token under a BiLSTM over the document.

    width: Of the result, half of it in each direction; that of listeners.
    layers: Of the BiLSTM.
    word_width: Width of word vectors where the pipeline has no static ones; otherwise theirs is
        taken. tune, min_count: As of `TunedVectors`.
    feature_width: Width of the hash features (norm, prefix, suffix, shape); 0 for none.
    char_filters: Filters of the character CNN; 0 for no characters.
    dropout: On what the BiLSTM reads, and between its layers.
    output_dropout: On the states of the BiLSTM.
    by_sentence: The BiLSTM reads each sentence by itself, as components before it or else rules have
        them; otherwise whole documents.
    learn_rate_scale: Factor on the learning rate of the BiLSTM.
    """
    for option, value in [("feature_width", feature_width), ("char_filters", char_filters)]:
        check_option("LSTMEncoder", option, value, value >= 0, "it must not be negative")
    check_rates("LSTMEncoder", dropout=dropout, output_dropout=output_dropout)
    parts = [build_tuned_vectors(word_width, tune=tune, min_count=min_count, cased=True)]
    if feature_width:
        parts.append(hash_features(feature_width))
    if char_filters:
        parts.append(build_char_cnn(filters=char_filters))
    return build_joined_encoder(
        *parts,
        lstm_width=width,
        lstm_layers=layers,
        dropout=dropout,
        output_dropout=output_dropout,
        by_sentence=by_sentence,
        learn_rate_scale=learn_rate_scale,
    )
