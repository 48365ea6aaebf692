"""The part of docs/benchmarks.md on prediction in production."""

from __future__ import annotations

from statistics import median
from typing import List

from .production import ROWS
from .tables import Record, table

TITLES = {
    "hash": "Global Pointer over the hash CNN",
    "transformer": "the same over MiniLM by spacy-transformers",
    "huggingface": "the same over MiniLM by our encoder",
    "int8": "the same over MiniLM after `quantize`",
}


def production_section(records: List[Record]) -> str:
    """The last measurement of each row, and of all else."""
    if not records:
        return ""
    last = {name: own for own in records for name in own["rows"]}  # the record of each row
    record = [own for own in records if "memory" in own][-1]
    rows = []
    for name in ROWS:
        if name not in last:
            continue
        found = last[name]["rows"][name]
        ratio, bar = median(found["ratios"]), ROWS[name][2]
        text = f"{ratio:.2f}" if ratio >= bar else f"**{ratio:.2f}**"
        plain, fast = found["words_per_second"]
        different = found.get("different")
        cells = [TITLES[name], f"{plain:,}", f"{fast:,}", f"{text} ({bar:.1f})"]
        rows.append([*cells, "" if different is None else str(different), last[name]["commit"]])
    head = ["pipeline", "`nlp.pipe`", "`annotate`", "ratio", "texts with another result", "commit"]
    ner, pointer = record["start"]["ner"], record["start"]["global_pointer"]
    memory = "; ".join(
        f"`{way}` {', '.join(f'{mb:,.0f} MB after {int(docs):,}' for docs, mb in marks.items())}"
        for way, marks in record["memory"].items()
    )
    before_after = ""
    if "int8" in last:
        before, after = last["int8"]["rows"]["int8"]["f"]
        before_after = f" F on conll04 dev is {before:.2f} before `quantize` and {after:.2f} after."
    service = ""
    if record.get("service"):
        own = record["service"]
        service = (
            f" The service (`serve`) under {own['rate']} requests a second of one sentence each for "
            f"{own['seconds']} s by `hey` on the same machine: {own['requests_per_second']:.0f} answered "
            f"a second, {own['failed']} failed, latency {own['p50']:.0f} ms (p50), {own['p95']:.0f} "
            f"(p95), {own['p99']:.0f} (p99)."
        )
    return "\n".join(
        [
            "## In production",
            "",
            "Words per second of processor time on one thread (`make bench BENCH=production`): spaCy's "
            "plain `nlp.pipe` at its defaults, with thinc's BLIS, and `annotate`, which also reads and "
            "writes files; genia dev, unsorted, median of "
            f"{record['rounds']} rounds in one process, both in turn. In brackets the bar; what misses it "
            "is bold. Over spacy-transformers, `annotate` runs the same weights by our encoder. A pipeline "
            "over our encoder cannot reach the bar of 1.7: it sorts documents by length inside `nlp.pipe` "
            "too, so that `annotate` adds nothing to it; the products of MiniLM alone take most of its time. "
            "Results are compared to the fourth digit of each score, which other matrix products round "
            "differently in some texts." + before_after,
            "",
            *table(head, rows),
            "",
            f"`spacy.load` and a first document, processor time: {pointer:.2f} s with a Global Pointer over "
            f"the hash CNN, {ner:.2f} s with spaCy's `ner` ({pointer / ner:.2f}). Memory of a process over "
            f"documents of 60 characters: {memory}.{service} {record['machine']}, commit {record['commit']}.",
            "",
        ]
    )
