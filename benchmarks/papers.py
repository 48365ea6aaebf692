"""The tables and figures of the papers as rows that can be run: `python -m benchmarks paper NAME`.

They are defined in papers.yaml: rows (a system, its options and the published figure), the corpora
here, and what is measured. Every row of a table takes the same encoder, steps and learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple, Union

import srsly

from .accuracy import Run
from .data import DATASETS
from .systems import SYSTEMS, System, name_of

ENCODER, LEARN_RATE = "hash", 0.002
FILE = Path(__file__).with_name("papers.yaml")

Rows = Dict[str, Tuple[System, str]]  # name of the row -> system, published figure


@dataclass(frozen=True)
class PaperTable:
    """A table or figure; the fields are explained in papers.yaml."""

    paper: str
    title: str
    published: str
    rows: Rows
    corpora: Sequence[str] = ("conll04",)
    against: Union[str, Dict[str, str]] = ""
    main: str = ""
    standard: str = ""
    measures: Sequence[str] = ("F",)
    lengths: str = ""
    note: str = ""

    def reference(self, row: str) -> str:
        """The row that this one is compared with, if any."""
        if isinstance(self.against, dict):
            return self.against.get(row, "")
        kind = row.rpartition(", ")[0]
        full = f"{kind}, {self.against}" if kind else self.against
        return full if full in self.rows and full != row else ""

    @property
    def main_row(self) -> str:
        """The row of the paper's own system: `main`, the first that others are compared with, or the
        last."""
        references = filter(None, map(self.reference, self.rows))
        return self.main or next(references, list(self.rows)[-1])

    @property
    def groups(self) -> List[List[str]]:
        """Rows that are compared with each other; all where nothing is said."""
        found: Dict[str, List[str]] = {}
        for row in self.rows:
            found.setdefault((self.reference(row) or row) if self.against else "", []).append(row)
        return list(found.values())

    @property
    def systems(self) -> Dict[str, str]:
        """The names of the rows' systems in records."""
        return {row: name_of(system) for row, (system, _) in self.rows.items()}


def of(name: str, **model: Any) -> System:
    """A system of the benchmarks with other options."""
    return replace(SYSTEMS[name], model={**SYSTEMS[name].model, **model})


def read_tables(path: Path = FILE) -> Dict[str, PaperTable]:
    """All tables by name, paper after paper."""
    tables = {}
    for paper, own in srsly.read_yaml(path).items():
        for name, fields in own.items():
            rows = {
                str(row): (of(system, **(options[0] if options else {})), cell(published))
                for row, (published, system, *options) in fields.pop("rows").items()
            }
            tables[name] = PaperTable(paper, rows=rows, **fields)
    return tables


def cell(published: Any) -> str:
    """A published figure as the papers print it."""
    return f"{published:.2f}" if isinstance(published, float) else str(published)


PAPERS = read_tables()


def runs_of(
    table: PaperTable,
    corpora: Sequence[str],
    seeds: Sequence[int],
    steps: int,
    learn_rate: float = LEARN_RATE,
) -> List[Run]:
    """The runs of a table, row by row; rows of other tables with the same system are the same runs."""
    return [
        Run(corpus, ENCODER, name_of(system), learn_rate, seed, steps_of(corpus, system, steps))
        for seed in seeds
        for corpus in corpora or table.corpora
        for system, _ in table.rows.values()
    ]


def steps_of(corpus: str, system: System, steps: int = 0) -> int:
    """Training steps: those given, or the budget of the corpus."""
    return steps or DATASETS[corpus].budgets[ENCODER].steps * system.more_steps
