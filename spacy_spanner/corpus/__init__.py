"""Corpora: readers of annotation formats, their conversion to `Doc` and a look at what is in them."""
