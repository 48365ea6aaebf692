"""The hierarchical tagger: levels on and off, the life of a model."""

import copy

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_spanner.bridge import word_readers
from spacy_spanner.contract import KEYS as EXTRA
from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.bundled import BundledNER
from spacy_spanner.models.hierarchical import HierarchicalNER, build_hierarchical_ner

WIDTH, WORD_WIDTH, N_LABELS = 6, 4, 2
LENGTHS = [5, 3, 1]
MASK = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
KEYS = numpy.array([[1, 2, 3, 1, 9], [2, 2, 4, 0, 0], [9, 0, 0, 0, 0]])  # 9 is never trained on
WORDS, COUNTS = numpy.array([1, 2, 3, 4]), numpy.array([2, 3, 2, 2])
GOLD = Gold(torch.tensor([[0, 0, 2, 1], [0, 4, 5, 0], [1, 1, 3, 0]]), (3,))
NO_THRESHOLD = torch.zeros(N_LABELS)
LEVELS = [(s, d) for s in ("off", "mean", "label") for d in ("off", "dot", "scaled", "cosine")]


def make_module(*, filled=True, **options):
    torch.manual_seed(0)
    sizes = {"word_width": WORD_WIDTH, "hidden_width": 8, "sentence_width": 4, **options}
    module = HierarchicalNER(width=WIDTH, n_labels=N_LABELS, **sizes)
    for reader in word_readers(module):
        reader.learn_words(WORDS, COUNTS)
    if filled:
        train_once(module)
    return module.eval()


def make_tokens(seed=0, dtype=torch.float32):
    x = torch.randn(*MASK.shape, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return Tokens(x * MASK[..., None], MASK, LENGTHS, extras={EXTRA: KEYS})


def train_once(module):
    """One epoch of forward steps, which fill the memory."""
    keys = numpy.repeat(WORDS, COUNTS)[:, None]
    x = torch.randn(*keys.shape, WIDTH, generator=torch.Generator().manual_seed(3))
    mask = torch.ones(keys.shape, dtype=torch.bool)
    tokens = Tokens(x, mask, [1] * len(keys), extras={EXTRA: keys})
    module.train()
    with torch.no_grad():
        module.encode(tokens)
    return module.eval()


def rows_of(tokens):
    """Each row on its own, without padding."""
    for row, n in enumerate(tokens.lengths):
        cut = slice(row, row + 1), slice(0, n)
        extras = {EXTRA: tokens.extras[EXTRA][cut]}
        yield n, Tokens(tokens.x[cut], tokens.mask[cut], [n], extras=extras)


@pytest.mark.parametrize("sentence_level,document_level", LEVELS)
@pytest.mark.parametrize("fusion", ["hidden", "logits"])
def test_rows_alone_and_in_a_batch_are_the_same(sentence_level, document_level, fusion):
    options = {"sentence_level": sentence_level, "document_level": document_level}
    module, tokens = make_module(fusion=fusion, **options), make_tokens()
    with torch.no_grad():
        whole = module.encode(tokens)
        logits = module.logits(whole)
        for row, (n, alone) in enumerate(rows_of(tokens)):
            encoded = module.encode(alone)
            torch.testing.assert_close(whole.x[row, :n], encoded.x[0])
            torch.testing.assert_close(logits[row, :n], module.logits(encoded)[0])
    assert module(tokens, GOLD).isfinite()


def test_every_level_changes_the_result():
    logits = []
    for sentence_level, document_level in LEVELS:
        options = {"sentence_level": sentence_level, "document_level": document_level}
        module = make_module(**options)
        logits.append(module.logits(module.encode(make_tokens())))
    for i in range(len(logits)):
        for j in range(i):
            assert not torch.allclose(logits[i], logits[j])


@pytest.mark.parametrize("fusion", ["hidden", "logits"])
def test_fusion(fusion):
    module, tokens = make_module(fusion=fusion, mix=0.25), make_tokens()
    words = tokens.x[..., :WORD_WIDTH]
    with torch.no_grad():
        s = module.sentence(tokens.x, words, MASK, LENGTHS)
        both = torch.cat([tokens.x, s[:, None].expand(-1, 5, -1)], 2)
        h = module.lstm(both, LENGTHS)
        r, answered = module.memory(words, h, KEYS, LENGTHS)
        logits = module.logits(module.encode(tokens))
        for row, n in enumerate(LENGTHS):
            for t in range(n):
                own, memory = h[row, t], r[row, t]
                assert bool(answered[row, t]) == (KEYS[row, t] != 9)
                if not answered[row, t]:
                    expected = module.project(own)
                elif fusion == "hidden":
                    expected = module.project(0.25 * own + 0.75 * memory)
                else:
                    expected = 0.25 * module.project(own)
                    expected = expected + 0.75 * module.project_response(memory)
                torch.testing.assert_close(logits[row, t], expected)


def test_unseen_words_and_a_silent_memory_pass_states_on():
    trained, tokens = make_module(), make_tokens()
    silent, without = make_module(filled=False), make_module(document_level="off")
    base = without.encode(tokens).x
    torch.testing.assert_close(silent.encode(tokens).x, base)
    same = (trained.encode(tokens).x - base).abs().amax(2) < 1e-6
    assert torch.equal(same[MASK], torch.from_numpy(KEYS == 9)[MASK])


def test_own_state_is_all_of_it_where_mix_is_one():
    module, tokens = make_module(mix=1.0), make_tokens()
    torch.testing.assert_close(
        module.encode(tokens).x, make_module(document_level="off").encode(tokens).x
    )


def test_what_is_remembered_has_no_dropout():
    module, tokens = make_module(dropout=0.9), make_tokens()
    states = []
    module.lstm.register_forward_hook(lambda lstm, args, output: states.append(output))
    module.train().encode(tokens)
    # Word 4 stands in the batch once; its ring was full, so it went to its first slot.
    (number,) = numpy.flatnonzero(module.memory.index.table[0] == 4)
    slot = int(module.memory.index.starts[number])
    assert torch.equal(module.memory.values[slot], states[0][1, 2])
    word = tokens.x[1, 2, :WORD_WIDTH]
    torch.testing.assert_close(module.memory.keys[slot], word / word.norm())


def test_memory_changes_in_training_only():
    module, tokens = make_module(), make_tokens()
    before = copy.deepcopy(module.state_dict())
    module.decode(module.encode(tokens), NO_THRESHOLD)
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())
    module.train()(tokens, GOLD)
    changed = {k for k, v in module.state_dict().items() if not torch.equal(before[k], v)}
    assert changed == {"memory.keys", "memory.values", "memory._extra_state"}


def test_state_of_a_trained_module_goes_into_a_fresh_one():
    module, tokens = make_module(), make_tokens()
    fresh = HierarchicalNER(
        width=WIDTH, n_labels=N_LABELS, word_width=WORD_WIDTH, hidden_width=8, sentence_width=4
    ).eval()
    fresh.load_state_dict(module.state_dict())
    first, second = (m.decode(m.encode(tokens), NO_THRESHOLD) for m in (module, fresh))
    assert len(first.spans) and torch.equal(first.spans, second.spans)
    assert torch.equal(first.scores, second.scores)


def test_label_embeddings_start_from_mean_word_vectors():
    module, tokens = make_module(sentence_level="label"), make_tokens()
    labels = module.sentence.attention.labels
    assert labels.shape == (N_LABELS, WORD_WIDTH)
    known = MASK.clone()
    known[0, 2] = False
    module.prepare(tokens, Gold(GOLD.spans, GOLD.per_level, known))
    words = tokens.x[..., :WORD_WIDTH]
    expected = [torch.stack([words[0, 4], words[1, 1], words[1, 2]]).mean(0), words[0, :2].mean(0)]
    torch.testing.assert_close(labels.detach(), torch.stack(expected))


def test_summed_loss_is_the_mean_times_the_rows():
    mean, total = make_module(), make_module(reduction="sum")
    torch.testing.assert_close(total(make_tokens(), GOLD), mean(make_tokens(), GOLD) * len(LENGTHS))


def test_gradients_by_finite_differences():
    module, tokens = make_module(dropout=0.0).double(), make_tokens(dtype=torch.float64)

    def loss(x):
        return module(Tokens(x * MASK[..., None], MASK, LENGTHS, extras={EXTRA: KEYS}), GOLD)

    assert torch.autograd.gradcheck(loss, tokens.x.requires_grad_(True))


@pytest.mark.parametrize("fusion", ["hidden", "logits"])
def test_loss_needs_nothing_from_the_device(fusion):
    module = make_module(fusion=fusion).train().to("meta")
    tokens = make_tokens()
    meta = Tokens(tokens.x.to("meta"), MASK.to("meta"), LENGTHS, extras={EXTRA: KEYS})
    loss = module(meta, Gold(GOLD.spans.to("meta"), GOLD.per_level))
    assert loss.device.type == "meta" and loss.shape == ()
    loss.backward()


def test_a_bundled_partner_reads_the_states_and_the_memory_is_written_once():
    module = BundledNER(
        width=WIDTH,
        n_labels=N_LABELS,
        seq=build_hierarchical_ner(word_width=WORD_WIDTH, hidden_width=8, sentence_width=4),
        alpha=0.5,
    )
    module.seq.memory.learn_words(WORDS, COUNTS)
    module.train()(make_tokens(), GOLD).backward()
    assert module.seq.memory.index.table[3].sum() == (KEYS[MASK.numpy()] != 9).sum()


@pytest.mark.parametrize(
    "option,value",
    [
        ("word_width", 0),
        ("hidden_width", 7),
        ("sentence_width", 3),
        ("kernel", 2),
        ("mix", 1.5),
        ("memory_size", 0),
        ("max_slots", 0),
    ],
)
def test_impossible_options_are_refused(option, value):
    with pytest.raises(ValueError, match=option):
        build_hierarchical_ner(None, **{option: value})


def test_word_vector_cannot_be_wider_than_the_token_vector():
    with pytest.raises(ValueError, match="word_width"):
        HierarchicalNER(width=3, n_labels=1, word_width=4)


TEXTS = [
    ("Italy beat Spain in Rome", [(0, 1, "GPE"), (2, 3, "GPE"), (4, 5, "GPE")]),
    ("Ann saw Bob Smith in Italy", [(0, 1, "PERSON"), (2, 4, "PERSON"), (5, 6, "GPE")]),
    ("Bob saw Spain", [(0, 1, "PERSON"), (2, 3, "GPE")]),
]


def make_examples(nlp):
    for text, ents in TEXTS:
        doc = Doc(nlp.vocab, words=text.split())
        doc.ents = [Span(doc, *ent) for ent in ents]
        yield Example(Doc(nlp.vocab, words=text.split()), doc)


def make_nlp():
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-spanner.TunedVectors.v1", "width": 16, "min_count": 1}
    model = {"tok2vec": encoder, "hidden_width": 16, "sentence_width": 8, "dropout": 0.1}
    nlp.add_pipe("hierarchical_ner", config={"model": model})
    return nlp


def test_learns_a_few_sentences_and_survives_storage():
    nlp = make_nlp()
    examples = list(make_examples(nlp))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(25):
        nlp.update(examples, sgd=optimizer)
    memory = nlp.get_pipe("hierarchical_ner").model.shims[0].module.memory
    assert not memory.index.is_silent
    assert memory.index.n_slots == sum(len(eg.predicted) for eg in examples)
    assert nlp.evaluate(list(make_examples(nlp)))["ents_f"] == 1.0
    loaded = make_nlp().from_bytes(nlp.to_bytes())
    docs = [Doc(nlp.vocab, words=["Carla", "saw", "Spain", "and", "Bob"]) for _ in range(2)]
    first, second = nlp(docs[0]), loaded(docs[1])
    assert [str(e) for e in first.ents] == [str(e) for e in second.ents]
    key = "ents"
    assert list(first.spans[key].attrs["scores"]) == list(second.spans[key].attrs["scores"])
    # A pipeline that was loaded goes on with the memory it has.
    loaded.update(list(make_examples(loaded)), sgd=loaded.resume_training())
    again = loaded.get_pipe("hierarchical_ner").model.shims[0].module.memory
    assert again.index.table[3].sum() == memory.index.table[3].sum() + again.index.n_slots
