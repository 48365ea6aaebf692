"""Trained transformers with int8 weights."""
