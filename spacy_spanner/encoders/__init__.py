"""Blocks from documents to token vectors: the `tok2vec` of any system, and parts of each other."""
