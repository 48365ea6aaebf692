"""BiLSTM-Pointer against slow loops over words; its pointer is held to them in test_boundary_pointer."""

import pytest
import torch

from spacy_spanner.models.bilstm_pointer import BiLSTMPointer, build_bilstm_pointer

from ..rows import gradient_is_exact, loss_on_meta, make_gold, make_tokens, one_row, table

D, C = 5, 3
LENGTHS = [6, 3, 1, 9]
GOLD = [(0, 0, 2, 1), (0, 3, 4, 0), (1, 0, 3, 2), (3, 1, 7, 1)]


def make(dtype=torch.float32):
    torch.manual_seed(3)
    options = {"hidden": 4, "dropout": 0.0, "width_scores": True}
    module = BiLSTMPointer(width=D, n_labels=C, **options).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return module


def slow_label_log_probs(module, x, start, stop):
    vector = torch.cat([x[start], x[stop - 1]])
    return (module.classify.weight @ vector + module.classify.bias).log_softmax(0)


@pytest.mark.parametrize("partly", [False, True])
def test_loss_equals_a_slow_loop(partly):
    module, tokens = make(), make_tokens(LENGTHS, D)
    known = torch.ones((4, 9), dtype=torch.bool)
    known[0, 5] = known[1, 1] = False  # the second stays known by its gold
    encoded = module.encode(tokens)
    points = module.pointer(encoded.x, tokens.mask)
    pointing, labels = 0.0, 0.0
    for row, length in enumerate(LENGTHS):
        ends = {start: stop - 1 for r, start, stop, _ in GOLD if r == row}
        inside = {t for r, s, e, _ in GOLD if r == row for t in range(s, e)}
        counted = [t for t in range(length) if not partly or known[row, t] or t in inside]
        losses = [-points[row, t, ends.get(t, max(LENGTHS))].item() for t in counted]
        pointing += sum(losses) / len(losses) / len(LENGTHS)
    for row, start, stop, label in GOLD:
        labels -= slow_label_log_probs(module, encoded.x[row], start, stop)[label].item()
    got = module(tokens, make_gold(GOLD, known=known if partly else None)).item()
    assert got == pytest.approx(pointing + labels / len(GOLD), abs=1e-5)


def test_decoding_equals_a_slow_loop():
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    encoded = module.encode(tokens)
    points, thresholds = module.pointer(encoded.x, tokens.mask), torch.tensor([0.1, 0.0, 0.05])
    expected = []
    for row, length in enumerate(LENGTHS):
        word = 0
        while word < length:
            log_prob, end = points[row, word].max(0)
            if end == max(LENGTHS):
                word += 1
                continue
            label_log_prob, label = slow_label_log_probs(module, encoded.x[row], word, end + 1).max(
                0
            )
            score = (log_prob + label_log_prob).exp().item()
            if score > thresholds[label]:
                expected.append((row, word, end.item() + 1, label.item(), score))
            word = end.item() + 1
    got = table(module.decode(encoded, thresholds))
    assert len(got) > 2 and [x[:4] for x in got] == [x[:4] for x in expected]
    assert [x[4] for x in got] == pytest.approx([x[4] for x in expected], abs=1e-5)


def test_rows_do_not_depend_on_each_other():
    module, tokens = make().eval(), make_tokens(LENGTHS, D)
    together = table(module.decode(module.encode(tokens), torch.zeros(C)))
    alone = []
    for row in range(len(LENGTHS)):
        encoded = module.encode(one_row(tokens, row, extra=row))
        alone += [(row, *rest) for _, *rest in table(module.decode(encoded, torch.zeros(C)))]
    assert [x[:4] for x in together] == [x[:4] for x in sorted(alone)]
    assert [x[4] for x in together] == pytest.approx([x[4] for x in sorted(alone)], abs=1e-4)


def test_gradient_by_finite_differences():
    module, tokens = make(torch.float64), make_tokens([6, 2], D, dtype=torch.float64)
    gold = make_gold([(0, 0, 3, 1), (0, 4, 5, 0), (1, 0, 2, 1)])
    assert gradient_is_exact(module, tokens, gold)


def test_loss_on_meta():
    loss_on_meta(make(), make_tokens(LENGTHS, D), make_gold(GOLD))


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="S003"):
        build_bilstm_pointer(hidden=0)
