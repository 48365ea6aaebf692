"""Both pages escape everything, forbid scripts and loading, and show what they are given."""

import re
from html.parser import HTMLParser

import pytest
from spacy.tokens import Doc, Span, SpanGroup

from spacy_spanner.analysis.attributes import training_facts
from spacy_spanner.analysis.marks import MarkedDoc, RelationMark, SpanMark, mark_docs
from spacy_spanner.analysis.pages import documents_page, environment, report_page, signed
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
        assert link.startswith("#")
    [policy] = [value for value in found.attributes["content"] if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script-src" not in policy and "://" not in page and "<script" not in page
    assert page.count("</style>") == 1 + len(
        re.findall(r"</style></defs>|</style>\s*</defs>", page)
    )
    return "".join(found.words)


@pytest.mark.parametrize("with_gold", [True, False])
def test_page_of_documents_is_escaped(with_gold):
    pred, gold = evil_doc("A" + EVIL, score=0.9), evil_doc("B" + EVIL)
    docs = mark_docs([(pred, gold if with_gold else None)], output="auto", spans_key="sc")
    text = check(documents_page(docs, title=EVIL, note=ATTRIBUTE))
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
    hit = RelationMark("Ann", "Rome", "in", "tp", 0.5)
    missed = RelationMark("Ann", "Rome", "of", "fn")
    for relations, clean in [([hit], True), ([hit, missed], False)]:
        doc = MarkedDoc("Ann in Rome", [SpanMark(0, 3, "PER", "tp")], "", True, relations)
        page = documents_page([doc], title="", note="")
        assert ('class="doc clean"' in page) == clean and "<small>0.50</small>" in page
    assert "<ul" not in documents_page([MarkedDoc("Ann", [], "", False)], title="", note="")


def test_signed():
    assert [signed(value) for value in (0.012, -0.012, -0.0001)] == ["+1.2", "\u22121.2", "0.0"]
