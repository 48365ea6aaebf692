"""Measures our systems against spaCy's own: accuracy on real corpora, speed and memory as ratios."""
