"""Span and sequence NER systems as spaCy components; everything is reached through entry points."""

from importlib.metadata import version

from .acceleration import use_fastest_encoder, use_fastest_layers, use_fastest_ops

__all__ = ["use_fastest_encoder", "use_fastest_layers", "use_fastest_ops"]
__version__ = version("spacy-spanner")
