"""The tables of the papers: every row runs on the demo corpus, and the page has every table."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config

from benchmarks.data import read_docs
from benchmarks.papers import PAPERS, PLAIN, PaperTable, of, runs_of
from benchmarks.papers_page import length_groups, paper_table
from benchmarks.results import read_lines
from benchmarks.systems import make_config, name_of, system_of
from spacy_spanner.analysis.attributes import ATTRIBUTES
from spacy_spanner.corpus.convert import convert
from spacy_spanner.relations import StoredRelation, set_relations

ROOT = Path(__file__).parent.parent
SYSTEMS = {name_of(system) for own in PAPERS.values() for system, _ in own.rows.values()}


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "train.spacy"
    convert([ROOT / "assets" / "demo" / "train.jsonl"], path, lang="en")
    docs = [doc for doc in read_docs(path, "en") if len(doc.spans["sc"]) > 1][:12]
    for doc in docs:  # the corpus has no relations
        head, tail = ((span.start, span.end, span.label_) for span in list(doc.spans["sc"])[:2])
        set_relations(doc, [StoredRelation(*head, *tail, "near")])
    return docs


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_every_row_runs_on_the_demo_corpus(name, docs):
    config = make_config(name, "hash", lang="en", nested=True, max_width=4)
    nlp = load_model_from_config(config, auto_fill=True)
    words = [[token.text for token in doc] for doc in docs]
    pairs = zip(words, docs, strict=True)
    examples = [Example(Doc(nlp.vocab, words=own), doc) for own, doc in pairs]
    optimizer = nlp.initialize(lambda: examples)
    losses = {}
    nlp.update(examples, sgd=optimizer, losses=losses)
    assert losses[system_of(name).factory] > 0
    assert len(list(nlp.pipe([Doc(nlp.vocab, words=own) for own in words]))) == len(docs)


def test_the_page_has_every_table_and_nothing_else():
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf8")
    assert re.findall(r'BENCH="paper (\S+) --data DATA"', text) == by_paper(list(PAPERS))
    assert re.findall(r"^### (.*)", text, flags=re.M) == [
        PAPERS[name].title for name in by_paper(list(PAPERS))
    ]
    for own in PAPERS.values():
        for row, (_, published) in own.rows.items():
            assert re.search(
                rf"^\| {re.escape(row)} \| \d* \| {re.escape(published)} \|", text, re.M
            )


def by_paper(names):
    papers = list(dict.fromkeys(PAPERS[name].paper for name in names))
    return sorted(names, key=lambda name: papers.index(PAPERS[name].paper))


def test_measures_are_known():
    groups = {attribute.key for attribute in ATTRIBUTES}
    others = {"relations F", "error reduction", "boundary", "type"}
    for own in PAPERS.values():
        assert set(own.measures) <= PLAIN.keys() | others | groups
        assert not own.full or own.full in own.rows
        assert ("entity_length" in own.measures) >= bool(own.lengths)


def test_runs_take_the_budget_of_the_corpus():
    runs = runs_of(PAPERS["global-pointer-table-2"], [], [0, 1], 0)
    assert {(run.dataset, run.steps) for run in runs} == {("conll04", 800), ("genia", 600)}
    assert len(runs) == 8
    (run,) = runs_of(PAPERS["global-pointer-table-3"], ["demo"], [0], 3)
    assert (run.dataset, run.system, run.steps) == ("demo", "relations", 3)


def run_of(system, f, seed):
    fields = {"dataset": "conll04", "encoder": "hash", "steps": 800, "learn_rate": 0.002}
    return {**fields, "system": name_of(system), "f": f, "seed": seed, "recipe": "decay"}


def test_signs():
    full, less, more, mixed, unrun = (
        of("global_pointer", head_size=size) for size in (2, 4, 6, 8, 10)
    )
    rows = {"full": (full, "9"), "less": (less, "8"), "more": (more, ""), "mixed": (mixed, "")}
    own = PaperTable("P", "T", "nothing", {**rows, "unrun": (unrun, "7")}, full="full")
    runs = [
        run_of(s, f, i) for s, *fs in [(full, 50, 60), (less, 49, 58)] for i, f in enumerate(fs)
    ]
    runs += [run_of(more, 51, 0), run_of(more, 62, 1), run_of(mixed, 51, 0), run_of(mixed, 58, 1)]
    text = "\n".join(paper_table("name", own, runs))
    assert "| full | 2 | 9 | 55.0 ± 7.1 |  |" in text
    assert "| less | 2 | 8 | 53.5 ± 6.4 | -1.5, as published |" in text
    assert "+1.5, opposite |" in text and "-0.5, unclear |" in text
    assert "| unrun |  | 7 |  |  |" in text


def test_groups_by_length():
    lengths = {"1": [2, 0, 0], "4": [1, 1, 1], "5": [0, 1, 0]}
    assert length_groups("length=1-4,5-9,10-", lengths) == [100 * 6 / 8, 0.0, None]


@pytest.mark.slow
def test_a_table_by_its_command(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "paper", "locate-and-label-table-2"]
    options = {"corpora": "demo", "seeds": "0", "steps": "3", "data": "assets"}
    paths = {"results": tmp_path / "runs.jsonl", "target": tmp_path / "page.md"}
    given = [f"--{name}={value}" for name, value in {**options, **paths}.items()]
    result = subprocess.run([*command, *given], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0 and "failed" not in result.stdout, result.stdout + result.stderr
    first = read_lines(paths["results"])[0]
    assert first["steps"] == 3 and first["analysis"]["groups"]["entity_length"]
