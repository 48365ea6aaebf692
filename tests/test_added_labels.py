"""Labels that are added to a trained component: the old ones keep their weights, the new one is learned."""

import copy
import pickle

import numpy
import pytest
import spacy
import torch
from spacy.training import Example

from spacy_spanner.decoders.tags import TagScheme
from spacy_spanner.label_axes import CLASSES, LABELS, LabelAxis, Mark, with_old_weights

from .relations.examples import NAME as RELATIONS
from .relations.examples import make_examples as relation_examples
from .relations.examples import make_nlp as make_relations
from .relations.examples import train as train_relations
from .systems import SYSTEMS, TEXTS, TOK2VEC, found, make_examples, make_nlp, train, trained

NEW = "TIME"
WITH_TIME = [
    ("Nobody came to the harbour that night.", [(27, 37, NEW)]),
    ("Calder left that night.", [(0, 6, "PER"), (12, 22, NEW)]),
]
# How much scores may change: not at all where each label is scored by itself; where classes compete,
# by the little that the new one takes; MIN and Hire-NER also read their label vectors.
TOLERANCE = {"global_pointer": 1e-6, "efficient_global_pointer": 1e-6}
INEXACT = {"modularized_interaction": 0.05, "hierarchical_ner": 0.05}


@pytest.fixture(scope="module", params=SYSTEMS)
def nlp(request):
    return trained(request.param, output="spans")


def tag_names(scheme, n_labels):
    return [
        "O",
        *(
            f"{p}-{label}"
            for p in TagScheme(scheme, n_labels).prefixes
            for label in range(n_labels)
        ),
    ]


def test_label_is_added_to_a_component_of_another_pipeline():
    other = spacy.blank("en")
    pipe = other.add_pipe("global_pointer", source=trained("global_pointer", steps=2))
    pipe.add_label(NEW)
    pipe.threshold = 0.0
    doc = other(TEXTS[0])
    assert NEW in {span.label_ for span in doc.spans["sc"]}


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IO"])
def test_positions_of_tags_are_those_of_their_names(scheme):
    old, new = tag_names(scheme, 2), tag_names(scheme, 5)
    positions = TagScheme(scheme, 2).axis.positions(len(old), len(new))
    assert positions.tolist() == [new.index(tag) for tag in old]


@pytest.mark.parametrize(
    "axis,old,new,expected",
    [
        (LABELS, 2, 3, [0, 1]),
        (CLASSES, 3, 5, [0, 1, 2]),
        (LabelAxis(size=2), 4, 6, [0, 1, 2, 3]),
        (LabelAxis(blocks=2), 4, 6, [0, 1, 3, 4]),
        (LabelAxis(fixed=1, size=3), 6, 9, [0, 1, 2, 3, 4, 5]),
        (LabelAxis(fixed=1, blocks=2, size=2), 10, 14, [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]),
        (LABELS, 0, 2, []),
    ],
)
def test_places(axis, old, new, expected):
    assert axis.positions(old, new).tolist() == expected


def test_weights_on_two_axes():
    axis = TagScheme("BIO", 1).axis
    old = torch.arange(9.0).view(3, 3)  # O, B-0, I-0
    values = Mark((axis, axis), factor=2, offset=1).grown(torch.full((5, 5), -1.0), old)
    kept = [0, 1, 3]  # among O, B-0, B-1, I-0, I-1
    for i in range(5):
        for j in range(5):
            known = i in kept and j in kept
            assert values[i, j] == (old[kept.index(i), kept.index(j)] if known else -1)


class Unmarked(torch.nn.Module):
    def __init__(self, *, width, n_labels):
        super().__init__()
        self.score = torch.nn.Linear(width, n_labels)


def test_heads_that_do_not_mark_their_weights_are_refused():
    with pytest.raises(ValueError, match=r"S195.*Unmarked.*score.weight.*Say it"):
        with_old_weights(Unmarked(width=2, n_labels=3), Unmarked(width=2, n_labels=2).state_dict())


def test_every_weight_that_depends_on_labels_is_marked(nlp):
    shim = nlp.get_pipe(nlp.pipe_names[0]).model.shims[0]
    old, new = (shim.maker(**{**shim.sizes, "n_labels": n}) for n in (3, 5))
    state = with_old_weights(new, old.state_dict())
    changed = [k for k, v in new.state_dict().items() if v.shape != old.state_dict()[k].shape]
    assert changed and all(state[k].shape == new.state_dict()[k].shape for k in changed)


def test_old_labels_are_found_as_before(nlp):
    (name,) = nlp.pipe_names
    before = [found(doc) for doc in nlp.pipe(TEXTS)]
    more = pickle.loads(pickle.dumps(nlp))
    pipe = more.get_pipe(name)
    assert pipe.is_resizable and pipe.add_label(NEW) == 1 and pipe.add_label(NEW) == 0
    assert pipe.labels[-1] == NEW and pipe.model.get_dim("nO") == len(pipe.labels)
    tolerance = TOLERANCE.get(name, INEXACT.get(name, 1e-3))
    for old, doc in zip(before, more.pipe(TEXTS), strict=True):
        now = [span for span in found(doc) if span[2] != NEW]
        assert [span[:3] for span in now] == [span[:3] for span in old]
        scores = [[span[3] for span in spans] for spans in (now, old)]
        numpy.testing.assert_allclose(*scores, atol=tolerance)


def test_new_label_is_learned_beside_the_old_ones(nlp, tmp_path):
    (name,) = nlp.pipe_names
    more = pickle.loads(pickle.dumps(nlp))
    pipe = more.get_pipe(name)
    pipe.add_label(NEW)
    examples = make_examples(more)
    for text, spans in WITH_TIME:
        reference = more.make_doc(text)
        reference.spans["sc"] = [reference.char_span(*span) for span in spans]
        examples.append(Example(more.make_doc(text), reference))
    del examples[2]  # says that there is no time in the same sentence
    optimizer = more.resume_training()
    optimizer.learn_rate = 0.01
    for _ in range(60):
        more.update(examples, sgd=optimizer)
    for example in examples:
        if pipe.model.attrs["levels"] == 1 and "University" in example.text:
            continue  # it cannot learn the place inside
        wanted = {(s.start, s.end, s.label_) for s in example.reference.spans["sc"]}
        got = {span[:3] for span in found(more(example.text))}
        assert got == wanted or (pipe.model.attrs["levels"] == 1 and got <= wanted and len(got) > 1)
    more.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.get_pipe(name).labels == pipe.labels
    assert [found(doc) for doc in loaded.pipe(TEXTS)] == [found(doc) for doc in more.pipe(TEXTS)]


@pytest.mark.parametrize("factory", SYSTEMS)
def test_labels_can_be_added_between_steps_of_one_optimizer(factory):
    nlp = make_nlp(factory)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=optimizer)
    nlp.get_pipe(factory).add_label(NEW)
    losses = nlp.update(examples, sgd=optimizer)
    with nlp.use_params(optimizer.averages):
        nlp(TEXTS[0])
    assert numpy.isfinite(losses[factory])


@pytest.mark.parametrize("factory", SYSTEMS)
def test_updates_with_one_example_at_a_time(factory):
    nlp = make_nlp(factory)
    examples = make_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    for example in examples * 2:
        losses = nlp.update([example], sgd=optimizer)
        assert numpy.isfinite(losses[factory])


def test_bundle_of_contextual_heads():
    heads = {"seq": "ModularizedInteraction", "span": "HierarchicalNER"}
    model = {
        part: {"@architectures": f"spacy-spanner.{name}.v1", "tok2vec": None, "dropout": 0.0}
        for part, name in heads.items()
    }
    nlp = make_nlp("bundled_ner", model={**model, "decode_from": "span"}, output="spans")
    train(nlp, make_examples(nlp), steps=40)
    before = [[span[:3] for span in found(doc)] for doc in nlp.pipe(TEXTS)]
    memory = nlp.get_pipe("bundled_ner").model.shims[0].module.span.memory
    assert nlp.get_pipe("bundled_ner").add_label(NEW) == 1
    assert [[span[:3] for span in found(doc)] for doc in nlp.pipe(TEXTS)] == before
    grown_memory = nlp.get_pipe("bundled_ner").model.shims[0].module.span.memory
    assert torch.equal(grown_memory.values, memory.values) and len(memory.values)


POINTER = {"hidden_width": 16, "start_logit": -1.0}


@pytest.mark.parametrize(
    "architecture,model",
    [
        ("RelationPointer", {**POINTER, "links": "efficient"}),
        ("RelationPointer", {**POINTER, "links": "full"}),
        ("RelationClassifier", {}),
        ("RelationPointer", {**POINTER, "label_features": True}),
        ("RelationClassifier", {"hidden_width": None, "label_features": True}),
    ],
)
def test_labels_of_relations_and_of_their_entities(architecture, model):
    nlp = make_relations(architecture=architecture, model=model)
    train_relations(nlp, relation_examples(nlp))
    pipe = nlp.get_pipe(RELATIONS)
    docs = [eg.predicted for eg in relation_examples(nlp)]
    before = pipe.predict(docs)
    assert len(before.relations)
    assert pipe.add_label(NEW) == 1 and pipe.add_relation_label("during") == 1
    after = pipe.predict(docs)
    old = after.relations[:, 5] < len(pipe.relation_labels) - 1
    numpy.testing.assert_array_equal(after.relations[old], before.relations)
    numpy.testing.assert_allclose(after.scores[old], before.scores, atol=1e-6)
    old = after.entities.spans[:, 3] < len(pipe.labels) - 1
    numpy.testing.assert_array_equal(after.entities.spans[old], before.entities.spans)
    optimizer = nlp.resume_training()
    losses = nlp.update(relation_examples(nlp), sgd=optimizer)
    assert numpy.isfinite(losses[RELATIONS])
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert again.get_pipe(RELATIONS).relation_labels == pipe.relation_labels


def test_initialize_after_adding_a_label_begins_anew():
    nlp = trained("seq_ner", steps=2)
    pipe = nlp.get_pipe("seq_ner")
    before = copy.deepcopy(pipe.model.shims[0].module.tagger.project.weight.detach())
    pipe.add_label(NEW)
    nlp.initialize(lambda: make_examples(nlp))
    weight = pipe.model.shims[0].module.tagger.project.weight
    assert len(weight) == 1 + 2 * 4 and not torch.equal(weight[1:3], before[1:3])


def test_rehearsing_keeps_what_was_learned():
    """Without the old data: rehearsal on raw texts holds on to what plain training forgets."""

    def old_found(rehearse):
        nlp = trained("span_ner", output="spans")
        pipe = nlp.get_pipe("span_ner")
        before = [{span[:3] for span in found(doc)} for doc in nlp.pipe(TEXTS)]
        optimizer = nlp.resume_training()
        optimizer.learn_rate = 0.01
        assert pipe._rehearsal_model is not None
        for _ in range(40):
            nlp.update([Example(nlp.make_doc("Calder met Lind."), empty(nlp))], sgd=optimizer)
            if rehearse:
                raw = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
                losses = nlp.rehearse(raw, sgd=optimizer)
                assert losses["span_ner"] >= 0
        after = [{span[:3] for span in found(doc)} for doc in nlp.pipe(TEXTS[:3])]
        return sum(len(a & b) for a, b in zip(before, after))

    def empty(nlp):
        doc = nlp.make_doc("Calder met Lind.")
        doc.spans["sc"] = []
        return doc

    assert old_found(True) > old_found(False)


def test_rehearsing_does_not_widen_the_limits():
    nlp = trained("global_pointer", output="spans", steps=2)
    nlp.resume_training()
    pipe = nlp.get_pipe("global_pointer")
    pipe.threshold = 0.0  # everything up to the limit is found
    before = dict(pipe.cfg["seen"])
    raw = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    nlp.rehearse(raw)
    assert pipe.cfg["seen"] == before


def test_rehearsing_needs_an_encoder_of_its_own():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}
    nlp.add_pipe("seq_ner", config={"model": {"tok2vec": listener}})
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("seq_ner")
    assert pipe.rehearse(make_examples(nlp)) == {}  # nothing to rehearse yet
    nlp.resume_training()
    with pytest.raises(ValueError, match=r"S196.*replace_listeners"):
        pipe.rehearse(make_examples(nlp))
