"""What the relation component promises a spaCy user, in both of its modes."""

import pickle
from collections import Counter

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam, Config, fix_random_seed

from spacy_spanner.pipeline.relation_gold import Lost, RelationGold, row_relations
from spacy_spanner.relations import Relation, get_relations, register_extensions
from spacy_spanner.training_config import complete, join_config

from ..systems import TOK2VEC

NAME = "global_pointer_relations"
# Text, entities, and relations between them by number.
DATA = [
    (
        "Ada Lind left the University of Torvik in Norway.",
        [(0, 8, "PER"), (18, 38, "ORG"), (32, 38, "LOC"), (42, 48, "LOC")],
        [(0, 1, "left"), (1, 3, "in"), (2, 3, "in"), (1, 2, "in")],
    ),
    (
        "The Port Merrow Gazette wrote about Ines Calder.",
        [(4, 23, "ORG"), (4, 15, "LOC"), (36, 47, "PER")],
        [(0, 1, "in"), (0, 2, "about")],
    ),
    ("Nobody came to the harbour that night.", [], []),
    (
        "Calder met Lind in Torvik.",
        [(0, 6, "PER"), (11, 15, "PER"), (19, 25, "LOC")],
        [(0, 1, "met"), (1, 0, "met"), (0, 2, "in")],
    ),
]
TEXTS = [text for text, _, _ in DATA]
FLAT = [  # the same with no span inside another, for `doc.ents`
    (
        "Ada Lind left the University of Torvik in Norway.",
        [(0, 8, "PER"), (18, 38, "ORG"), (42, 48, "LOC")],
        [(0, 1, "left"), (1, 2, "in")],
    ),
    *DATA[2:],
]


def make_examples(nlp, data=DATA):
    register_extensions()
    examples = []
    for text, spans, relations in data:
        reference = nlp.make_doc(text)
        ends = [reference.char_span(*span) for span in spans]
        reference.spans["sc"] = ends
        if data is FLAT:
            reference.set_ents(ends, default="outside")
        reference._.relations = [Relation(ends[h], ends[t], label) for h, t, label in relations]
        examples.append(Example(nlp.make_doc(text), reference))
    return examples


def make_nlp(*, name=None, nlp=None, tok2vec=None, **settings):
    fix_random_seed(0)
    torch.manual_seed(0)
    nlp = nlp or spacy.blank("en")
    model = {"head_size": 16, "tok2vec": tok2vec or TOK2VEC}
    nlp.add_pipe(NAME, name=name, config={"model": model, **settings})
    return nlp


def train(nlp, examples, *, steps=60):
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    return nlp


def found(doc):
    """Relations in numbers, without and with their scores."""
    stored = get_relations(doc)
    return [relation[:7] for relation in stored], [relation.score for relation in stored]


def close(left, right):
    return all(a[0] == b[0] and numpy.allclose(a[1], b[1], atol=1e-5) for a, b in zip(left, right))


def predictions(nlp, texts=TEXTS):
    return [found(doc) for doc in [nlp(text) for text in texts]]


def expected(nlp, data):
    return [sorted(r[:7] for r in get_relations(eg.reference)) for eg in make_examples(nlp, data)]


@pytest.fixture(scope="module")
def nlp():
    nlp = make_nlp()
    return train(nlp, make_examples(nlp))


@pytest.fixture(scope="module")
def after_ruler():
    """Entities by hand-written patterns, relations by one more `add_pipe`."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    make_nlp(nlp=nlp, entities="given")
    train(nlp, make_examples(nlp, FLAT))
    patterns = {text[a:b]: label for text, spans, _ in FLAT for a, b, label in spans}
    ruler.add_patterns([{"label": label, "pattern": words} for words, label in patterns.items()])
    return nlp


def test_learns_the_training_data(nlp):
    for (text, spans, _), relations in zip(DATA, expected(nlp, DATA), strict=True):
        doc = nlp(text)
        assert {(s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]} == set(spans)
        assert sorted(found(doc)[0]) == relations
        assert all(0.5 < score <= 1 for score in found(doc)[1])
        assert doc.spans["sc"].attrs["scores"].shape == (len(spans),)


def test_evaluate_prints_relations_under_their_key(nlp, tmp_path, capsys):
    nlp.to_disk(tmp_path / "model")
    docs = DocBin(docs=[eg.reference for eg in make_examples(nlp)], store_user_data=True)
    docs.to_disk(tmp_path / "dev.spacy")
    from spacy.cli.evaluate import evaluate

    evaluate(tmp_path / "model", tmp_path / "dev.spacy", spans_key="relations", silent=False)
    printed = capsys.readouterr().out
    assert "SPAN F   100.00" in printed and "left" in printed


def test_all_scores_of_perfect_predictions_are_1(nlp):
    scores = nlp.evaluate(make_examples(nlp))
    assert all(
        scores[f"{kind}_{x}"] == 1 for kind in ("spans_sc", "rel", "rel_boundary") for x in "prf"
    )
    assert set(scores["rel_per_type"]) == {"left", "in", "about", "met"}


def test_given_entities_are_linked(after_ruler):
    for text, relations in zip([d[0] for d in FLAT], expected(after_ruler, FLAT), strict=True):
        doc = after_ruler(text)
        assert sorted(found(doc)[0]) == relations
        assert "sc" not in doc.spans
    pipe = after_ruler.get_pipe(NAME)
    assert pipe.labels == () and pipe.cfg["output"] == "ents"
    scores = after_ruler.evaluate(make_examples(after_ruler, FLAT))
    assert scores["rel_f"] == 1 and "spans_sc_f" not in scores


@pytest.mark.filterwarnings("ignore:.*but no document has any annotation")
def test_relations_follow_the_given_entities(after_ruler):
    pipe = after_ruler.get_pipe(NAME)
    doc = after_ruler.make_doc(TEXTS[3])
    assert pipe(doc)._.relations == []
    doc.set_ents([Span(doc, 0, 1, "ANY"), Span(doc, 2, 3, "NAME")], default="outside")
    assert {(r.head.label_, r.label, r.tail.text) for r in pipe(doc)._.relations} == {
        ("ANY", "met", "Lind"),
        ("NAME", "met", "Calder"),
    }


def test_given_entities_may_come_from_spacys_own_ner():
    nlp = spacy.blank("en")
    ner_model = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner"}
    ner_model |= {"extra_state_tokens": False, "hidden_width": 16, "maxout_pieces": 2}
    nlp.add_pipe("ner", config={"model": {**ner_model, "use_upper": True, "tok2vec": TOK2VEC}})
    make_nlp(nlp=nlp, entities="given")
    train(nlp, make_examples(nlp, FLAT), steps=40)
    scores = nlp.evaluate(make_examples(nlp, FLAT))
    assert scores["ents_f"] == 1 and scores["rel_f"] == 1


def test_given_entities_from_a_span_group():
    nlp = make_nlp(entities="given", output="spans", spans_key="mine")
    train(nlp, make_examples(nlp), steps=60)
    pipe = nlp.get_pipe(NAME)
    doc = make_examples(nlp)[0].reference
    doc.spans["mine"] = doc.spans["sc"]
    gold = sorted(r[:7] for r in get_relations(doc))
    assert sorted(found(pipe(doc))[0]) == gold


def test_warns_once_if_nobody_gives_entities(after_ruler):
    pipe = after_ruler.get_pipe(NAME)
    pipe._warned.clear()
    with pytest.warns(UserWarning, match=r"`doc\.ents`, but no document") as caught:
        for _ in range(2):
            pipe.predict([after_ruler.make_doc("Calder met Lind.")])
    assert len(caught) == 1


@pytest.mark.parametrize("output", ["spans", "ents", "both"])
def test_output_decides_where_entities_are(output):
    nlp = make_nlp(output=output, spans_key="mine", ents_key="flat")
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
    try:
        pipe.cfg["output"] = "ents"
        doc = nlp(TEXTS[0])
    finally:
        pipe.cfg["output"] = "spans"
    ents = {(e.start, e.end) for e in doc.ents}
    ends = {(x.start, x.end) for r in doc._.relations for x in (r.head, r.tail)}
    assert ends <= ents and len(doc._.relations) == 2


@pytest.mark.parametrize("mode", ["nlp", "after_ruler"])
def test_batch_order_and_processes_do_not_matter(mode, request):
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
def test_stored_pipelines_find_the_same(mode, request, tmp_path):
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


def test_listener_learns_too():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}
    make_nlp(nlp=nlp, tok2vec=listener)
    train(nlp, make_examples(nlp), steps=90)
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


def test_labels():
    nlp = make_nlp()
    pipe = nlp.get_pipe(NAME)
    assert pipe.add_label("LOC") == 1 and pipe.add_label("LOC") == 0
    assert pipe.add_relation_label("met") == 1 and pipe.add_relation_label("met") == 0
    for add in (pipe.add_label, pipe.add_relation_label):
        with pytest.raises(ValueError, match="E187"):
            add(3)
    nlp.initialize(lambda: make_examples(nlp))
    assert pipe.labels == ("LOC", "PER", "ORG") and pipe.relation_labels[0] == "met"
    for add in (pipe.add_label, pipe.add_relation_label):
        with pytest.raises(ValueError, match="E922"):
            add("NEW")
    again = make_nlp().get_pipe(NAME)
    again.initialize(lambda: make_examples(nlp), labels=pipe.label_data)
    assert again.label_data == pipe.label_data


def test_given_labels_leave_out_others():
    nlp = make_nlp()
    pipe = nlp.get_pipe(NAME)
    labels = {"entities": ["PER", "LOC"], "relations": ["met"]}
    with pytest.warns(UserWarning) as caught:
        pipe.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    told = " ".join(str(warning.message) for warning in caught)
    assert "2 of 10 gold spans" in told and "7 with a label the component does not have" in told
    nlp.update(make_examples(nlp))


def test_what_is_missing_is_named():
    nlp = make_nlp(spans_key="other")
    with pytest.raises(ValueError, match=r"S001|'other'.*'sc'"):
        nlp.initialize(lambda: make_examples(nlp))
    nlp = make_nlp(entities="given")
    with pytest.raises(ValueError, match="no relations in the training data"):
        nlp.initialize(lambda: [Example(nlp.make_doc("a"), nlp.make_doc("a"))])
    with pytest.raises(ValueError, match="add_relation_label"):
        nlp.get_pipe(NAME).add_label("PER")
    with pytest.raises(ValueError, match="E143"):
        labels = {"relations": []}
        nlp.get_pipe(NAME).initialize(lambda: make_examples(nlp), labels=labels)


@pytest.mark.parametrize(
    "settings",
    [
        {"entities": "none"},
        {"entities": "given", "output": "both"},
        {"output": "text"},
        {"threshold": 2.0},
        {"relation_threshold": -0.1},
        {"overlap": 300},
        {"max_cells": 0},
        {"ents_key": "sc"},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="is not possible"):
        make_nlp(**settings)


def test_refuses_the_model_of_an_entity_component():
    model = {"@architectures": "spacy-spanner.GlobalPointer.v1", "tok2vec": TOK2VEC}
    with pytest.raises(ValueError, match="architecture of its model block"):
        spacy.blank("en").add_pipe(NAME, config={"model": model})


def test_never_initialized_component_is_saved_and_loaded(tmp_path):
    nlp = make_nlp()
    nlp.get_pipe(NAME).add_relation_label("met")
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe(NAME).relation_labels == ("met",)
    with pytest.raises(ValueError, match=r"not been initialized|E109|initialize"):
        loaded("Some text.")


@pytest.mark.parametrize("missing", ["relations", "entities", "both"])
def test_unannotated_documents_teach_nothing(missing):
    nlp = make_nlp()
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe(NAME)
    before = pipe.model.to_bytes()
    for example in examples:
        if missing != "entities":
            example.reference.user_data.clear()
        if missing != "relations":
            del example.reference.spans["sc"]
    losses = pipe.update(examples, sgd=Adam(0.1, L2=0.0), losses={})
    assert losses[NAME] == 0 and pipe.model.to_bytes() == before


@pytest.mark.filterwarnings("ignore:.*gold spans cannot be learned")
def test_other_tokens_than_in_the_gold():
    """A span that the tokens of the prediction cannot express is counted, the others are moved."""
    nlp = make_nlp()
    register_extensions()
    words, spaces = ["Ann", "met", "Bo", "b", "in", "Riga"], [True, True, False, True, True, False]
    reference = Doc(nlp.vocab, words=words, spaces=spaces)
    reference.spans["sc"] = [
        Span(reference, *s) for s in [(0, 1, "P"), (2, 3, "P"), (2, 4, "P"), (5, 6, "L")]
    ]
    ann, half, bob, riga = reference.spans["sc"]
    reference._.relations = [
        Relation(ann, bob, "met"),
        Relation(half, riga, "in"),
        Relation(ann, riga, "in"),
    ]
    example = Example(nlp.make_doc("Ann met Bob in Riga"), reference)
    with pytest.warns(UserWarning, match="1 of 3 gold relations cannot be learned: 1 misaligned"):
        nlp.initialize(lambda: [example])
    pipe = nlp.get_pipe(NAME)
    gold = pipe._gold_batch([example], Lost()).gold
    ids = {label: i for i, label in enumerate(pipe.relation_labels)}
    assert gold.relations.tolist() == [[0, 0, 1, 2, 3, ids["met"]], [0, 0, 1, 4, 5, ids["in"]]]
    assert gold.known[0].tolist() == [True, True, False, True, True]


def test_relations_between_rows_are_counted():
    nlp = make_nlp(window=6, overlap=2)
    with pytest.warns(UserWarning, match=r"gold relations cannot be learned: .* with ends too far"):
        nlp.initialize(lambda: make_examples(nlp))


def test_relations_to_what_is_no_entity_are_counted():
    nlp = make_nlp()
    examples = make_examples(nlp)
    reference = examples[0].reference
    reference.spans["sc"] = list(reference.spans["sc"])[:3]
    with pytest.warns(UserWarning, match=r"2 of 9 gold relations .* 2 with an end that is no gold"):
        nlp.initialize(lambda: examples)


def test_rows_hold_relations_as_a_slow_loop_says():
    rng = numpy.random.default_rng(0)
    starts = rng.integers(0, 18, size=(60, 2))
    ends = starts + rng.integers(1, 4, size=(60, 2))
    table = numpy.stack([starts[:, 0], ends[:, 0], starts[:, 1], ends[:, 1]], axis=1)
    table = numpy.column_stack([numpy.minimum(table, 20), rng.integers(0, 2, 60)])
    rows = numpy.array([[0, 0, 10, 0, 8], [0, 6, 16, 8, 14], [0, 12, 20, 14, 20]])
    counts = Counter()
    got = row_relations([RelationGold(None, table)], rows, counts)
    slow, lost = [], 0
    for number, (_, start, end, own_start, own_end) in enumerate(rows):
        for relation in table.tolist():
            first, last = min(relation[:4]), max(relation[:4])
            holds = start <= first and last <= end
            if holds:
                slow.append([number, *[x - start for x in relation[:4]], relation[4]])
            lost += own_start <= first < own_end and not holds
    assert got.tolist() == slow and list(counts.values()) == [lost] and lost > 0


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


@pytest.mark.parametrize("output,entities", [(None, "spans_mine_f"), ("ents", "ents_f")])
def test_training_config(output, entities):
    config = complete(join_config(NAME, "hash", output=output, spans_key="mine", max_width=4))
    assert config["components"][NAME]["model"]["max_width"] == 4
    weights = config["training"]["score_weights"]
    assert weights["rel_f"] == 1.0 and weights[entities] == 0.0
    assert sum(weight or 0 for weight in weights.values()) == 1.0


def test_wider_entities_than_the_limit_are_counted():
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"model": {"max_width": 2, "tok2vec": TOK2VEC}})
    with pytest.warns(UserWarning, match="2 of 10 gold spans cannot be learned: 2 wider than"):
        nlp.initialize(lambda: make_examples(nlp))
