"""Every format comes out as the same document; what is malformed is named, and writes nothing."""

import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_spanner.corpus.convert import convert
from spacy_spanner.corpus.detect import detect_format
from spacy_spanner.corpus.record import CorpusError, ReadOptions
from spacy_spanner.relations import StoredRelation, get_relations, set_relations

WORDS = ["Ann", "left", "Trent", "University", "."]
SPANS = [(0, 1, "PER"), (2, 4, "ORG"), (2, 3, "LOC")]
FLAT = [(0, 1, "PER"), (2, 4, "ORG")]
LEFT = StoredRelation(0, 1, "PER", 2, 4, "ORG", "left")
TOKENS = {"tokens": WORDS, "entities": [list(s) for s in SPANS], "relations": [[0, 1, "left"]]}
TEXT = {
    "text": "Ann left Trent University.",
    "entities": [[0, 3, "PER"], [9, 25, "ORG"], [9, 14, "LOC"]],
    "doc": "d1",
}
SPERT = [
    {
        "tokens": WORDS,
        "entities": [{"start": s, "end": e, "type": t} for s, e, t in SPANS],
        "relations": [{"head": 0, "tail": 1, "type": "left"}],
        "orig_id": 7,
    }
]
CONLL = (
    "-DOCSTART- -X- O\n\nAnn NNP B-PER\nleft VBD O\nTrent NNP B-ORG\nUniversity NNP I-ORG\n. . O\n"
)
GERMEVAL = (
    "#\thttp://x.org [2010]\n1\tAnn\tB-PER\tO\n2\tleft\tO\tO\n3\tTrent\tB-ORG\tB-LOC\n"
    "4\tUniversity\tI-ORG\tO\n5\t.\tO\tO\n\n"
)
ANN = (
    "R1\tleft Arg1:T1 Arg2:T2\t\nT1\tPER 0 3\tAnn\nT2\tORG 9 25\tTrent University\n"
    "T3\tLOC 9 14\tTrent\n#1\tAnnotatorNotes T1\tsure\n"
)


def write(path, content):
    path.write_bytes(content.encode("utf-8"))
    return path


def read(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def triples(spans):
    return [(span.start, span.end, span.label_) for span in spans]


@pytest.mark.parametrize(
    "name, content, format, spans, relations, doc_id",
    [
        ("a.jsonl", json.dumps(TOKENS) + "\n\n", "jsonl", SPANS, [LEFT], None),
        ("a.jsonl", "\ufeff" + json.dumps(TEXT), "jsonl", SPANS, None, "d1"),
        ("a.json", json.dumps(SPERT, indent=1), "spert", SPANS, [LEFT], "7"),
        ("a.conll", CONLL, "conll", FLAT, None, "a-1"),
        ("a.conll", "# id = 3\n" + CONLL[18:].replace(" ", "\t"), "conll", FLAT, None, None),
        ("a.conll", CONLL.replace("\n", "\r\n"), "conll", FLAT, None, "a-1"),
        ("a.tsv", GERMEVAL, "germeval", SPANS, None, "http://x.org [2010]"),
        ("a.ann", ANN, "brat", SPANS, [LEFT], "a"),
    ],
)
def test_formats(tmp_path, name, content, format, spans, relations, doc_id):
    path = write(tmp_path / name, content)
    if format == "brat":
        write(tmp_path / "a.txt", TEXT["text"])
    assert detect_format(path) == format
    [result] = convert([path], tmp_path / "out")
    assert result.target == tmp_path / "out" / "a.spacy"
    [doc] = read(result.target)
    assert [token.text for token in doc] == WORDS
    assert triples(doc.spans["sc"]) == spans
    assert triples(doc.ents) == FLAT
    assert get_relations(doc) == relations
    assert doc.user_data.get("doc") == doc_id
    summary = result.summary
    assert (summary.docs, summary.tokens, summary.spans) == (1, 5, len(spans))
    assert summary.nested == (2 if spans == SPANS else 0)
    assert sum(summary.labels.values()) == len(spans)


def test_given_tokens_are_kept_in_training_and_text_is_tokenised(tmp_path):
    path = write(tmp_path / "a.jsonl", json.dumps(TOKENS) + "\n" + json.dumps(TEXT))
    convert([path], tmp_path / "a.spacy")
    tokens, text = read(tmp_path / "a.spacy")
    assert tokens.has_unknown_spaces and not text.has_unknown_spaces
    assert text.text == TEXT["text"]


def test_no_entities_is_an_annotation(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"tokens": ["Hm"], "entities": []}')
    convert([path], tmp_path / "a.spacy", spans_key="mine")
    [doc] = read(tmp_path / "a.spacy")
    assert len(doc.spans["mine"]) == 0 and doc.has_annotation("ENT_IOB")


def test_several_inputs_and_columns(tmp_path):
    first = write(tmp_path / "a.conll", "1 Ann B-PER x\n")
    second = write(tmp_path / "b.conll", "1 Bob I-PER x\n\n1 Cy S-PER x")
    options = ReadOptions(token_column=1, tag_columns=[-2])
    [result] = convert([first, second], tmp_path / "all.spacy", options=options)
    assert [doc.text.strip() for doc in read(result.target)] == ["Ann", "Bob", "Cy"]
    assert result.summary.labels == {"PER": 3}
    options = ReadOptions(tag_columns=[2])
    targets = [r.target.name for r in convert([first, second], tmp_path, options=options)]
    assert targets == ["a.spacy", "b.spacy"]


@pytest.mark.parametrize(
    "mode, spans, dropped",
    [("strict", [], 2), ("contract", [(0, 1, "A")], 1), ("expand", [(0, 2, "A"), (1, 2, "B")], 0)],
)
def test_misaligned_spans_are_counted(tmp_path, mode, spans, dropped):
    item = {"text": "Ann left", "entities": [[0, 6, "A"], [5, 7, "B"]], "relations": [[0, 1, "R"]]}
    path = write(tmp_path / "a.jsonl", json.dumps(item))
    [result] = convert([path], tmp_path / "a.spacy", alignment_mode=mode)
    [doc] = read(result.target)
    assert triples(doc.spans["sc"]) == spans
    assert (result.summary.misaligned, result.summary.dropped) == (2, dropped)
    assert result.summary.lost_relations == (dropped > 0) == (get_relations(doc) == [])
    assert "line 1: A 'Ann le'" in result.summary.examples[0]


def test_repeated_spans_are_kept_once(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"tokens": ["x"], "entities": [[0, 1, "A"], [0, 1, "A"]]}')
    [result] = convert([path], tmp_path / "a.spacy")
    assert (result.summary.spans, result.summary.duplicates) == (1, 1)


@pytest.mark.parametrize(
    "content, is_warned",
    [
        ("1 Ada B-PER\n2 left O\n\n1 Bob B-PER\n", True),
        (GERMEVAL.replace("\tB-PER\tO", "\tB-PER"), True),  # no longer detected as GermEval
        ("1 CD B-DATE\n2 CD O\n\n3 CD O\n", False),
        ("1 CD B-DATE\n", False),
    ],
)
def test_conll_with_numbers_for_words_is_named(tmp_path, content, is_warned):
    path = write(tmp_path / "a.conll", content)
    [result] = convert([path], tmp_path / "out")
    assert len(result.summary.warnings) == is_warned
    assert all(f"[SW28] {path}" in text for text in result.summary.warnings)


JSONL_CASES = [
    ('{"tokens": ["a"]', "not JSON"),
    ("[1]", "expected a JSON object, found list"),
    ('{"words": ["a"], "entities": []}', "expected 'tokens' (a list) or 'text'"),
    ('{"text": 3, "entities": []}', "expected 'tokens' (a list) or 'text'"),
    ('{"tokens": ["a"]}', "'entities' is missing"),
    ('{"tokens": "a", "entities": []}', "'tokens' must be a list of strings, found str"),
    ('{"tokens": ["a", ""], "entities": []}', "token 1 must be a non-empty string"),
    ('{"tokens": ["a"], "entities": {}}', "'entities' must be a list, found dict"),
    ('{"tokens": ["a"], "entities": [[0, 1]]}', "list of three values or an object, found [0, 1]"),
    ('{"tokens": ["a"], "entities": [[0, 2, "A"]]}', "expected 0 <= start < end <= 1"),
    ('{"tokens": ["a"], "entities": [[0, 0, "A"]]}', "expected 0 <= start < end <= 1"),
    ('{"tokens": ["a"], "entities": [[-1, 1, "A"]]}', "expected 0 <= start < end <= 1"),
    ('{"tokens": ["a"], "entities": [[0, 1.0, "A"]]}', "must be integers (token offsets)"),
    ('{"tokens": ["a"], "entities": [[0, true, "A"]]}', "must be integers"),
    ('{"tokens": ["a"], "entities": [[0, 1, ""]]}', "the label must be a non-empty string"),
    ('{"text": "a", "entities": [[0, 2, "A"]]}', "having 1 characters"),
    (
        '{"tokens": ["a"], "entities": [[0, 1, "A"]], "relations": [[0, 1, "R"]]}',
        "1 is not the position of one of 1 entities",
    ),
    (
        '{"tokens": ["a"], "entities": [[0, 1, "A"]], "relations": [[0, 0, 1]]}',
        "the label must be a non-empty string",
    ),
]
SPERT_CASES = [
    ("\n {}", "expected 'tokens' (a list) or 'text'"),
    ('\n {"tokens": ["a"]}', "'entities' is missing"),
    ('\n {"tokens": ["a"], "entities": [{"start": 0}]}', "an object with start, end, label"),
    ("\n {,}", "not JSON"),
    ('\n {"tokens": ["a"], "entities": []} 3', "expected ',' or ']' after an item, found '3'"),
    ('\n {"tokens": ["a"], "entities": []},', "not JSON"),
]
GOOD_SPERT = '[{"tokens": ["a"], "entities": []},'
CASES = [
    *(("jsonl", '{"text": "a", "entities": []}\n' + bad, why) for bad, why in JSONL_CASES),
    *(("spert", GOOD_SPERT + bad + "]", why) for bad, why in SPERT_CASES),
    ("spert", '[\n{"tokens": ["a"], "entities": []}', "found the end of the file"),
    ("conll", "a O\nb\n", "expected a token and a tag in columns, found only 'b'"),
    ("conll", "a O\nb X-PER\n", "tag 'X-PER' is of no known scheme"),
    ("conll", "a O\nb PER\n", "tag 'PER' is of no known scheme"),
    ("conll", "a O\n\tO\n", "the token in column 0 is empty"),
    ("germeval", "1\ta\tO\tO\n2\tb\tO\n", "expected four columns separated by tabs"),
    ("germeval", "1\ta\tO\tO\nx\tb\tO\tO\n", "expected four columns separated by tabs"),
    ("germeval", "1\ta\tO\tO\n2\tb\tO\tX\n", "tag 'X' is of no known scheme"),
    ("brat", "T1\tA 0 3\tAnn\nT2\tA 0 x\tAnn\n", "found the offsets '0 x'"),
    ("brat", "T1\tA 0 3\tAnn\nT2\tA 0 99\tAnn\n", "expected 0 <= start < end <= 8"),
    ("brat", "T1\tA 0 3\tAnn\nT2\tA 1 4\tAnn\n", "the span reads 'Ann', but characters 1 to 4"),
    ("brat", "T1\tA 0 3\tAnn\nT1\tA 0 3\tAnn\n", "T1 is defined twice"),
    ("brat", "T1\tA 0 3\tAnn\nR1\tr T1 T1\n", "expected 'R1<tab>Label Arg1:T1 Arg2:T2'"),
    ("brat", "T1\tA 0 3\tAnn\nR1\tr Arg1:T1 Arg2:T9\n", "names T9, which is not in the file"),
    ("brat", "T1\tA 0 3\tAnn\nX1\tr\n", "expected a line that begins with T, R"),
]


@pytest.mark.parametrize("format, content, why", CASES)
def test_malformed_line_is_named_and_nothing_written(tmp_path, format, content, why):
    """The error is always in the second line."""
    path = write(tmp_path / ("bad.ann" if format == "brat" else "bad.x"), content)
    write(tmp_path / "bad.txt", "Ann left")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CorpusError) as error:
        convert([path], tmp_path / "out", format=format)
    assert f"{path}, line 2: " in str(error.value) and why in str(error.value)
    assert sorted(tmp_path.iterdir()) == before


def test_not_utf8(tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes(b"a O\n\xff O\n")
    with pytest.raises(CorpusError, match="line 2: not UTF-8"):
        convert([path], tmp_path / "out")


def test_one_bad_input_leaves_older_output_alone(tmp_path):
    good = write(tmp_path / "a.conll", "Ann B-PER\n")
    convert([good], tmp_path / "out")
    before = (tmp_path / "out" / "a.spacy").read_bytes()
    write(good, "Ann B-PER\nBob B-PER\n")
    bad = write(tmp_path / "b.conll", "Ann Q-PER\n")
    with pytest.raises(CorpusError):
        convert([good, bad], tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.spacy"]
    assert (tmp_path / "out" / "a.spacy").read_bytes() == before


def test_failed_write_leaves_no_parts(tmp_path, monkeypatch):
    path = write(tmp_path / "a.conll", "Ann B-PER\n")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        convert([path], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_inputs_that_make_no_sense(tmp_path):
    first = write(tmp_path / "a.conll", "Ann B-PER\n")
    other = tmp_path / "more"
    other.mkdir()
    second = write(other / "a.conll", "Ann B-PER\n")
    empty = write(tmp_path / "empty.conll", "\n\n")
    word = write(tmp_path / "word.dat", "hello\n")
    cases = [
        ([first, second], tmp_path / "out", "auto", "would both be written"),
        ([first], first, "auto", "the last argument is the output"),
        ([empty], tmp_path / "out", "conll", "no documents found"),
        ([word], tmp_path / "out", "auto", "Say which format it is with --format: jsonl"),
        ([other], tmp_path / "out", "auto", r"no \.txt files"),
        ([other], tmp_path / "out", "conll", "this is a folder"),
        ([tmp_path / "x.conll"], tmp_path / "out", "brat", r"x\.txt and x\.ann are read; neither"),
        (
            [write(tmp_path / "y.ann", "")],
            tmp_path / "out",
            "brat",
            r"y\.txt: .*missing beside y\.ann",
        ),
        (
            [write(tmp_path / "z.txt", "")],
            tmp_path / "out",
            "brat",
            r"z\.ann: .*missing beside z\.txt",
        ),
    ]
    for inputs, output, format, why in cases:
        with pytest.raises(CorpusError, match=why):
            convert(inputs, output, format=format)


def test_relations_survive_bytes_and_docbin():
    vocab = Vocab()
    doc = Doc(vocab, words=WORDS)
    assert get_relations(doc) is None
    set_relations(doc, [LEFT])
    doc_bin = DocBin(store_user_data=True, docs=[doc])
    [from_bin] = DocBin().from_bytes(doc_bin.to_bytes()).get_docs(vocab)
    from_bytes = Doc(vocab).from_bytes(doc.to_bytes())
    assert get_relations(doc) == get_relations(from_bin) == get_relations(from_bytes) == [LEFT]


def test_conll_with_a_column_for_each_level(tmp_path):
    path = tmp_path / "nested.conll"
    path.write_text("NF\tB-DNA\tB-protein\n-kappaB\tI-DNA\tI-protein\nsite\tI-DNA\tO\n", "utf8")
    convert([path], tmp_path / "nested.spacy", options=ReadOptions(tag_columns=[1, 2]))
    [doc] = DocBin().from_disk(tmp_path / "nested.spacy").get_docs(spacy.blank("en").vocab)
    assert {(s.start, s.end, s.label_) for s in doc.spans["sc"]} == {
        (0, 3, "DNA"),
        (0, 2, "protein"),
    }
