"""A head of ours in a packaged pipeline of spaCy's, as in the guide: the others give what they gave."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import spacy
from spacy.cli.package import package
from spacy.cli.train import train
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_spanner.training_config import complete, join_config

from .systems import TEXTS, TOK2VEC, close, found, make_examples, trained
from .systems import train as train_examples

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "embed.md"
WIDTH = TOK2VEC["width"]
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "*"}
# Words, tags, heads and labels of a dependency tree, entities.
SENTENCES = [
    (
        ["Ada", "Lind", "left", "the", "University", "of", "Torvik", "in", "Norway", "."],
        ["NNP", "NNP", "VBD", "DT", "NNP", "IN", "NNP", "IN", "NNP", "."],
        [1, 2, 2, 4, 2, 4, 5, 2, 7, 2],
        ["compound", "nsubj", "ROOT", "det", "dobj", "prep", "pobj", "prep", "pobj", "punct"],
        ["B-PERSON", "I-PERSON", "O", "O", "B-ORG", "I-ORG", "I-ORG", "O", "B-GPE", "O"],
    ),
    (
        ["Calder", "met", "Lind", "in", "Torvik", "."],
        ["NNP", "VBD", "NNP", "IN", "NNP", "."],
        [1, 1, 1, 1, 3, 1],
        ["nsubj", "ROOT", "dobj", "prep", "pobj", "punct"],
        ["B-PERSON", "O", "B-PERSON", "O", "B-GPE", "O"],
    ),
    (
        ["Nobody", "came", "to", "the", "harbour", "that", "night", "."],
        ["NN", "VBD", "IN", "DT", "NN", "DT", "NN", "."],
        [1, 1, 1, 4, 2, 6, 1, 1],
        ["nsubj", "ROOT", "prep", "det", "pobj", "det", "npadvmod", "punct"],
        ["O"] * 8,
    ),
]


def knowledge_base(vocab):
    kb = InMemoryLookupKB(vocab, entity_vector_length=4)
    for name, first in [("Q1", 1.0), ("Q2", -1.0)]:
        kb.add_entity(entity=name, freq=10, entity_vector=[first, 0.0, 0.0, 0.0])
    kb.add_alias(alias="Torvik", entities=["Q1", "Q2"], probabilities=[0.6, 0.3])
    return kb


def make_pipeline():
    """Everything that spaCy's pipelines have, over one encoder."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    for name, settings in [("tagger", {}), ("parser", {"min_action_freq": 1}), ("ner", {})]:
        nlp.add_pipe(name, config={"model": {"tok2vec": LISTENER}, **settings})
    ruler = nlp.add_pipe("entity_ruler")
    spans = nlp.add_pipe("span_ruler", config={"spans_key": "ruler"})
    linker = nlp.add_pipe("entity_linker", config={"model": {"tok2vec": TOK2VEC}})
    linker.set_kb(knowledge_base)
    examples = []
    for words, tags, heads, deps, ents in SENTENCES:
        gold = Doc(nlp.vocab, words=words, tags=tags, heads=heads, deps=deps, ents=ents)
        linked = [
            spacy.tokens.Span(
                gold, e.start, e.end, label=e.label, kb_id="Q2" if e.text == "Torvik" else 0
            )
            for e in gold.ents
        ]
        gold.set_ents(linked, default="outside")
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    optimizer = nlp.initialize(lambda: examples)
    ruler.add_patterns([{"label": "PLACE", "pattern": [{"LOWER": "harbour"}]}])
    spans.add_patterns([{"label": "NAME", "pattern": [{"IS_TITLE": True}]}])
    optimizer.learn_rate = 0.01
    for _ in range(30):
        nlp.update(examples, sgd=optimizer)
    return nlp


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The pipeline as a package, installed in a folder of its own, and the data to learn from."""
    path = tmp_path_factory.mktemp("installed")
    make_pipeline().to_disk(path / "model")
    package(path / "model", path, name="my_pipeline", create_sdist=False)
    [source] = path.glob("en_my_pipeline-*")
    install = [
        "install",
        "--no-deps",
        "--no-build-isolation",
        "-q",
        "--target",
        path / "site",
        source,
    ]
    subprocess.run([sys.executable, "-m", "pip", *map(str, install)], check=True)
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))] * 6
    for part in ("train", "dev"):
        DocBin(docs=docs).to_disk(path / f"{part}.spacy")
    config = complete(join_config("global_pointer", "hash"))
    config["training"].update(max_steps=60, eval_frequency=30)
    config["training"]["optimizer"]["learn_rate"] = 0.005
    config.to_disk(path / "config.cfg")
    sys.path.insert(0, str(path / "site"))
    yield path
    sys.path.remove(str(path / "site"))
    shutil.rmtree(path)


def annotation(nlp):
    """All that the components of spaCy write."""
    docs = list(nlp.pipe([*TEXTS, "Ines Calder saw the harbour of Torvik. Lind left."]))
    columns = ["TAG", "DEP", "HEAD", "SENT_START", "ENT_IOB", "ENT_TYPE", "ENT_KB_ID"]
    return [
        (
            doc.to_array(columns).tolist(),
            [(s.start, s.end, s.label_) for s in doc.spans["ruler"]],
            [(e.text, e.label_, e.kb_id_) for e in doc.ents],
        )
        for doc in docs
    ]


def guide_code():
    """The two Python blocks of the guide that make a config."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf8"), flags=re.S)
    return [
        block.replace("my_pipeline", "en_my_pipeline") for block in blocks if "joint.cfg" in block
    ]


@pytest.mark.parametrize("learns", [False, True], ids=["frozen encoder", "encoder that learns"])
def test_the_others_give_what_they_gave(installed, learns, monkeypatch, tmp_path):
    monkeypatch.chdir(installed)
    before = annotation(spacy.load("en_my_pipeline"))
    assert any(entities for _, _, entities in before) and any(spans for _, spans, _ in before)
    names = {}
    for block in guide_code()[: 1 + learns]:
        exec(block, names)
    train(installed / "joint.cfg", tmp_path)
    nlp = spacy.load(tmp_path / "model-last")
    assert nlp.pipe_names[-1] == "global_pointer" and len(nlp.pipe_names) == 8
    assert annotation(nlp) == before
    original = spacy.load("en_my_pipeline").get_pipe("tok2vec").model.to_bytes()
    assert (nlp.get_pipe("tok2vec").model.to_bytes() == original) != learns
    doc = nlp(TEXTS[0])
    assert ("Ada Lind", "PER") in {(span.text, span.label_) for span in doc.spans["sc"]}


HEADS = ("span_ner", "hierarchical_ner")


@pytest.fixture(scope="module")
def two_heads(installed):
    """Two heads of ours, each with its own encoder, behind the packaged pipeline; and what each of
    them finds alone."""
    nlp, alone = spacy.load("en_my_pipeline"), {}
    for factory in HEADS:
        source = trained(factory, output="spans", spans_key=factory)
        alone[factory] = [found(doc, factory) for doc in list(source.pipe(TEXTS))]
        nlp.add_pipe(factory, source=source)
    return nlp, alone


def test_two_heads_give_what_each_gives_alone(two_heads):
    nlp, alone = two_heads
    assert annotation(nlp) == annotation(spacy.load("en_my_pipeline"))
    docs = list(nlp.pipe(TEXTS))
    for factory in HEADS:
        assert all(map(close, [found(doc, factory) for doc in docs], alone[factory]))


def test_two_heads_over_one_encoder_are_trained_together():
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    for factory, key in [("global_pointer", "nested"), ("seq_ner", "flat")]:
        settings = {"output": "spans", "spans_key": key, "ents_key": f"{key}_ents"}
        nlp.add_pipe(factory, config={"model": {"tok2vec": LISTENER}, **settings})
    examples = make_examples(nlp)
    for example in examples:
        spans = list(example.reference.spans["sc"])
        example.reference.spans["nested"] = spans
        example.reference.spans["flat"] = list(example.reference.ents)
    train_examples(nlp, examples, steps=80)
    scores = nlp.evaluate(examples)
    assert scores["spans_nested_f"] > 0.9 and scores["spans_flat_f"] > 0.9


@pytest.mark.parametrize("other", ["global_pointer", "spancat"])
def test_components_that_write_the_same_spans_are_named(other):
    nlp = spacy.blank("en")
    nlp.add_pipe(other)
    nlp.add_pipe("seq_ner", config={"model": {"tok2vec": TOK2VEC}, "output": "spans"})
    with pytest.warns(UserWarning, match=f"SW26.*'seq_ner' overwrites .* '{other}' .*'sc'"):
        nlp.initialize(lambda: make_examples(nlp))


def test_eight_threads_on_one_pipeline(two_heads):
    nlp, _ = two_heads
    texts = [*TEXTS, "Ines Calder saw the harbour.", "Lind left Torvik."] * 4
    expected = [nlp(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(nlp, texts))
    for doc, right in zip(got, expected, strict=True):
        columns = ["TAG", "HEAD", "ENT_TYPE", "ENT_KB_ID"]
        assert doc.to_array(columns).tolist() == right.to_array(columns).tolist()
        assert all(close(found(doc, key), found(right, key)) for key in HEADS)
