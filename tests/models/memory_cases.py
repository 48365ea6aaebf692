"""A small memory of four words, and its inputs."""

import numpy
import torch

from spacy_spanner.models.memory import WordMemory
from spacy_spanner.models.memory_index import SIZE

E, D = 3, 5  # widths of keys and values
FAR = 2**62 + 1  # not a float64
WORDS = numpy.array([40, -7, 12, FAR])  # not in order, one of them negative
COUNTS = numpy.array([5, 1, 2, 20])
UNSEEN = 1234
KEYS = numpy.array([[40, 12, 40, UNSEEN, FAR], [-7, FAR, FAR, 0, 0]])
LENGTHS = [5, 3]


def make_memory(**options):
    memory = WordMemory(key_width=E, value_width=D, **options)
    memory.learn_words(WORDS, COUNTS)
    return memory


def make_inputs(seed=0, shape=KEYS.shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(*shape, E, generator=generator, dtype=dtype)
    states = torch.randn(*shape, D, generator=generator, dtype=dtype)
    return vectors, states


def fill(memory, seed=1):
    """One epoch: every word as often as it was counted, in rows of one token."""
    keys = numpy.repeat(WORDS, COUNTS)[:, None]
    memory.train()
    memory(*make_inputs(seed, keys.shape), keys, [1] * len(keys))
    return memory.eval()


def slots_of(memory, key):
    """The slots of a word, by the definition of the table."""
    table, start = memory.index.table, 0
    for word, size in zip(table[0], table[SIZE], strict=True):
        if word == key:
            return list(range(start, start + size))
        start += size
    return []
