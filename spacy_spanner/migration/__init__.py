"""From spacy-transformers to the encoder over current transformers."""
