"""What all tests of corpora share."""

from functools import lru_cache

import pytest
import spacy

blank = lru_cache(spacy.blank)


@pytest.fixture(autouse=True)
def one_blank_pipeline(monkeypatch):
    """Making one is most of the time of a small conversion."""
    monkeypatch.setattr("spacy.blank", blank)
