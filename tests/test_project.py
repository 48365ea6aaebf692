"""project.yml: its commands parse, its files are fetched or named, and its systems are compared."""

import importlib
import re
from itertools import permutations
from pathlib import Path

import pytest
import srsly
import typer
from spacy.tokens import DocBin
from typer.testing import CliRunner

from scripts import compare_systems, fetch, require_gpu, score_table

from .analysis.cases import GOLD, OTHER, PRED, make_docs
from .commands import parse, parse_script

ROOT = Path(__file__).parent.parent
PROJECT = srsly.read_yaml(ROOT / "project.yml")


def filled(line):
    """A command line with the variables of the project."""
    return re.sub(r"\$\{vars\.(\w+)\}", lambda found: str(PROJECT["vars"][found[1]]), line)


def run(main, *args):
    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, list(map(str, args)))
    assert not isinstance(result.exception, Exception), result.exception
    return result.exit_code, result.output


def test_every_command_parses_and_every_workflow_names_commands():
    for command in PROJECT["commands"]:
        for line in map(filled, command["script"]):
            if line.startswith("python -m spacy"):
                assert parse(line)
            elif line.startswith("python scripts/"):
                name = Path(line.split()[1]).stem
                parse_script(line, importlib.import_module(f"scripts.{name}").main)
            else:
                assert line.startswith("python -c") and command["name"] == "clean"
    names = {command["name"] for command in PROJECT["commands"]}
    for workflow in PROJECT["workflows"].values():
        assert set(workflow) <= names
    assert {"all", "compare", "gpu"} <= set(PROJECT["workflows"])


def test_a_recommended_system_is_given_the_corpus():
    """By default the system is "auto", in every workflow."""
    assert PROJECT["vars"]["system"] == "auto"
    for command in PROJECT["commands"]:
        for line in map(filled, command["script"]):
            if " config auto " in line:
                path = re.search(r"--corpus (\S+)", line)
                assert path and path[1] in map(filled, command["deps"]), command["name"]


class Answer:
    """What a server sends."""

    def __init__(self, content, kind):
        self.content, self.kind, self.headers = content, kind, self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def get_content_type(self):
        return self.kind

    def read(self):
        return self.content


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with project.yml, where nothing can be fetched."""
    (tmp_path / "project.yml").write_text((ROOT / "project.yml").read_text(encoding="utf8"))
    monkeypatch.chdir(tmp_path)

    def unreachable(url, timeout):
        raise OSError("no route\nto host")

    monkeypatch.setattr(fetch, "urlopen", unreachable)
    return tmp_path


def test_one_line_for_each_file_that_cannot_be_fetched(project):
    code, text = run(fetch.main, "genia")
    lines = text.strip().splitlines()
    assert code == 1 and len(lines) == 3
    for line, part in zip(lines, ("train", "dev", "test"), strict=True):
        path = f"assets/genia/{part}.iob2"
        assert line.startswith(f"{path} could not be fetched (no route to host): save https://")
        assert line.endswith(f"genia.{part}.iob2 as {path}")
    assert not (project / "assets").exists()


def test_files_put_there_by_hand_are_kept_and_the_rest_fetched(project, monkeypatch):
    folder = project / "assets" / "genia"
    folder.mkdir(parents=True)
    (folder / "train.iob2").write_text("mine")
    monkeypatch.setattr(fetch, "urlopen", lambda url, timeout: Answer(b"theirs", "text/plain"))
    code, text = run(fetch.main, "genia")
    assert code == 0 and "is complete" in text
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == {"train.iob2": "mine", "dev.iob2": "theirs", "test.iob2": "theirs"}


@pytest.mark.parametrize("content,kind", [(b"<html>", "text/html"), (b"", "text/plain")])
def test_a_web_page_or_nothing_is_not_a_corpus(project, monkeypatch, content, kind):
    monkeypatch.setattr(fetch, "urlopen", lambda url, timeout: Answer(content, kind))
    code, text = run(fetch.main, "wnut17")
    assert code == 1 and text.count("could not be fetched (the server sent") == 3
    assert not (project / "assets").exists()


def test_a_corpus_that_the_project_does_not_name(project):
    code, text = run(fetch.main, "mine")
    assert code == 1 and "put your files into it" in text and "genia" in text
    (project / "assets" / "mine").mkdir(parents=True)
    assert run(fetch.main, "mine")[0] == 0


def test_no_gpu_is_one_line(monkeypatch):
    def refuse(gpu_id):
        raise ValueError("Cannot use GPU,\nCuPy is not installed")

    monkeypatch.setattr(require_gpu.spacy, "require_gpu", refuse)
    code, text = run(require_gpu.main, "0")
    assert code == 1 and len(text.strip().splitlines()) == 1 and "GPU 0 cannot be used" in text


def test_holm_is_the_closed_test():
    """Against its definition: the largest p over all sets of tests that hold this one, each by
    Bonferroni."""
    p_values = [0.01, 0.04, 0.03, 0.5]
    expected = []
    for i in range(4):
        sets = {frozenset(own[:n]) for own in permutations(range(4)) for n in range(1, 5)}
        bonferroni = [min(1, len(s) * min(p_values[j] for j in s)) for s in sets if i in s]
        expected.append(max(bonferroni))
    assert compare_systems.holm(p_values) == pytest.approx(expected)
    assert compare_systems.holm([]) == []


def test_systems_are_compared_in_one_table_and_chart(tmp_path):
    pytest.importorskip("matplotlib")
    paths = {}
    for name, docs in (("gold", GOLD), ("first", PRED), ("second", GOLD), ("base", OTHER)):
        paths[name] = tmp_path / f"{name}.spacy"
        DocBin(docs=make_docs(docs)).to_disk(paths[name])
    chart, json = tmp_path / "deep" / "chart.png", tmp_path / "figures.json"
    args = ("--chart", chart, "--json", json, "--resamples", "50")
    code, text = run(compare_systems.main, *paths.values(), *args)
    assert code == 0 and chart.read_bytes().startswith(b"\x89PNG")
    rows = srsly.read_json(json)
    assert rows[0]["system"] == "second" and rows[0]["f"] == 1
    assert {row["system"] for row in rows if "difference" not in row} == {"base"}
    for row in rows:
        assert row["system"] in text and f"{100 * row['f']:.1f}" in text
    assert run(compare_systems.main, paths["gold"], paths["base"])[0] == 2


def test_the_last_table_says_how_sure_the_difference_is(tmp_path):
    for name, f in [("auto", 0.842), ("spancat", 0.803)]:
        scores = {"spans_sc_p": f, "spans_sc_r": f, "spans_sc_f": f, "spans_sc_per_type": {}}
        srsly.write_json(tmp_path / f"{name}.json", {**scores, "speed": 20_000.0})
    change = {"value": 0.039, "low": -0.004, "high": 0.0811, "p_value": 0.0712, "resamples": 1000}
    srsly.write_json(tmp_path / "analysis.json", {"comparison": {"f_score": change}})
    files = [tmp_path / "auto.json", tmp_path / "spancat.json"]
    code, told = run(score_table.main, *files, "--analysis", tmp_path / "analysis.json")
    assert code == 0 and "84.2" in told and "80.3" in told
    told = " ".join(told.split())
    assert "F of auto minus spancat: +3.9 (95 % interval -0.4 to +8.1, p = 0.071" in told
