"""F on sentences and on documents of joined sentences, now and before training joined them."""

from __future__ import annotations

from typing import Any, Dict, List

from .documents import FORMS
from .results import BEFORE, load
from .tables import Record, best_runs, known_spread, table

TEXT = (
    "F of all spans (of relations where the row says so) on the sentences of the development part, and on "
    "the same sentences joined to documents of 10 and of 80, with sentence starts marked or not. "
    '"Before" is the version that trained on sentences alone. Documents that are not marked may be of the '
    "first seed alone: then they have no spread."
)


def document_lines(runs: List[Record]) -> List[str]:
    """The table of one corpus and encoder; nothing where documents were not measured."""
    now = best_runs([run for run in runs if "documents" in run])
    if not now:
        return []
    first = runs[0]
    same = ("dataset", "encoder", "steps")
    old = [run for run in load(BEFORE).values() if all(run[key] == first[key] for key in same)]
    before = best_runs(old)
    rows = []
    for system, own in now.items():
        for part in ("spans", "relations"):
            values = [scores_of(run, part) for run in own]
            earlier = [scores_of(run, part) for run in before.get(system, [])]
            if all(values):
                name = f"`{system}`" + (", relations" if part == "relations" else "")
                # Brief runs were not scored in all forms.
                cells = [known_spread(values, form) for form in ("1", *FORMS)]
                cells += [known_spread(earlier, form) for form in ("1", "10", "80")]
                rows.append([name, str(len(own)), *cells])
    head = ["system", "seeds", "sentences", *(f"documents of {form}" for form in FORMS)]
    head += ["before: sentences", "of 10", "of 80"]
    return [TEXT, "", *table(head, rows), "", *running_lines(now)]


def running_lines(chosen: Dict[str, List[Record]]) -> List[str]:
    """Long documents of running text, where they were measured."""
    runs = {
        system: next((r for r in own if "running_text" in r), {}) for system, own in chosen.items()
    }
    measured = {system: run["running_text"] for system, run in runs.items() if run}
    if not measured:
        return []
    rows = [[f"`{s}`", f"{m['rate']:.2f}", str(m["widest"])] for s, m in measured.items()]
    sizes = next(iter(measured.values()))
    text = (
        f"{sizes['docs']} documents of {sizes['tokens']:,} tokens of running text (sentences of the training "
        "part): found spans per token over those of the same sentences one by one, and the widest span."
    )
    return [text, "", *table(["system", "spans per token", "widest"], rows), ""]


def scores_of(run: Record, part: str) -> Dict[str, float]:
    """F by form of the documents; "1" for single sentences. Empty where the part is not there."""
    forms: Dict[str, Any] = {"1": run, **run["documents"]}
    if part == "spans":
        return {form: scores["f"] for form, scores in forms.items()}
    if "relations" not in run:
        return {}
    return {form: scores.get("relations", {"f": 0.0})["f"] for form, scores in forms.items()}
