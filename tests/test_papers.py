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
from benchmarks.paper_measures import PROPOSALS, SPEEDS, is_measured, length_groups, values_of
from benchmarks.paper_runs import measured_at
from benchmarks.papers import PAPERS, PaperTable, of, runs_of
from benchmarks.papers_page import details, summary, write_page
from benchmarks.results import PAPER_RUNS, RESULTS, read_lines
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
    assert losses[system_of(name).overlay] > 0
    assert len(list(nlp.pipe([Doc(nlp.vocab, words=own) for own in words]))) == len(docs)


def test_the_page_has_every_table_and_nothing_else():
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf8")
    titles = re.findall(r"^### (.*)", text, flags=re.M)
    assert titles == [own.title for own in PAPERS.values()] and len(set(titles)) == len(titles)
    papers = re.split(r"^## (.*)\n", text, flags=re.M)[1:]
    for paper, part in zip(papers[::2], papers[1::2], strict=True):
        own = {name: table for name, table in PAPERS.items() if table.paper == paper}
        first = part.partition("### ")[0]  # the table of tables
        for table in own.values():
            assert f"[{table.title.partition(':')[0]}](#" in first
    parts = re.split(r"^### .*\n", text, flags=re.M)[1:]
    for (name, own), part in zip(PAPERS.items(), parts, strict=True):
        commands = re.findall(r'make bench BENCH="(\S+) (\S+)[^"]* --data DATA"', part)
        assert commands and all(c == ("paper", name) or c[0] == "accuracy" for c in commands)
        # Every row of each of its tables is defined, and every definition is there.
        rows = re.findall(r"^\| (?!---)(.+?) \| ", part.partition("\n## ")[0], flags=re.M)
        heads = [i for i, row in enumerate(rows) if " steps" in row or row == "not run here"]
        for begin, end in zip(heads, [*heads[1:], len(rows)], strict=True):
            assert rows[begin + 1 : end] == list(own.rows)


def test_the_page_is_that_of_the_records(tmp_path):
    write_page([*read_lines(RESULTS), *read_lines(PAPER_RUNS)], tmp_path / "papers.md")
    written = (tmp_path / "papers.md").read_text(encoding="utf8")
    assert written == (ROOT / "docs" / "papers.md").read_text(encoding="utf8")


def test_groups_of_a_record_add_up_to_its_score():
    for record in [*read_lines(RESULTS), *read_lines(PAPER_RUNS)]:
        lengths = record.get("analysis", {}).get("lengths", {}).values()
        if lengths:
            hits, misses, alarms = map(sum, zip(*lengths, strict=True))
            f = 200 * hits / (2 * hits + misses + alarms)
            assert f == pytest.approx(record["f"], abs=0.05), record["system"]


def test_links_of_the_page_lead_to_its_tables():
    toc = pytest.importorskip("markdown.extensions.toc")
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf8")
    slugs = {toc.slugify(title, "-") for title in re.findall(r"^#+ (.*)", text, flags=re.M)}
    assert set(re.findall(r"\]\(#(.*?)\)", text)) <= slugs


def test_measures_are_known():
    known = {attribute.key for attribute in ATTRIBUTES} | PROPOSALS.keys() | SPEEDS.keys()
    known |= {"F", "relations F", "error reduction", "boundary errors", "type errors"}
    for own in PAPERS.values():
        assert set(own.measures) <= known
        assert not own.standard or own.standard in own.rows
        assert not own.against or any(own.reference(row) for row in own.rows)
        assert set(map(own.reference, own.rows)) <= {"", *own.rows}
        assert own.main_row in own.rows
        assert ("entity_length" in own.measures) >= bool(own.lengths)
        assert "error reduction" not in own.measures or "base" in own.rows


def test_runs_take_the_budget_of_the_corpus():
    runs = runs_of(PAPERS["global-pointer-table-2"], [], [0, 1], 0)
    assert {(run.dataset, run.steps) for run in runs} == {("conll04", 800), ("genia", 600)}
    assert len(runs) == 8 and {run.learn_rate for run in runs} == {0.002}
    (run,) = runs_of(PAPERS["global-pointer-table-3"], ["demo"], [0], 3, 0.003)
    assert (run.dataset, run.system, run.steps) == ("demo", "relations", 3)
    assert run.learn_rate == 0.003


def run_of(system, f, seed, **more):
    fields = {"dataset": "conll04", "encoder": "hash", "steps": 800, "learn_rate": 0.002}
    commit = {"recipe": "decay", "commit": "abcdef0123"}
    return {**fields, **commit, "system": name_of(system), "f": f, "seed": seed, **more}


FULL, LESS, MORE, NEVER_RUN = (of("global_pointer", head_size=size) for size in (2, 4, 6, 8))


def two_seeds(system, first, second, **more):
    return [run_of(system, first, 0, **more), run_of(system, second, 1, **more)]


def page_of(own, runs):
    measured = measured_at(own, runs)
    lines = [" | ".join(row) for row in summary("name", own, measured)]
    return "\n".join(lines), "\n".join(details("name", own, measured))


def test_signs_are_those_of_the_paper():
    rows = {
        "full": (FULL, "9 / 8"),
        "less": (LESS, "8 / 7.9"),
        "more": (MORE, "9.1 / 8.1"),
        "never": (NEVER_RUN, "7 / 9"),
    }
    own = PaperTable("P", "T: t", "nothing", rows, against="full", note="A note.")
    runs = two_seeds(FULL, 50, 60) + two_seeds(LESS, 49, 58) + two_seeds(MORE, 50.5, 59)
    short, text = page_of(own, runs)
    assert "conll04, `hash`, 800 steps, rate 0.002, commit `abcdef0` | seeds" in text
    assert "| full | 2 | 9 / 8 | 55.0 ± 7.1 |  |" in text
    assert "| less | 2 | 8 / 7.9 | 53.5 ± 6.4 | -1.5, as published |" in text
    assert "| more | 2 | 9.1 / 8.1 | 54.8 ± 6.0 | -0.2, unclear |" in text
    assert "| never | - | 7 / 9 | - |  |" in text
    assert "as published: less; unclear: more" in short and "full: 9 / 8" in short
    assert "spread of our seeds: more (published 0.10, seeds ± 7.07). A note." in short
    _, text = page_of(own, runs + two_seeds(NEVER_RUN, 1, 2))
    assert "mixed in the paper |" in text
    _, text = page_of(own, runs[:4] + two_seeds(MORE, 49, 59))
    assert "-1.0, opposite |" in text


def test_versions_rates_and_budgets_are_told():
    rows = {"full": (FULL, "9"), "less": (LESS, "8")}
    own = PaperTable("P", "T: t", "nothing", rows, against="full")
    short, text = page_of(own, [])
    assert "not run here" in short and "| less | 8 |" in text
    old = two_seeds(FULL, 50, 60, commit="0123456789-dirty")
    runs = old + two_seeds(LESS, 49, 58, learn_rate=0.003)
    short, text = page_of(own, runs)
    assert "| change, and sign | rate | commit |" in text
    assert "0.002 | `0123456`+ |" in text and "0.003 | `abcdef0` |" in text
    _, text = page_of(own, two_seeds(FULL, 50, 60) + two_seeds(LESS, 49, 58, steps_done=700))
    assert "| full | 2 | 9 |" in text and "| less | 2, 2 cut short | 8 |" in text
    # A rate that all rows have comes first.
    _, text = page_of(own, runs + two_seeds(LESS, 48, 58))
    assert "rate 0.002" in text and "| less | 2 | 8 | 53.0 ± 7.1 |" in text
    # Only rows that are compared need the same rate.
    pairs = {**rows, "more": (MORE, ""), "most": (NEVER_RUN, "")}
    four = PaperTable("P", "T: t", "x", pairs, against={"less": "full", "most": "more"})
    fast = two_seeds(MORE, 1, 2, learn_rate=0.003) + two_seeds(NEVER_RUN, 0, 1, learn_rate=0.003)
    slow = two_seeds(LESS, 48, 58) + two_seeds(MORE, 5, 6)
    _, text = page_of(four, old + two_seeds(LESS, 70, 80, learn_rate=0.003) + slow + fast)
    assert "53.0 ± 7.1 | -2.0, as published | 0.002" in text
    assert "| most | 2 |  | 0.5 ± 0.7 | -1.0, as published | 0.003" in text
    # Other steps are another table, and a single row is none.
    short, text = page_of(own, old + two_seeds(LESS, 1, 2, steps=400))
    assert "not run here" in short
    runs = two_seeds(FULL, 3, 4, steps=400) + two_seeds(LESS, 1, 2, steps=400)
    short, text = page_of(own, old + runs)
    assert short.count("`paper name --steps 400`") == 1 and "800" not in text
    # Over other encoders all rows must be there.
    other = {"encoder": "vectors", "steps": 1000}
    short, _ = page_of(own, two_seeds(FULL, 3, 4, **other))
    assert "not run here" in short
    short, _ = page_of(own, two_seeds(FULL, 3, 4, **other) + two_seeds(LESS, 1, 2, **other))
    assert "accuracy --full --datasets conll04 --encoder vectors" in short and "VECTORS" in short


def test_tables_of_groups_need_groups():
    rows = {"full": (FULL, "9"), "less": (LESS, "8")}
    own = PaperTable("P", "T: t", "x", rows, measures=("F", "vocabulary"), standard="full")
    bare = two_seeds(FULL, 50, 60) + two_seeds(LESS, 49, 58)
    assert "not run here" in page_of(own, bare)[0]
    groups = {"analysis": {"groups": {"vocabulary": [["IV", 40.0], ["OOTV", 30.0]]}}}
    _, text = page_of(own, bare[2:] + two_seeds(FULL, 50, 60, **groups))
    assert "F | F, vocabulary IV | F, vocabulary OOTV |" in text
    assert "| full | 2 | 9 | 55.0 ± 7.1 | 40.0 ± 0.0 | 30.0 ± 0.0 |" in text
    assert "| less | 2 | 8 | 53.5 ± 6.4 (-1.5) | - | - |" in text
    nothing = {"analysis": {"groups": {"vocabulary": [["IV", 0.0]]}}}  # no entity of a group found
    _, text = page_of(own, two_seeds(FULL, 50, 60, **nothing) + two_seeds(LESS, 49, 58, **groups))
    assert "| 0.0 ± 0.0 | - |" in text and "40.0 ± 0.0 (+40.0)" in text


def test_groups_by_length():
    lengths = {"1": [2, 0, 0], "4": [1, 1, 1], "5": [0, 1, 0]}
    found = length_groups("length=1-4,5-9,10-", lengths)
    assert found == {"F, length 1-4": 75.0, "F, length 5-9": 0.0, "F, length 10-": None}


def test_measures_of_a_record():
    sides = {"left": [0.5, 0.5, 0, 0, 0], "right": [1, 0, 0, 0, 0]}
    distance = {"chosen": sides, "labelled": {"left": [1, 0, 0, 0, 0], "right": [1, 0, 0, 0, 0]}}
    covered = {"chosen": 0.25, "labelled": 0.5}
    own = {"per_gold": 3.0, "covered": covered, "moves": sides, "distance": distance}
    record = {"f": 60.0, "analysis": {"proposals": own}}
    assert list(values_of("moves", record).values()) == [75.0, 25.0, 0.0, 0.0, 0.0]
    assert list(values_of("distance", record).values()) == [75.0, 100.0]
    assert list(values_of("covered", record).values()) == [25.0, 50.0]
    assert values_of("proposals", record) == {"proposals for each entity": 3.0}
    assert values_of("error reduction", record, base=50.0) == {"error reduction": 20.0}
    assert values_of("error reduction", record) == {} == values_of("vocabulary", record)
    assert is_measured(["F", "proposals"], record) and not is_measured(["vocabulary"], record)
    assert not is_measured(["F"], None) and not is_measured(["moves"], {"f": 1.0})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["locate-and-label-table-2", "locate-and-label-figure-3"])
def test_a_table_by_its_command(name, tmp_path):
    command = [sys.executable, "-m", "benchmarks", "paper", name]
    options = {"corpora": "demo", "seeds": "0", "steps": "3", "data": "assets"}
    paths = {"results": tmp_path / "runs.jsonl", "target": tmp_path / "page.md"}
    given = [f"--{name}={value}" for name, value in {**options, **paths}.items()]
    result = subprocess.run([*command, *given], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0 and "failed" not in result.stdout, result.stdout + result.stderr
    first = read_lines(paths["results"])[0]
    assert first["steps"] == 3 and first["analysis"]["groups"]["entity_length"]
    assert is_measured(PAPERS[name].measures, first, PAPERS[name].lengths)
    assert first["analysis"]["proposals"]["count"] > 0
