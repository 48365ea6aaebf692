"""Counts of a corpus and the advice drawn from them, on documents small enough to count by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_spanner.corpus.advice import advice
from spacy_spanner.corpus.record import CorpusError
from spacy_spanner.corpus.settings import settings_from_config
from spacy_spanner.corpus.stats import Settings, Stats, corpus_stats, count_doc
from spacy_spanner.relations import StoredRelation, set_relations
from spacy_spanner.training_config import join_config

VOCAB = Vocab()


def make_doc(text, spans=(), *, key="sc", doc_id=None, ents=None):
    doc = Doc(VOCAB, words=text.split(" "))
    if key is not None:
        doc.spans[key] = [Span(doc, start, end, label=label) for start, end, label in spans]
    if ents is not None:
        doc.set_ents([Span(doc, *ent) for ent in ents], default="outside")
    if doc_id is not None:
        doc.user_data["doc"] = doc_id
    return doc


def write(path, docs):
    DocBin(store_user_data=True, docs=docs).to_disk(path)
    return path


def stats_of(*docs, **settings):
    stats = Stats()
    for doc in docs:
        count_doc(doc, Settings(**settings), stats)
    return stats


def test_counts_by_hand():
    spans = [(0, 4, "A"), (1, 3, "B"), (1, 2, "B"), (1, 2, "B"), (1, 2, "C"), (3, 5, "A")]
    stats = stats_of(
        make_doc("a b c d .", spans, doc_id="x"),
        make_doc("e f"),
        make_doc("g", key=None),
        make_doc("h", [(0, 0, "A")]),
        max_width=2,
    )
    assert (stats.docs, stats.docs_unannotated, stats.tokens, stats.longest_doc) == (4, 1, 9, 5)
    assert (stats.spans, stats.duplicates, stats.empty, stats.two_labels) == (5, 1, 1, 1)
    assert (stats.nested, stats.crossing, stats.max_depth) == (4, 2, 3)
    assert stats.labels == {"A": 2, "B": 2, "C": 1}
    assert stats.depths == {1: 2, 2: 1, 3: 2}
    assert stats.lengths == {4: 1, 2: 2, 1: 2}
    assert (stats.too_wide, stats.punct_edges, stats.blank_edges) == (1, 1, 0)
    assert stats.doc_ids == {"x"}
    assert stats.as_dict()["widths"] == {
        "50": 2,
        "75": 2,
        "85": 4,
        "90": 4,
        "95": 4,
        "99": 4,
        "100": 4,
    }


@given(st.lists(st.integers(1, 30), min_size=1), st.sampled_from([50, 75, 85, 90, 95, 99, 100]))
def test_width_is_the_smallest_that_holds_the_share(lengths, share):
    stats = Stats(spans=len(lengths))
    stats.lengths.update(lengths)
    width = stats.width_for(share)
    assert sum(length <= width for length in lengths) * 100 >= share * len(lengths)
    assert sum(length < width for length in lengths) * 100 < share * len(lengths)


def test_window_cuts_long_spans_only_where_documents_are_cut():
    long_doc = make_doc(" ".join("abcdefghijkl"), [(0, 2, "A"), (2, 11, "A")])
    assert stats_of(long_doc, window=6, overlap=2).cut == 1
    assert stats_of(long_doc, window=6, overlap=2).docs_cut == 1
    assert stats_of(long_doc, window=12, overlap=2).cut == 0
    split = make_doc(" ".join("abcdefghijkl"), [(0, 2, "A"), (7, 12, "A")])
    for token in split:
        token.is_sent_start = token.i in (0, 6)
    assert stats_of(split, window=6, overlap=2).cut == 0


def test_blank_edges():
    assert stats_of(make_doc("a \n b", [(0, 2, "A"), (0, 3, "B")])).blank_edges == 1


def test_ents_as_gold():
    doc = make_doc("a b", [(0, 2, "A"), (0, 1, "B")], ents=[(0, 1, "E")])
    stats = stats_of(doc, make_doc("c"), output="ents")
    assert (stats.labels, stats.docs_unannotated) == ({"E": 1}, 1)


@pytest.mark.parametrize(
    "docs, settings, why",
    [
        ([], {}, "no documents"),
        (
            [make_doc("a", key="other", ents=[(0, 1, "E")])],
            {},
            "Existing keys: other.*--output ents",
        ),
        ([make_doc("a", key=None)], {}, "Existing keys: none"),
        ([make_doc("a", key="x")], {"output": "ents"}, "no entities.*span groups \\(x\\)"),
        ([make_doc("a", key=None)], {"output": "ents"}, "no entities"),
    ],
)
def test_nothing_to_learn_from_is_an_error(tmp_path, docs, settings, why):
    path = write(tmp_path / "a.spacy", docs)
    with pytest.raises(CorpusError, match=why):
        corpus_stats(path, Settings(**settings))


def test_unreadable_file_and_empty_folder(tmp_path):
    (tmp_path / "a.spacy").write_bytes(b"no")
    with pytest.raises(CorpusError, match="cannot be read as a"):
        corpus_stats(tmp_path / "a.spacy", Settings())
    (tmp_path / "sub").mkdir()
    with pytest.raises(CorpusError, match="no documents"):
        corpus_stats(tmp_path / "sub", Settings())


def test_folder_is_read_as_one_corpus(tmp_path):
    write(tmp_path / "a.spacy", [make_doc("a b")])
    write(tmp_path / "b.spacy", [make_doc("c")])
    assert corpus_stats(tmp_path, Settings()).tokens == 3


TEN = [make_doc(f"w{i}", [(0, 1, "A")]) for i in range(10)]
ADVICE = [
    ("There are no spans", [make_doc("a")], {}, []),
    ("1 of 11 documents carry no annotation", [*TEN, make_doc("z", key=None)], {}, None),
    (
        "also has span groups (sc)",
        [make_doc("a", ents=[(0, 1, "E")])] * 10,
        {"output": "ents"},
        None,
    ),
    ("wider than max_width = 1", [*TEN, make_doc("a b", [(0, 2, "A")])], {"max_width": 1}, None),
    ("far above the widest span (1 tokens)", TEN, {"max_width": 9}, None),
    (
        "cut by the window of 2",
        [*TEN, make_doc("a b c", [(0, 3, "A")])],
        {"window": 2, "overlap": 0},
        None,
    ),
    (
        "fewer than 10 spans, too few to learn or to measure: B",
        [*TEN, make_doc("b", [(0, 1, "B")])],
        {},
        None,
    ),
    ("Labels only in dev: B (1 spans)", TEN, {}, [make_doc("b", [(0, 1, "B")])]),
    ("Labels only in train: A", TEN, {}, [make_doc("b")]),
    ("in train too, as exact duplicates: 1, such as 'w3", TEN, {}, [make_doc("w3", [(0, 1, "A")])]),
    (
        "parts in train and in dev: d",
        [*TEN, make_doc("y", doc_id="d")],
        {},
        [make_doc("z", doc_id="d")],
    ),
    ("1 of 1 dev documents are not annotated", TEN, {}, [make_doc("b", key=None)]),
    ("1 spans hold no token", [*TEN, make_doc("b", [(0, 0, "A")])], {}, None),
    ("1 spans are duplicates", [*TEN, make_doc("b", [(0, 1, "A")] * 2)], {}, None),
    ("more than one label", [*TEN, make_doc("b", [(0, 1, "A"), (0, 1, "B")])], {}, None),
    ("2 spans cross another", [*TEN, make_doc("a b c", [(0, 2, "A"), (1, 3, "A")])], {}, None),
    ("1 spans begin or end with white space", [*TEN, make_doc("a \n", [(0, 2, "A")])], {}, None),
    ("begin or end with punctuation", [*TEN, make_doc("a .", [(0, 2, "A")])], {}, None),
    ("more than 10,000 tokens", [*TEN, make_doc("a " * 10_000 + "b")], {}, None),
    ("1 documents have no tokens", [*TEN, Doc(VOCAB)], {}, None),
]


@pytest.mark.parametrize("text, train, settings, dev", ADVICE)
def test_each_warning_comes_when_it_should(text, train, settings, dev):
    dev_stats = stats_of(*dev, **settings) if dev else None
    found = advice(stats_of(*train, **settings), Settings(**settings), dev_stats)
    assert any(text in warning for warning in found), found


def test_no_warning_over_a_clean_corpus():
    dev = stats_of(make_doc("v", [(0, 1, "A")]))
    assert advice(stats_of(*TEN), Settings(), dev) == []


CONFIG = """
[nlp]
lang = "en"
pipeline = ["tok2vec", "second", "first"]

[vars]
key = "mine"

[components]

[components.first]
factory = "global_pointer"
spans_key = "wrong"
[components.first.model]
@architectures = "spacy-spanner.GlobalPointer.v1"

[components.second]
factory = "global_pointer"
spans_key = ${vars.key}
window = 99
pack_sentences = false
[components.second.model]
@architectures = "spacy-spanner.GlobalPointer.v1"
max_width = 7

[components.tok2vec]
factory = "tok2vec"
[components.tok2vec.model]
@architectures = "spacy.HashEmbedCNN.v2"
"""


def test_settings_of_the_first_of_our_components(tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text(CONFIG)
    expected = Settings(spans_key="mine", window=99, max_width=7, pack_sentences=False)
    assert settings_from_config(path) == expected
    path.write_text(CONFIG.replace("spacy-spanner.", "spacy."))
    with pytest.raises(CorpusError, match=r"Its components: .*first"):
        settings_from_config(path)
    for broken in (CONFIG.replace("${vars.key}", "${vars.no}"), CONFIG.replace("[vars]", "[vars")):
        path.write_text(broken)
        with pytest.raises(CorpusError, match=r"config\.cfg: "):
            settings_from_config(path)


BUNDLE = """
[nlp]
lang = "en"
pipeline = ["bundled_ner"]

[components]

[components.bundled_ner]
factory = "bundled_ner"
[components.bundled_ner.model]
@architectures = "spacy-spanner.BundledNER.v1"
[components.bundled_ner.model.span]
@architectures = "spacy-spanner.SpanNER.v1"
max_width = 4
"""


def test_settings_that_the_factory_and_the_model_know(tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text(BUNDLE)
    assert settings_from_config(path) == Settings(output="ents", max_width=4)
    path.write_text(BUNDLE.split("[components.bundled_ner.model.span]")[0])
    assert settings_from_config(path).max_width == 10  # that of SpanNER
    path.write_text(BUNDLE.replace("= 4", "= 0"))
    with pytest.raises(CorpusError, match="max_width"):
        settings_from_config(path)


def test_relations_are_counted_and_missed_where_they_are_learned(tmp_path):
    linked, none = make_doc("a b", [(0, 1, "A"), (1, 2, "B")]), make_doc("c")
    set_relations(linked, [StoredRelation(0, 1, "A", 1, 2, "B", "r")])
    set_relations(none, [])
    silent = make_doc("d", [(0, 1, "A")])
    stats = stats_of(linked, none, silent)
    assert (stats.relations, stats.docs_linked) == (1, 2)
    learned = Settings(relations=True)
    told = [text for text in advice(stats, learned, stats_of(silent)) if "relations" in text]
    assert ["1 of 3 documents of train" in told[0], "no relations in dev" in told[1]] == [True] * 2
    assert not any("relations" in text for text in advice(stats, Settings(), stats_of(silent)))


@pytest.mark.parametrize("entities,output", [("predict", "spans"), ("given", "ents")])
def test_settings_of_relations(tmp_path, entities, output):
    config = join_config("relation_classifier", "hash")
    config["components"]["relation_classifier"]["entities"] = entities
    config.to_disk(tmp_path / "config.cfg")
    settings = settings_from_config(tmp_path / "config.cfg")
    assert settings == Settings(output=output, relations=True)
