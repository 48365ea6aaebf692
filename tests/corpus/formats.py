"""The same three documents in every format that `convert` reads."""

import gzip
import shutil
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import DocBin

from spacy_spanner.corpus.record import ReadOptions

FOLDER = Path(__file__).parent / "samples"
WORDS = [
    ["Mara", "Holt", "joined", "Ruskin", "College", "in", "Oxford", "."],
    ["The", "Lisbon", "office", "of", "Nordal", "Bank", "closed", "."],
    ["It", "rained", "all", "day", "."],
]
FLAT = [
    [(0, 2, "PER"), (3, 5, "ORG"), (6, 7, "LOC")],
    [(1, 3, "ORG"), (4, 6, "ORG")],
    [],
]
NESTED = [
    [(0, 2, "PER"), (3, 5, "ORG"), (3, 4, "PER"), (6, 7, "LOC")],
    [(1, 3, "ORG"), (1, 2, "LOC"), (4, 6, "ORG")],
    [],
]
TAG_NAMES = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
TWO_FIELDS = ReadOptions(tag_fields=["ner_tags", "nested_ner_tags"])
MISC_KEYS = ReadOptions(tag_fields=["NER", "InnerNER"])


class Sample(NamedTuple):
    file: str
    format: str
    nested: bool = True
    relations: bool = False
    options: ReadOptions = ReadOptions()
    arguments: tuple = ()  # the same options for the command
    skipped: int = 0


SAMPLES = [
    Sample("entities.jsonl", "jsonl"),
    Sample("entities_objects.jsonl", "jsonl"),
    Sample("tokens.jsonl", "jsonl", relations=True),
    Sample("prodigy.jsonl", "prodigy", relations=True, skipped=3),
    Sample("spacy2.json", "spacy2"),
    Sample("spacy2.jsonl", "spacy2"),
    Sample("doccano_labels.jsonl", "doccano"),
    Sample("doccano_label.jsonl", "doccano"),
    Sample("doccano_relations.jsonl", "doccano", relations=True),
    Sample("label_studio.json", "label_studio", relations=True, skipped=1),
    Sample("label_studio_min.json", "label_studio"),
    Sample("huggingface.jsonl", "huggingface", nested=False),
    Sample(
        "huggingface.jsonl",
        "huggingface",
        options=TWO_FIELDS,
        arguments=("--tag-field", "ner_tags", "--tag-field", "nested_ner_tags"),
    ),
    Sample(
        "huggingface_numbers.jsonl",
        "huggingface",
        nested=False,
        options=ReadOptions(tag_names=TAG_NAMES),
        arguments=("--tag-names", ",".join(TAG_NAMES)),
    ),
    Sample("huggingface_rows.json", "huggingface", nested=False),
    Sample("words.conllu", "conllu", nested=False),
    Sample(
        "words.conllu",
        "conllu",
        options=MISC_KEYS,
        arguments=("--tag-field", "NER", "--tag-field", "InnerNER"),
    ),
    Sample("words_plus.conllup", "conllu", nested=False),
    Sample("words.conll", "conll", nested=False),
    Sample("germeval.tsv", "germeval"),
    Sample("spert.json", "spert", relations=True),
    Sample("brat", "brat", relations=True),
    Sample("ents.spacy", "spacy", nested=False),
]


def name_of(sample):
    return sample.file + ("-" + sample.arguments[1] if sample.arguments else "")


def put(sample, folder, *, compressed=False, name=None):
    """A copy of the sample below a folder, whose name tells nothing of its format if `name` does not."""
    source, target = FOLDER / sample.file, folder / (name or sample.file)
    if sample.format == "brat":
        shutil.copytree(source, target)
        for path in list(target.iterdir()) if compressed else []:
            compress(path)
        return target
    if sample.format == "spacy":
        write_ents(target)
    else:
        shutil.copy(source, target)
    return compress(target) if compressed else target


def compress(path):
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


def write_ents(path):
    """Flat entities and a part-of-speech tag, as spaCy's own tools would store them."""
    nlp = spacy.blank("en")
    docs = []
    for words, spans in zip(WORDS, FLAT, strict=True):
        doc = nlp.make_doc(" ".join(words[:-1]) + words[-1])
        doc.set_ents([spacy.tokens.Span(doc, *span) for span in spans], default="outside")
        doc[0].pos_ = "X"
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)


DAMAGE = [
    b"",
    b'"',
    b"{",
    b"]",
    b",",
    b":",
    b"\n",
    b"\t",
    b" ",
    b"O",
    b"-1",
    b"9",
    b"null",
    b"\xff",
]


def damage(content, choose):
    """The bytes of a file with three random changes."""
    changed = bytearray(content)
    for _ in range(3):
        position = choose.randrange(len(changed))
        changed[position : position + choose.randrange(3)] = choose.choice(DAMAGE)
    return bytes(changed)
