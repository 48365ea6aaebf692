"""The multilabel loss over the cells of a pair table."""

import pytest
import torch

from spacy_spanner.models.cell_losses import multilabel_loss, multilabel_loss_of_starts
from spacy_spanner.spans.pair_table import GoldCells

# Row, label, first token, column, whether it is in the table. The last two stand at one place.
GOLD = [
    (0, 0, 1, 2, 1),
    (0, 0, 2, 3, 1),
    (1, 1, 0, 4, 1),
    (2, 0, 3, 3, 0),
    (1, 2, 2, 4, 1),
    (1, 2, 2, 4, 0),
]


def gold_cells() -> GoldCells:
    row, label, first, column, inside = torch.tensor(GOLD).unbind(1)
    return GoldCells(row, label, first, column, inside.bool())


def slow(logits, candidates):
    """The loss as printed, cell by cell."""
    gold = {cell[:4] for cell in GOLD if cell[4]}
    losses = []
    for b in range(logits.shape[0]):
        for c in range(logits.shape[1]):
            zero = logits.new_zeros(())
            negative, positive = [zero], [zero]
            for i in range(logits.shape[2]):
                for j in range(logits.shape[3]):
                    if (b, c, i, j) in gold:
                        positive.append(-logits[b, c, i, j])
                    elif candidates[b, 0, i, j]:
                        negative.append(logits[b, c, i, j])
            losses.append(torch.stack(negative).logsumexp(0) + torch.stack(positive).logsumexp(0))
    return torch.stack(losses).view(logits.shape[:2])


@pytest.mark.parametrize("sum_labels", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
def test_loss_and_gradient_equal_the_slow_form(spread, dtype, transposed, sum_labels):
    generator = torch.Generator().manual_seed(0)
    logits = spread * torch.randn(4, 3, 5, 5, generator=generator, dtype=dtype)
    if transposed:  # not contiguous
        logits = logits.transpose(2, 3)
    candidates = torch.rand(4, 1, 5, 5, generator=generator) < 0.5
    candidates[3] = False  # a row with neither negatives nor gold
    candidates[2] = torch.arange(25).view(5, 5) == 7  # one negative alone
    results = []
    for fast in (True, False):
        leaf = logits.detach().requires_grad_()
        if fast:
            loss = multilabel_loss(leaf, gold_cells(), candidates, sum_labels=sum_labels)
        else:
            by_label = slow(leaf, candidates)
            loss = by_label.sum(1).mean() if sum_labels else by_label.mean()
        results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
    (loss, gradient), (slow_loss, slow_gradient) = results
    torch.testing.assert_close(loss, slow_loss)
    torch.testing.assert_close(gradient, slow_gradient)
    assert (gradient[3] == 0).all()
    counted = candidates.expand_as(gradient).clone()
    for b, c, i, j, inside in GOLD:
        counted[b, c, i, j] |= bool(inside)
    assert (gradient[~counted] == 0).all()


def test_a_table_without_gold_or_candidates_costs_nothing():
    none = torch.zeros(0, dtype=torch.int64)
    gold = GoldCells(none, none, none, none, none.bool())
    logits = torch.randn(2, 3, 4, 4, requires_grad=True)
    loss = multilabel_loss(logits, gold, torch.zeros(2, 1, 4, 4, dtype=torch.bool))
    loss.backward()
    assert loss == 0 and (logits.grad == 0).all()


def slow_of_starts(logits, candidates):
    """For each first token and label, cell by cell; sum over labels, mean over tokens with candidates."""
    gold = {cell[:4] for cell in GOLD if cell[4]}
    total, n_starts = logits.new_zeros(()), 0
    n_rows, n_labels, length, columns = logits.shape
    for b in range(n_rows):
        for i in range(length):
            n_starts += bool(candidates[b, 0, i].any())
            for c in range(n_labels):
                zero = logits.new_zeros(())
                negative, positive = [zero], [zero]
                for j in range(columns):
                    if (b, c, i, j) in gold:
                        positive.append(-logits[b, c, i, j])
                    elif candidates[b, 0, i, j]:
                        negative.append(logits[b, c, i, j])
                total = total + torch.stack(negative).logsumexp(0)
                total = total + torch.stack(positive).logsumexp(0)
    return total / n_starts


@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
def test_loss_of_starts_and_its_gradient_equal_the_slow_form(spread):
    generator = torch.Generator().manual_seed(0)
    logits = spread * torch.randn(4, 3, 5, 5, generator=generator, dtype=torch.float64)
    candidates = torch.rand(4, 1, 5, 5, generator=generator) < 0.5
    candidates[3] = False  # padding
    results = []
    for compute in (multilabel_loss_of_starts, lambda x, _, counted: slow_of_starts(x, counted)):
        leaf = logits.detach().requires_grad_()
        loss = compute(leaf, gold_cells(), candidates)
        results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
    for fast, slow_value in zip(*results):
        torch.testing.assert_close(fast, slow_value)


def test_loss_of_starts_does_not_depend_on_padding():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 3, 5, 5, generator=generator)
    candidates = torch.ones(4, 1, 5, 5, dtype=torch.bool)
    padded = torch.nn.functional.pad(logits, (0, 0, 0, 4))
    wider = torch.nn.functional.pad(candidates, (0, 0, 0, 4))
    loss = multilabel_loss_of_starts(logits, gold_cells(), candidates)
    torch.testing.assert_close(multilabel_loss_of_starts(padded, gold_cells(), wider), loss)
