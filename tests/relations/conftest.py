"""What the component promises holds with each of its architectures."""

import pytest
import spacy

from .examples import ARCHITECTURES, FLAT, make_examples, make_nlp, train


@pytest.fixture(scope="module", params=ARCHITECTURES)
def architecture(request):
    return request.param


@pytest.fixture(scope="module")
def nlp(architecture):
    nlp = make_nlp(architecture=architecture)
    return train(nlp, make_examples(nlp))


@pytest.fixture(scope="module")
def after_ruler(architecture):
    """Entities by hand-written patterns, relations by one more `add_pipe`."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    make_nlp(architecture=architecture, nlp=nlp, entities="given")
    train(nlp, make_examples(nlp, FLAT))
    patterns = {text[a:b]: label for text, spans, _ in FLAT for a, b, label in spans}
    ruler.add_patterns([{"label": label, "pattern": words} for words, label in patterns.items()])
    return nlp
