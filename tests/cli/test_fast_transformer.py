"""A pipeline of spacy-transformers by our encoder: the same results, or as it was."""

import json

import pytest
from spacy.language import Language

from spacy_spanner import use_fastest_encoder
from spacy_spanner.distributed.inputs import InputFile
from spacy_spanner.distributed.records import cut_files
from spacy_spanner.distributed.worker import Worker, WorkerSettings
from spacy_spanner.migration import loaded

from ..systems import make_nlp
from .test_migrate import trained_pipeline

pytestmark = pytest.mark.spacy_transformers
TEXTS = ["Ada Lind left Torvik.", "", "Nobody came to the harbour that night. " * 9]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    return trained_pipeline(tmp_path_factory.mktemp("trained"), "bert")


def found(nlp, texts):
    return [
        {
            "spans": [(s.start, s.end, s.label_) for s in doc.spans["sc"]],
            "tags": [t.tag_ for t in doc],
        }
        for doc in nlp.pipe(texts)
    ]


def test_the_same_by_our_encoder(nlp):
    new, encoder = use_fastest_encoder(nlp, TEXTS)
    assert new is not nlp and encoder.startswith(loaded.OURS)
    assert found(new, TEXTS) == found(nlp, TEXTS)
    assert new.pipe_names == nlp.pipe_names
    assert nlp.get_pipe_meta("transformer").factory == "transformer"  # the old one is as it was


def test_components_that_are_off_stay_off(nlp):
    with nlp.select_pipes(disable=["tagger"]):
        new, encoder = use_fastest_encoder(nlp)
    assert encoder.startswith(loaded.OURS) and new.disabled == ["tagger"]


def test_settings_that_were_changed_are_kept(nlp):
    pointer = nlp.get_pipe("global_pointer")
    before = pointer.cfg["threshold"]
    pointer.configure(threshold=0.9)
    try:
        new, _ = use_fastest_encoder(nlp)
        assert new.get_pipe("global_pointer").cfg["threshold"] == 0.9
    finally:
        pointer.configure(threshold=before)


def test_a_component_of_others_may_read_the_old_vectors(nlp):
    @Language.component("reads_trf_data")
    def reads_trf_data(doc):
        return doc

    nlp.add_pipe("reads_trf_data")
    try:
        same, encoder = use_fastest_encoder(nlp)
        assert same is nlp
        assert encoder == f"{loaded.THEIRS} (component 'reads_trf_data' may read `doc._.trf_data`)"
    finally:
        nlp.remove_pipe("reads_trf_data")


def test_a_second_encoder(nlp):
    nlp.add_pipe("tok2vec")
    try:
        same, encoder = use_fastest_encoder(nlp)
        assert same is nlp and "second encoder" in encoder
    finally:
        nlp.remove_pipe("tok2vec")


def test_vectors_that_differ(nlp, monkeypatch):
    monkeypatch.setattr(loaded, "TOLERANCE", -1.0)
    same, encoder = use_fastest_encoder(nlp)
    assert same is nlp and "vectors differ" in encoder


def test_texts_that_fail(nlp, monkeypatch):
    def fail(*args):
        raise KeyError("no such thing")

    monkeypatch.setattr(loaded, "compare", fail)
    same, encoder = use_fastest_encoder(nlp)
    assert same is nlp and "no such thing" in encoder


def test_pipelines_without_it():
    nlp = make_nlp("global_pointer")
    assert use_fastest_encoder(nlp) == (nlp, "")


@pytest.mark.parametrize("fast", [True, False])
def test_annotate_writes_the_same(nlp, tmp_path, fast):
    nlp.to_disk(tmp_path / "pipeline")
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    shards = cut_files([InputFile("texts", str(source), "jsonl")], 2)
    rows = {}
    for use in (fast, False):
        output = tmp_path / f"out-{use}-{fast}"
        values = (str(tmp_path / "pipeline"), str(output), "jsonl", "text", (), False, 4000)
        results = list(Worker(WorkerSettings(*values, fast_transformer=use)).run(shards))
        assert {r.encoder.split(" ")[0] for r in results} == {loaded.OURS if use else ""}
        parts = sorted(output.glob("part-*"))
        rows[use] = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    for one, two in zip(rows[fast], rows[False], strict=True):
        assert one["text"] == two["text"]
        places = [
            [(e["start"], e["end"], e["label"]) for e in row["entities"]] for row in (one, two)
        ]
        assert places[0] == places[1]
        scores = [[e["score"] for e in row["entities"] if e["score"]] for row in (one, two)]
        assert scores[0] == pytest.approx(scores[1], abs=2e-4)
