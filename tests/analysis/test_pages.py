"""Both pages escape everything, forbid scripts and loading, and show what they are given."""

import re
from html.parser import HTMLParser

import pytest
from spacy.tokens import Doc, Span, SpanGroup

from spacy_spanner.analysis import articles, pages
from spacy_spanner.analysis.attributes import training_facts
from spacy_spanner.analysis.marks import MarkedDoc, RelationMark, SpanMark, mark_docs
from spacy_spanner.analysis.pages import (
    documents_pages,
    environment,
    most_confused,
    report_page,
    signed,
)
from spacy_spanner.analysis.report import make_report
from spacy_spanner.analysis.systems import read_systems
from spacy_spanner.relations import StoredRelation, set_relations

from .cases import OTHER, PRED, VOCAB, make_doc, make_facts, make_systems

EVIL = "<script>alert('1')</script>"
ATTRIBUTE = '"><img src=x onerror=alert(1)>'
WORDS = [EVIL, "met", ATTRIBUTE, "in", "{{ title }}", "</style>"]
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "span"),
    *("b", "i", "em", "small", "q", "mark", "ul", "ol", "li", "section", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "nav", "label", "input", "article", "header"),
    *("a", "bdi"),
    *("svg", "g", "defs", "path", "text", "tspan", "use", "clippath", "rect"),
}


class Tags(HTMLParser):
    """The elements and the attributes of a page, and its visible text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = set(), {}, [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value)

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def evil_doc(label, *, score=None):
    """A document whose words, labels, relations and id all look like markup."""
    doc = Doc(VOCAB, words=WORDS)
    attrs = {} if score is None else {"scores": [score, score]}
    spans = [Span(doc, 0, 1, label=label), Span(doc, 2, 3, label=ATTRIBUTE)]
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans, attrs=attrs)
    set_relations(doc, [StoredRelation(0, 1, label, 2, 3, ATTRIBUTE, f"r{EVIL}", score)])
    doc.user_data["doc"] = EVIL
    return doc


def check(page):
    """Nothing of the document has become markup."""
    found = Tags(page)
    assert found.tags <= TAGS
    assert not [name for name in found.attributes if name.startswith("on")]
    assert not {"src", "action", "formaction", "xlink:href"} & set(found.attributes) - {
        "xlink:href"
    }
    for link in found.attributes.get("href", []) + found.attributes.get("xlink:href", []):
        assert link.startswith(("#", "./"))
    [policy] = [value for value in found.attributes["content"] if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script-src" not in policy and "://" not in page and "<script" not in page
    assert page.count("</style>") == 1 + len(
        re.findall(r"</style></defs>|</style>\s*</defs>", page)
    )
    return "".join(found.words)


def one_page(docs, *, title="", note="", **options):
    [(_, page)] = documents_pages(docs, title=title, note=note, **options)
    return page


@pytest.mark.parametrize("with_gold", [True, False])
def test_page_of_documents_is_escaped(with_gold):
    pred, gold = evil_doc("A" + EVIL, score=0.9), evil_doc("B" + EVIL)
    docs = mark_docs([(pred, gold if with_gold else None)], output="auto", spans_key="sc")
    text = check(one_page(docs, title=EVIL, note=ATTRIBUTE, notice=EVIL))
    for part in (EVIL, ATTRIBUTE, "A" + EVIL, f"r{EVIL}", "{{ title }}"):
        assert part in text
    assert ("B" + EVIL in text) == with_gold


def test_page_of_a_report_is_escaped():
    pytest.importorskip("matplotlib")
    preds = [[evil_doc("A" + EVIL, score=0.9)], [evil_doc("B" + EVIL)]]
    golds = [evil_doc("C" + EVIL)]
    systems = read_systems([EVIL, ATTRIBUTE], preds, golds, output="spans", spans_key="sc")
    facts = training_facts(golds, output="spans", spans_key="sc")
    for own in (systems, systems[:1]):
        text = check(report_page(make_report(own, train=facts, resamples=5), gold=EVIL))
        for part in (EVIL, ATTRIBUTE, "A" + EVIL, "C" + EVIL):
            assert part in text


def test_any_label_can_be_shown():
    """Names that mean something to Python or Jinja2 are only names."""
    pytest.importorskip("matplotlib")
    labels = ["a.b", "items", "0", "f", "labels"]
    docs = [make_doc(" ".join("w" * 5), [(i, i + 1, own) for i, own in enumerate(labels)])]
    systems = read_systems(["a", "b"], [docs, docs], docs, output="spans", spans_key="sc")
    text = check(report_page(make_report(systems, resamples=5), gold="gold"))
    assert all(text.count(label) >= 4 for label in labels)


def test_templates_escape_by_default():
    assert environment().autoescape is True
    names = environment().list_templates()
    used = [
        name
        for name in names
        if "| safe" in environment().loader.get_source(environment(), name)[0]
    ]
    assert used == ["documents.html", "report.html", "report_lengths.html"]


def test_report_shows_the_lengths_of_documents():
    pytest.importorskip("matplotlib")
    systems = make_systems(PRED, OTHER)
    for doc in systems[0].corpus.docs:
        for token in doc:
            token.is_sent_start = token.i == 0
        set_relations(doc, [StoredRelation(0, 1, "A", 1, 2, "B", "r")])
    report = make_report(systems, train=make_facts(), resamples=5)
    lengths = report["systems"][0]["document_length"]
    assert {unit: list(kinds) for unit, kinds in lengths.items()} == {
        "tokens": ["spans", "relations"],
        "sentences": ["spans", "relations"],
    }
    [bucket] = lengths["tokens"]["spans"]
    assert bucket["interval"] == "≤ 32" and bucket["documents"] == 3 and bucket["hits"] == 3
    differences = report["comparison"]["document_length"]
    assert differences["tokens"]["spans"] == [pytest.approx(6 / 11 - 4 / 7)]
    text = check(report_page(report, gold="gold"))
    for title in ("Spans, by tokens", "Relations, by tokens", "Spans, by sentences"):
        assert text.count(title) == 2  # plot and table
    alone = check(report_page(make_report(systems[:1], resamples=5), gold="gold"))
    assert "Spans, by tokens" in alone and "difference" not in alone


def test_relations_and_clean_documents():
    ann, rome = (0, 3, "PER"), (7, 11, "LOC")
    hit, missed = RelationMark(ann, rome, "in", "tp", 0.5), RelationMark(ann, rome, "of", "fn")
    for relations, clean in [([hit], True), ([hit, missed], False)]:
        doc = MarkedDoc("Ann in Rome", [SpanMark(0, 3, "PER", "tp")], "", True, relations)
        page = one_page([doc])
        assert ('class="doc clean"' in page) == clean and "<small>0.50</small>" in page
        assert "<bdi>Ann</bdi>" in page and "<bdi>Rome</bdi>" in page
    assert "<ul" not in one_page([MarkedDoc("Ann", [], "", False)])


def test_pages_are_bounded_and_linked(monkeypatch):
    monkeypatch.setattr(articles, "PAGE", 20_000)
    monkeypatch.setattr(articles, "ARTICLE", 5_000)
    text = "Ann met Bob. " * 10
    hit, missed = SpanMark(0, 3, "PER", "tp"), SpanMark(8, 11, "PER", "fn")
    docs = [
        MarkedDoc(text, [hit, missed] if i % 2 else [hit], "", True, number=i + 1)
        for i in range(40)
    ]
    marks = [SpanMark(13 * i, 13 * i + 3, "PER", "tp") for i in range(600)]
    met = [(0, 3, "PER"), (8, 11, "PER"), "met", "tp"]
    relations = [RelationMark(*met)] * 450
    docs.append(MarkedDoc("Ann met Bob. " * 600, marks, "long", True, relations, 41))
    pages = list(documents_pages(docs, title="", note="", name="a b.html"))
    assert [name for name, _ in pages[:3]] == ["a b.html", "a b-2.html", "a b-3.html"]
    assert len(pages) > 5 and max(len(page.encode()) for _, page in pages) < 60_000
    for number, (_, page) in enumerate(pages):
        links = re.findall(r'href="(\./[^"]*)"', page)
        near = [("./a%20b.html" if i == 0 else f"./a%20b-{i + 1}.html") for i in range(len(pages))]
        assert {near[i] for i in (number - 1, number + 1) if 0 <= i < len(pages)} <= set(links)
        assert f"page {number + 1} of {len(pages)}" in page and near[number] not in links
        assert "<b>41</b><span>documents" in page and "<b>640</b><span>true positives" in page
        check(page)
    together = "".join(page for _, page in pages)
    ids = re.findall(r'<h2 id="(d\d+)"', together)
    assert ids == [f"d{i}" for i in range(1, 42)]
    assert together.count("<li") == 450 and together.count('class="start tp') == 640
    assert re.search(r"long \(part 1 of (\d+)\)", together) and 'id="d41-2"' in together
    only = "".join(page for _, page in documents_pages(docs, title="", note="", only_errors=True))
    assert re.findall(r'<h2 id="d(\d+)"', only) == [str(i) for i in range(2, 41, 2)]
    assert "20 documents with errors are shown; 21 without errors are left out" in only


def test_direction_of_documents():
    hebrew = MarkedDoc("\u05d3\u05d5\u05d3 Al", [], "", False)
    assert '<div class="text" dir="rtl">' in one_page([hebrew])
    assert "dir=" not in one_page([MarkedDoc("Ann", [], "", False)])


def test_everything_that_scrolls_or_folds_takes_the_keyboard():
    pytest.importorskip("matplotlib")
    pages = [report_page(make_report(make_systems(PRED), resamples=5), gold="gold")]
    pages.append(one_page([MarkedDoc("Ann", [SpanMark(0, 3, "PER", "tp")], "", True)]))
    for page in pages:
        wide = re.findall(r'<div class="wide"[^>]*>', page)
        assert wide and all('tabindex="0" role="region" aria-label="' in tag for tag in wide)
        assert page.count("<details") == page.count("<summary")


def test_report_of_many_labels_and_long_errors_is_bounded():
    pytest.importorskip("matplotlib")
    words = " ".join(["word"] * 400)
    gold = [make_doc(words, [(i, i + 1, f"L{i % 100}") for i in range(400)])]
    pred = [make_doc(words, [(0, 400, "L0"), *((i, i + 1, f"L{i % 100}") for i in range(50, 100))])]
    systems = read_systems(["a"], [pred], gold, output="spans", spans_key="sc")
    report = make_report(systems, resamples=5)
    [error] = report["systems"][0]["confident_errors"]
    assert len(error["text"]) == 303 and len(error["gold"]) == 10 and error["more_gold"] == 390
    page = report_page(report, gold="gold")
    assert "The 30 labels with the most errors; 70 are left out." in check(page)
    assert "and 390 more" in page and len(page) < 250_000


def test_most_confused():
    counts = [[5, 0, 0, 1], [0, 9, 0, 0], [2, 0, 1, 0], [0, 0, 0, 0]]
    confusion = {"labels": ["a", "b", "c", None], "counts": counts}
    assert most_confused(confusion) == confusion
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "MOST_LABELS", 2)
        assert most_confused(confusion) == {
            "labels": ["a", "c", None],
            "counts": [[5, 0, 1], [2, 1, 0], [0, 0, 0]],
        }


def test_signed():
    assert [signed(value) for value in (0.012, -0.012, -0.0001)] == ["+1.2", "\u22121.2", "0.0"]
