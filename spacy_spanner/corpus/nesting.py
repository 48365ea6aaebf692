"""Nesting of the spans of one document."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple


class Nesting(NamedTuple):
    """One value a span, in the order given."""

    depth: List[int]  # 1 outside everything, 2 inside one of depth 1, ...
    nested: List[bool]  # lies in another span, or holds another; the same offsets count as well
    crossing: List[bool]  # shares tokens with another span, neither holding the other


def nesting(spans: Sequence[Tuple[int, int]]) -> Nesting:
    """One sweep from left to right; at each span only those still open are looked at."""
    n = len(spans)
    result = Nesting([1] * n, [False] * n, [False] * n)
    order = sorted(range(n), key=lambda i: (spans[i][0], -spans[i][1]))
    open_spans: List[int] = []
    for i in order:
        start, end = spans[i]
        open_spans = [j for j in open_spans if spans[j][1] > start]
        for j in open_spans:
            if spans[j][1] >= end:  # j holds i, for it starts no later
                result.nested[i] = result.nested[j] = True
                deeper = result.depth[j] + (tuple(spans[j]) != (start, end))
                result.depth[i] = max(result.depth[i], deeper)
            else:
                result.crossing[i] = result.crossing[j] = True
        open_spans.append(i)
    return result
