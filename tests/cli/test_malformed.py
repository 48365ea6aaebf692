"""Files that `convert` cannot use: a message with file, line and reason, exit code 1, no output."""

import gzip
import json

import pytest
from spacy.cli._util import app
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab
from typer.testing import CliRunner

import spacy_spanner.cli  # noqa: F401

from ..corpus.conftest import one_blank_pipeline  # noqa: F401

GOOD = '{"text": "Ann left", "entities": [[0, 3, "PER"]]}\n'
TASK = '{"data": {"text": "Ann left"}, "annotations": [{"result": [{"value": %s}]}]}'
TAGGED = '{"tokens": ["Ann", "left"], "ner_tags": %s}\n'
PAIR = '["Ann left", {"entities": [[0, 3, "PER"]]}]\n'


def stored(label):
    doc = Doc(Vocab(), words=["Ann", "left"])
    doc.spans["sc"] = [Span(doc, 0, 1, label=label)]
    return DocBin(docs=[doc]).to_bytes()


def words(n_tags):
    return "\n".join(f"{i}\tAnn" + "\t_" * 7 + "\t" + tag for i, tag in enumerate(n_tags, 1)) + "\n"


def entity(*values):
    return json.dumps({"text": "Ann left", "entities": [list(values)]}) + "\n"


MANY = "".join(entity(0, 3, f"L{i * i}") for i in range(300)).encode()

# name of the file, content, where the error is (None: not in a line), what the message says
CASES = [
    # the file itself
    ("a.jsonl", b"", None, "the file is empty"),
    ("a.jsonl", b"\n\n\n", None, "unknown format"),
    ("a.jsonl", b"\xff\xfe{\x00}\x00", "line 1", "UTF-16; save it as UTF-8"),
    ("a.jsonl", GOOD.encode() + '{"text": "Zoë"}\n'.encode("latin-1"), "line 2", "not UTF-8"),
    ("a.jsonl", GOOD.encode() + b"\xef\xbb\xbf" + GOOD.encode(), "line 2", "byte-order mark"),
    ("a.conll", b"Ann B-PER\nle\x00ft O\n", "line 2", "NUL character"),
    ("a.jsonl.gz", gzip.compress(MANY, mtime=0)[:-40], "line", "damaged or truncated"),
    ("a.jsonl.gz", gzip.compress(GOOD.encode(), mtime=0)[:20], None, "damaged or truncated"),
    ("a.spacy", stored("PER")[:-9], None, "cannot be read as a .spacy file"),
    ("folder", None, None, "no .txt files in this folder"),
    ("a.dat", b"hello\n", None, "unknown format"),
    # JSON
    ("a.jsonl", GOOD + '{"text": "Ann left", "entities": [[0, 3\n', "line 2", "not JSON"),
    ("a.jsonl", GOOD + GOOD.strip() + " 7\n", "line 2", "nothing more after the JSON"),
    (
        "a.jsonl",
        GOOD + '{"text": "a", "text": "b", "entities": []}\n',
        "line 2",
        "duplicate key 'text'",
    ),
    ("a.jsonl", GOOD + '{"text": "a", "x": NaN, "entities": []}\n', "line 2", "NaN is not a JSON"),
    ("a.jsonl", GOOD + '{"text": "\\ud83d", "entities": []}\n', "line 2", "half of a surrogate"),
    ("a.jsonl", GOOD + '{"text": "a", "x": ' + "[" * 99999 + "\n", "line 2", "nested too deeply"),
    ("a.json", "[\n" + PAIR + "\n", "line 3", "found the end of the file"),
    ("a.json", '{"rows": [\n{"text": "a", "spans": []}\n{}]}', "line 3", "expected ',' or ']'"),
    ("a.json", '{\n"names": ["O", "B-A"],\n"rows": [{}]\n}', "line 3", "expected 'tokens'"),
    # spans
    ("a.jsonl", GOOD + entity(0, 3, ""), "line 2", "non-empty string"),
    ("a.jsonl", GOOD + entity(0, 3, " "), "line 2", "non-empty string"),
    ("a.jsonl", GOOD + entity(0, 3, None), "line 2", "non-empty string"),
    ("a.jsonl", GOOD + entity(0, 3, "O"), "line 2", "'O' means 'outside'"),
    ("a.jsonl", GOOD + entity(3, 3, "A"), "line 2", "expected 0 <= start < end <= 8"),
    ("a.jsonl", GOOD + entity(0, 9, "A"), "line 2", "expected 0 <= start < end <= 8"),
    ("a.jsonl", GOOD + entity("0", 3, "A"), "line 2", "must be integers"),
    ("a.jsonl", GOOD + '{"text": "' + "a " * 500_001 + '", "entities": []}', "line 2", "1,000,002"),
    ("a.jsonl", GOOD + '{"text": "Ann left"}\n', "line 2", "'entities' is missing"),
    (
        "a.jsonl",
        GOOD + '{"text": "a", "entities": null}\n',
        "line 2",
        "'entities' is null; write []",
    ),
    ("a.jsonl", PAIR + '["Ann left", 3]\n', "line 2", "expected a JSON object, found list"),
    # tools
    (
        "a.jsonl",
        '{"text": "a", "label": [[0, 1, 7]]}',
        "line 1",
        "non-empty string, found 7",
    ),
    (
        "a.jsonl",
        '{"text": "a", "entities": [], "relations": [{"from_id": 1, "to_id": 2, "type": "r"}]}',
        "line 1",
        "the entity 1, which is not in this document",
    ),
    (
        "a.json",
        "[\n" + TASK % '{"start": 0, "end": 3, "text": "Bob", "labels": ["A"]}' + "]",
        "line 2",
        "the span reads 'Bob'",
    ),
    (
        "a.json",
        "[\n" + TASK % '{"start": "/p[1]", "end": "/p[1]", "labels": ["A"]}' + "]",
        "line 2",
        "annotate with a Text tag",
    ),
    (
        "a.json",
        "[\n" + TASK % '{"start": 0, "end": 3, "labels": [""]}' + "]",
        "line 2",
        "non-empty string",
    ),
    ("a.jsonl", TAGGED % '["O", "O"]' + TAGGED % '["O"]', "line 2", "2 tokens but 1 tags"),
    ("a.jsonl", TAGGED % '["O", "O"]' + TAGGED % "[0, 1]", "line 2", "--tag-names"),
    ("a.jsonl", TAGGED % '["O", "O"]' + TAGGED % '["B-", "O"]', "line 2", "of no known scheme"),
    ("a.jsonl", TAGGED % '["O", "O"]' + TAGGED % '["B-O", "O"]', "line 2", "'O' means 'outside'"),
    ("a.jsonl", TAGGED % '["O", "O"]' + TAGGED % "[null, 1.5]", "line 2", "a string or an integer"),
    # columns
    ("a.conll", "Ann B-PER\nleft\n", "line 2", "expected a token and a tag"),
    ("a.conll", "Ann B-PER\nleft B-O\n", "line 2", "'O' means 'outside'"),
    ("a.conll", "Ann B-PER\r\nleft Q-PER\r\n", "line 2", "of no known scheme"),
    ("a.tsv", "1\tAnn\tB-PER\tO\n2\tleft\tO\n", "line 2", "expected four columns"),
    ("a.conllu", words(["NER=B-A", "NER=(A"]), "line 2", "of no known scheme"),
    ("a.conllu", words(["NER=B-A"]) + "2\tleft\n", "line 2", "expected 10 columns"),
    ("a.conllu", words(["_", "_"]), None, "no entity tags"),
    # others
    ("a.ann", "T1\tA 0 3\tAnn\nT2\tA 0 4\tAnne\n", "line 2", "the span reads 'Anne'"),
    ("a.ann", "T1\tO 0 3\tAnn\n", "line 1", "'O' means 'outside'"),
    ("a.spacy", stored(""), "document 1", "non-empty string"),
]


@pytest.mark.parametrize("name, content, where, why", CASES)
def test_malformed_files(tmp_path, name, content, where, why):
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    if name == "a.ann":
        (tmp_path / "a.txt").write_text("Ann left")
    before = sorted(tmp_path.iterdir())
    arguments = ["spanner", "convert", str(path), str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    text = " ".join(result.output.split())  # lines are wrapped anywhere
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert str(path) in text and why in text and "Traceback" not in text
    assert f"{path}, {where}" in text if where else ", line" not in text
    assert sorted(tmp_path.iterdir()) == before


def test_there_are_enough_of_them():
    assert len(CASES) >= 40
