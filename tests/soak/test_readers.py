"""Every reader on damaged files: documents, or an error that names the place; nothing else."""

import gzip
import random
import time

import pytest
import spacy
from spacy.tokens import Doc

from spacy_spanner.corpus.build import Summary, build_doc
from spacy_spanner.corpus.detect import READERS
from spacy_spanner.corpus.record import CorpusError

from ..corpus.formats import SAMPLES, put

pytestmark = pytest.mark.soak
PIECES = [b"", b"\0", b"\xff", b"\n", b"\t", b" ", b'"', b"{", b"}", b"[", b"]", b",", b":", b"-1"]
PIECES += [
    b"null",
    b"1e999",
    b"true",
    b"\\u0000",
    b"\\ud800",
    b"B-",
    b"9" * 30,
    b"[" * 3000,
    b"\xef\xbb\xbf",
]


def damaged(data, generator):
    """A few bytes changed, left out, doubled or put in; some files are cut, some packed."""
    for _ in range(generator.choice([1, 1, 2, 5, 20])):
        at = generator.randrange(len(data) + 1)
        end = min(len(data), at + generator.choice([0, 1, 3, 50]))
        kind = generator.randrange(4)
        if kind == 0:
            data = data[:at] + generator.choice(PIECES) + data[end:]
        elif kind == 1:
            data = data[:end] + data[at:]
        elif kind == 2:
            data = data[:at] + bytes(generator.randrange(256) for _ in range(3)) + data[end:]
        elif generator.random() < 0.2:
            data = data[:at]
    return (
        gzip.compress(data)[: generator.choice([None, -3])] if generator.random() < 0.05 else data
    )


@pytest.mark.parametrize("name", sorted({sample.format for sample in SAMPLES}))
def test_readers__of_damaged_files(soak, tmp_path, name):
    samples = [sample for sample in SAMPLES if sample.format == name]
    whole = [put(sample, tmp_path, name=f"whole{i}") for i, sample in enumerate(samples)]
    seed, nlp = time.time_ns(), spacy.blank("en")
    for number in soak.rounds():
        generator = random.Random(f"{seed} {number}")
        sample, source = generator.choice(list(zip(samples, whole, strict=True)))
        path = tmp_path / "damaged"
        if source.is_dir():
            path = tmp_path / "damaged.ann"
            for ending in (".ann", ".txt"):
                data = (source / f"d1{ending}").read_bytes()
                data = damaged(data, generator) if generator.random() < 0.7 else data
                path.with_suffix(ending).write_bytes(data)
        else:
            path.write_bytes(damaged(source.read_bytes(), generator))
        soak.counts["files"] += 1
        try:
            for record in READERS[name](path, sample.options):
                if record.is_document:
                    doc = build_doc(
                        record,
                        nlp=nlp,
                        spans_key="sc",
                        alignment_mode=generator.choice(["strict", "contract", "expand"]),
                        summary=Summary(),
                    )
                    assert isinstance(doc, Doc) and all(span.label_ for span in doc.spans["sc"])
                    soak.counts["documents"] += 1
        except CorpusError as error:
            assert str(error).startswith("[S"), (seed, number)
            soak.counts["refused"] += 1
