"""Tags to spans: every scheme gives back the spans it was written from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_spanner.corpus.tags import split_tag, tags_to_spans


def write_tags(spans, length, scheme):
    tags = ["O"] * length
    for start, end, label in spans:
        for i in range(start, end):
            tags[i] = f"I-{label}"
        if scheme == "IOB1":
            touches = any(e == start and other == label for _, e, other in spans)
            tags[start] = f"B-{label}" if touches else tags[start]
            continue
        tags[start] = f"B-{label}"
        if scheme in ("BIOES", "BILOU"):
            tags[end - 1] = f"{'E' if scheme == 'BIOES' else 'L'}-{label}"
            if end - start == 1:
                tags[start] = f"{'S' if scheme == 'BIOES' else 'U'}-{label}"
    return tags


@st.composite
def flat_spans(draw):
    spans, position = [], 0
    for gap, width, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY")))
    ):
        spans.append((position + gap, position + gap + width, label))
        position += gap + width
    return spans, position + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES", "BILOU"])
@given(flat_spans())
def test_every_scheme_is_read_back(scheme, case):
    spans, length = case
    assert tags_to_spans(write_tags(spans, length, scheme)) == spans


@pytest.mark.parametrize(
    "tags, spans",
    [
        ("I-X I-X O", [(0, 2, "X")]),
        ("B-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("O E-X I-X", [(1, 2, "X"), (2, 3, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("S-X I-X", [(0, 1, "X"), (1, 2, "X")]),
        ("E-X E-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X E-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("", []),
    ],
)
def test_ill_formed_as_conlleval(tags, spans):
    assert tags_to_spans(tags.split()) == spans


@pytest.mark.parametrize("tag", ["", "B", "B-", "X-PER", "PER", "o", "-"])
def test_unknown_tags(tag):
    assert split_tag(tag) is None


def test_labels_may_hold_dashes():
    assert tags_to_spans(["B-creative-work"]) == [(0, 1, "creative-work")]
