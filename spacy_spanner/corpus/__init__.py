"""Corpora: readers of annotation formats, conversion to `Doc`, and a look at what is in them."""
