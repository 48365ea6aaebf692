"""Tags and spans are exact inverses; anything else is read as conlleval reads it."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_spanner.decoders.tags import TagScheme

SCHEMES = ["BIO", "BIOES"]
N_LABELS = 3


def tag_names(scheme: TagScheme) -> list:
    return ["O"] + [f"{p}-{c}" for p in scheme.prefixes for c in range(scheme.n_labels)]


def read_chunks(names: list) -> list:
    """conlleval, word by word: (start, end, label) of one tag sequence."""
    chunks, start, before = [], None, ("O", None)
    for i, name in enumerate([*names, "O"]):
        prefix, label = (name[0], name[2:]) if name != "O" else ("O", None)
        was, kind = before
        new = prefix in "BS" or was in "OES" or label != kind
        if start is not None and (prefix == "O" or new):
            chunks.append((start, i, int(kind)))
            start = None
        if prefix != "O" and new:
            start = i
        before = (prefix, label)
    return chunks


@st.composite
def flat_rows(draw):
    """Lengths of rows and flat spans in them."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    table = []
    for row, length in enumerate(lengths):
        at = 0
        while at < length:
            end = draw(st.integers(at + 1, length))
            if draw(st.booleans()):
                table.append((row, at, end, draw(st.integers(0, N_LABELS - 1))))
            at = end
    return lengths, table


def make_mask(lengths: list) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def as_table(rows: list) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.int64).view(-1, 4)


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=60)
@given(case=flat_rows())
def test_spans_to_tags_and_back(name, case):
    lengths, table = case
    scheme, mask = TagScheme(name, N_LABELS), make_mask(lengths)
    tags = scheme.spans_to_tags(as_table(table), tuple(mask.shape))
    assert scheme.tags_to_spans(tags, mask).tolist() == as_table(table).tolist()
    for row, length in enumerate(lengths):
        path = tags[row, :length].tolist()
        assert scheme.starts[path[0]] and scheme.ends[path[-1]]
        assert all(scheme.transitions[y, z] for y, z in itertools.pairwise(path))
        assert not tags[row, length:].any()


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=100)
@given(data=st.data())
def test_any_tags_are_read_as_conlleval_does(name, data):
    scheme = TagScheme(name, N_LABELS)
    lengths = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    mask = make_mask(lengths)
    tag = st.integers(0, scheme.n_tags - 1)
    rows = [
        data.draw(st.lists(tag, min_size=mask.shape[1], max_size=mask.shape[1])) for _ in lengths
    ]
    names = tag_names(scheme)
    expected = [
        [row, *chunk]
        for row, length in enumerate(lengths)
        for chunk in read_chunks([names[t] for t in rows[row][:length]])
    ]
    assert scheme.tags_to_spans(torch.tensor(rows), mask).tolist() == expected


@pytest.mark.parametrize("name", SCHEMES)
def test_well_formed_sequences_survive_the_way_through_spans(name):
    """What `transitions`, `starts` and `ends` allow is just what comes back unchanged."""
    scheme = TagScheme(name, 2)
    paths = torch.cartesian_prod(*[torch.arange(scheme.n_tags)] * 3)
    legal = scheme.transitions[paths[:, :-1], paths[:, 1:]].all(1)
    allowed = legal & scheme.starts[paths[:, 0]] & scheme.ends[paths[:, -1]]
    mask = torch.ones_like(paths, dtype=torch.bool)
    back = scheme.spans_to_tags(scheme.tags_to_spans(paths, mask), tuple(paths.shape))
    assert torch.equal((back == paths).all(1), allowed)


def test_type_only_tags():
    scheme, mask = TagScheme("IO", N_LABELS), torch.ones((1, 6), dtype=torch.bool)
    table = as_table([(0, 0, 2, 2), (0, 2, 3, 0), (0, 5, 6, 0)])
    tags = scheme.spans_to_tags(table, (1, 6))
    assert tags.tolist() == [[3, 3, 1, 0, 0, 1]]
    assert scheme.n_tags == N_LABELS + 1
    assert scheme.transitions.all() and scheme.starts.all() and scheme.ends.all()
    assert torch.equal(scheme.tags_to_spans(tags, mask), table)


def test_no_spans_no_state():
    scheme = TagScheme("BIO", 1)
    assert not scheme.spans_to_tags(as_table([]), (2, 3)).any()
    none = scheme.tags_to_spans(torch.zeros((2, 3), dtype=torch.int64), torch.ones((2, 3)) > 0)
    assert none.shape == (0, 4)
    assert scheme.state_dict() == {}
