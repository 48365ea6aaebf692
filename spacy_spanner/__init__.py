"""Span and sequence NER systems as spaCy components; everything is reached through entry points."""

from importlib.metadata import version

__version__ = version("spacy-spanner")
