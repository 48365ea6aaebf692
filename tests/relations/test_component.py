"""What the relation component promises a spaCy user, in both of its modes."""

import pickle

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training import Example
from thinc.api import Config

from spacy_spanner.relations import Relation, StoredRelation, get_relations, set_relations
from spacy_spanner.relations.gold import Lost
from spacy_spanner.tuning.relations import fit_relations

from ..systems import TOK2VEC
from .examples import (
    DATA,
    FLAT,
    NAME,
    TEXTS,
    close,
    expected,
    found,
    make_examples,
    make_nlp,
    predictions,
    train,
)


def test_learns_the_training_data(nlp):
    for (text, spans, _), relations in zip(DATA, expected(nlp, DATA), strict=True):
        doc = nlp(text)
        assert {(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]} == set(spans)
        assert sorted(found(doc)[0]) == relations
        assert all(0.5 < score <= 1 for score in found(doc)[1])
        assert doc.spans["sc"].attrs["scores"].shape == (len(spans),)


def test_evaluate_prints_relations(nlp, tmp_path, capsys):
    nlp.to_disk(tmp_path / "model")
    docs = DocBin(docs=[eg.reference for eg in make_examples(nlp)], store_user_data=True)
    docs.to_disk(tmp_path / "dev.spacy")
    from spacy.cli.evaluate import evaluate

    evaluate(tmp_path / "model", tmp_path / "dev.spacy", silent=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["all", "relations", "100.00", "100.00", "100.00"] in lines
    assert ["left", "(relation)", "100.00", "100.00", "100.00"] in lines
    evaluate(tmp_path / "model", tmp_path / "dev.spacy", spans_key="relations", silent=False)
    printed = capsys.readouterr().out
    assert "SPAN F   100.00" in printed and "left" in printed


def test_all_scores_of_perfect_predictions_are_1(nlp):
    scores = nlp.evaluate(make_examples(nlp))
    assert all(
        scores[f"{kind}_{x}"] == 1 for kind in ("spans_sc", "rel", "rel_boundary") for x in "prf"
    )
    assert set(scores["rel_per_type"]) == {"left", "in", "about", "met"}


def test_only_pairs_of_labels_seen_in_training(nlp):
    pipe = nlp.get_pipe(NAME)
    before = found(nlp(TEXTS[0]))[0]
    pairs = list(pipe.cfg["label_pairs"])
    assert ["PER", "left", "ORG"] in pairs and ["PER", "in", "LOC"] in pairs
    try:
        pipe.seen_pairs = True
        assert found(nlp(TEXTS[0]))[0] == before
        pipe.cfg["label_pairs"] = [["PER", "left", "ORG"]]
        assert {r[6] for r in found(nlp(TEXTS[0]))[0]} == {"left"}
        nlp.get_pipe(NAME)._remember_pairs(make_examples(nlp))
        assert pipe.cfg["label_pairs"] == pairs
    finally:
        pipe.configure(seen_pairs=False, label_pairs=pairs)


def test_symmetric_relations_are_written_once(architecture):
    """As a slow loop says: of the two directions the larger score, from the entity that begins first."""
    once = make_nlp(architecture=architecture, symmetric=["met"])
    examples = make_examples(once)
    gold = get_relations(examples[3].reference)
    backwards = [r for r in gold if not (r.label == "met" and r.head_start < r.tail_start)]
    set_relations(examples[3].reference, backwards)
    train(once, examples)
    pipe = once.get_pipe(NAME)
    table = pipe._gold_batch([examples[3]], Lost()).gold.relations
    met = pipe.relation_labels.index("met")
    assert sorted(row[1:5] for row in table.tolist() if row[5] == met) == [
        [0, 1, 2, 3],
        [2, 3, 0, 1],
    ]
    pipe.symmetric = []
    pipe.relation_threshold = 0.0
    directed = {r[:7]: r.score for r in get_relations(once(TEXTS[3]))}
    pipe.symmetric = ["met"]
    expected = {}
    for (*head, name, tail_start, tail_end, tail_name, label), score in directed.items():
        first, second = (*head, name), (tail_start, tail_end, tail_name)
        if label == "met":
            first, second = sorted([first, second])
        key = (*first, *second, label)
        expected[key] = max(score, expected.get(key, 0.0))
    doc = once(TEXTS[3])
    assert {r[:7]: r.score for r in get_relations(doc)} == pytest.approx(expected)
    pipe.relation_threshold = 0.5
    assert once.evaluate(examples)["rel_f"] == 1.0
    assert sum(r.label == "met" for r in get_relations(once(TEXTS[3]))) == 1


def test_relations_across_sentences():
    """Where many gold relations cross sentences, they are learned and found across them."""
    nlp = make_nlp(pack_sentences=True)
    nlp.add_pipe("sentencizer", first=True)
    text, spans, _ = DATA[3]
    joined = f"{text} {TEXTS[2]}"
    doc = nlp.make_doc(joined.replace("harbour", "Torvik"))
    ends = [doc.char_span(*span) for span in spans] + [doc[10:11]]
    ends[3].label_ = "LOC"
    doc.spans["sc"] = ends
    for token in doc:
        token.is_sent_start = token.i in (0, 6)
    doc._.relations = [Relation(ends[0], ends[3], "in"), Relation(ends[3], ends[1], "of")]
    train(nlp, [Example(nlp.make_doc(doc.text), doc)])
    found_there = {(r.head_start, r.label, r.tail_start) for r in get_relations(nlp(doc.text))}
    assert found_there == {(0, "in", 10), (10, "of", 2)} and len(list(nlp(doc.text).sents)) == 2


@pytest.mark.parametrize("output", ["spans", "ents", "both"])
def test_output_decides_where_entities_are(output, architecture):
    nlp = make_nlp(architecture=architecture, output=output, spans_key="mine", ents_key="flat")
    examples = make_examples(nlp, FLAT)
    for example in examples:
        example.reference.spans["mine"] = example.reference.spans["sc"]
        if output == "ents":
            del example.reference.spans["mine"]
        else:
            example.reference.set_ents([], default="missing")
    train(nlp, examples)
    doc = nlp(FLAT[0][0])
    assert ("mine" in doc.spans) == (output != "ents") and "sc" not in doc.spans
    assert ("flat" in doc.spans) == (output != "spans")
    assert bool(doc.ents) == (output != "spans")
    assert sorted(found(doc)[0]) == expected(nlp, FLAT)[0]


def test_relations_of_dropped_entities_are_dropped(nlp):
    """Flat entities are chosen among those found; a relation needs both of its ends."""
    pipe = nlp.get_pipe(NAME)
    nested = found(nlp(TEXTS[0]))[0]
    try:
        pipe.cfg["output"] = "ents"
        doc = nlp(TEXTS[0])
    finally:
        pipe.cfg["output"] = "spans"
    ents = {(e.start, e.end) for e in doc.ents}
    kept = [r for r in nested if {r[:2], r[3:5]} <= ents]
    assert found(doc)[0] == kept and 0 < len(kept) < len(nested)


@pytest.mark.parametrize("mode", ["nlp", "after_ruler"])
def test_batch_order_and_processes_do_not_matter(mode, architecture, request):
    nlp = request.getfixturevalue(mode)
    texts = [*TEXTS, "", "  ", "Lind", "Torvik " * 40]
    alone = predictions(nlp, texts)
    assert any(relations for relations, _ in alone)
    assert close(alone, [found(doc) for doc in list(nlp.pipe(texts, batch_size=100))])
    backwards = [found(doc) for doc in list(nlp.pipe(texts[::-1], batch_size=3))]
    assert close(alone, backwards[::-1])
    processes = [found(doc) for doc in list(nlp.pipe(texts, n_process=2, batch_size=3))]
    assert close(alone, processes) and len(processes) == len(texts)


@pytest.mark.parametrize("mode", ["nlp", "after_ruler"])
def test_stored_pipelines_find_the_same(mode, architecture, request, tmp_path):
    nlp = request.getfixturevalue(mode)
    before = predictions(nlp)
    nlp.to_disk(tmp_path / "model")
    assert predictions(spacy.load(tmp_path / "model")) == before
    empty = spacy.util.load_model_from_config(nlp.config).get_pipe(NAME)
    empty.from_bytes(nlp.get_pipe(NAME).to_bytes())
    assert empty.label_data == nlp.get_pipe(NAME).label_data
    assert [found(empty(nlp(text))) for text in TEXTS] == before
    assert predictions(pickle.loads(pickle.dumps(nlp))) == before
    config = Config().from_str(nlp.config.to_str(), interpolate=False)
    assert spacy.util.load_model_from_config(config).config == nlp.config


def test_results_survive_a_docbin(nlp):
    doc = nlp(TEXTS[0])
    data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    again = next(iter(DocBin().from_bytes(data).get_docs(nlp.vocab)))
    assert found(again) == found(doc) and found(doc)[0]


def test_listener_learns_too(architecture):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}
    make_nlp(architecture=architecture, nlp=nlp, tok2vec=listener)
    train(nlp, make_examples(nlp), steps=150)
    before = predictions(nlp)
    assert [sorted(r) for r, _ in before] == expected(nlp, DATA)
    nlp.replace_listeners("tok2vec", NAME, ["model.tok2vec"])
    assert close(predictions(nlp), before)


def test_empty_documents(nlp):
    for doc in nlp.pipe(["", " ", "\n\n"]):
        assert get_relations(doc) == [] and len(doc.spans["sc"]) == 0
    assert nlp.get_pipe(NAME).predict([]).relations.shape == (0, 6)
    copied = pickle.loads(pickle.dumps(nlp))
    empty = Example(nlp.make_doc(""), nlp.make_doc(""))
    copied.update([empty], sgd=copied.resume_training())
    copied.update([empty, *make_examples(nlp)], sgd=copied.resume_training())


def test_long_documents_find_each_relation_once(nlp):
    pipe = nlp.get_pipe(NAME)
    before = dict(pipe.cfg)
    try:
        pipe.cfg.update(window=24, overlap=16)
        doc = nlp(" ".join(TEXTS * 6))
        stored = [relation[:7] for relation in get_relations(doc)]
        assert len(set(stored)) == len(stored) and stored == sorted(stored)
        assert stored[-1][0] > len(doc) - 24  # the last window is looked at
        entities = {(s.start, s.end) for s in doc.spans["sc"]}
        assert {r[:2] for r in stored} | {r[3:5] for r in stored} <= entities
    finally:
        pipe.cfg.update(before)


def test_two_components_keep_what_the_other_found(nlp, architecture):
    """Each finds relations of its own labels; gold relations are replaced as ever."""
    pipe = nlp.get_pipe(NAME)
    doc = nlp(TEXTS[3])
    before = sorted(get_relations(doc))
    other = StoredRelation(0, 1, "PER", 2, 3, "PER", "cousin", 0.9)
    set_relations(doc, [*before, other, other._replace(label="gold", score=None)])
    assert get_relations(pipe(doc)) == sorted([*before, other])
    settings = fit_relations(nlp, NAME, pipe, [(doc, doc.copy())])
    assert settings["relation_"].candidates.n_gold == len(before) + 1
