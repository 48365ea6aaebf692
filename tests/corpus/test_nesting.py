"""Nesting by one sweep equals the obvious double loop."""

from hypothesis import given
from hypothesis import strategies as st

from spacy_spanner.corpus.nesting import nesting

SPANS = st.lists(
    st.tuples(st.integers(0, 8), st.integers(1, 5)).map(lambda p: (p[0], p[0] + p[1])), max_size=8
)


def slow(spans):
    def holds(a, b):
        return a[0] <= b[0] and b[1] <= a[1]

    def depth(i):
        return 1 + max(
            (depth(j) for j in pairs if holds(spans[j], spans[i]) and spans[j] != spans[i]),
            default=0,
        )

    pairs = range(len(spans))
    nested, crossing = [], []
    for i in pairs:
        others = [spans[j] for j in pairs if j != i]
        nested.append(any(holds(o, spans[i]) or holds(spans[i], o) for o in others))
        crossing.append(
            any(
                o[0] < spans[i][1]
                and spans[i][0] < o[1]
                and not holds(o, spans[i])
                and not holds(spans[i], o)
                for o in others
            )
        )
    return [depth(i) for i in pairs], nested, crossing


@given(SPANS)
def test_equals_double_loop(spans):
    assert tuple(nesting(spans)) == slow(spans)
