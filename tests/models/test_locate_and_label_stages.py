"""The stages, losses and the sample of Locate and Label."""

import numpy
import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_spanner.models.locate_and_label_sample import Sample, sample_seeds
from spacy_spanner.models.locate_and_label_stages import (
    Spans,
    View,
    binary_focal,
    gelu,
    offset_loss,
    overlap_loss,
    recurring_pieces,
)

from .locate_and_label_cases import LENGTHS, make, make_gold, make_tokens, slow_scores


def draw(**options):
    options = {
        "alpha1": 0.7,
        "negatives_per_positive": 5,
        "negatives_per_row": 2,
        "slots_per_gold": 50,
        **options,
    }
    gold = make_gold([(0, 2, 6, 0), (1, 0, 2, 1)])
    sample = sample_seeds(make_tokens([20, 20, 9]).mask, gold, torch.arange(1, 6), **options)
    return sample, sample.spans.row[sample.used], sample.overlap[sample.used]


def test_each_row_has_all_positives_and_five_negatives_for_each_and_two():
    sample, row, overlap = draw()
    # Around [2, 6) lie two spans of three and two of five words at IoU .75 and .8.
    for number, n_positive in enumerate((5, 1, 0)):
        here = overlap[row == number]
        assert int((here >= 0.7).sum()) == n_positive
        assert int((here < 0.7).sum()) == 5 * n_positive + 2
    picked = sample.spans.pick(sample.used)
    spans = torch.stack([picked.row, picked.start, picked.end], dim=1)
    assert len(torch.unique(spans, dim=0)) == len(spans)


def test_negatives_are_drawn_afresh():
    starts = [draw()[0].spans.start.tolist() for _ in range(2)]
    assert starts[0] != starts[1]


def test_where_slots_are_short_negatives_give_way():
    _, row, overlap = draw(slots_per_gold=5)
    assert len(row) == 2 * 3 + 5 * 2 + 2  # the gold spans have slots of their own
    assert int((overlap >= 0.7).sum()) == 6


def test_gold_is_a_positive_whatever_its_length():
    model = make(seed_lengths=[1])
    terms = model.loss_terms(make_tokens(), make_gold([(0, 0, 7, 0)]))
    assert int(terms["offsets"][1]) == 1


def test_the_band_holds_the_scores_of_the_filter():
    model, tokens = make(), make_tokens()
    band = model.filter.band(tokens.x, 9)
    assert band.shape == (3, 7, 9)
    for row, n in enumerate(LENGTHS):
        for start in range(n):
            for width in range(1, n - start + 1):
                last = start + width - 1
                expected = slow_scores(
                    model.filter, tokens.x[row], start, last, start, start + width
                )
                torch.testing.assert_close(band[row, start, width - 1], expected[0])
    assert (band[0, 3, 4:] == -torch.inf).all()


@pytest.mark.parametrize("n_spans", [3, 40])
def test_projecting_tokens_or_spans_is_the_same(n_spans):
    model, tokens = make(), make_tokens([9, 9])
    spans = Spans(*torch.tensor([[n % 2, n % 8, n % 8 + 1] for n in range(n_spans)]).unbind(dim=1))
    view = View(tokens)
    got = view.inner(model.classifier, spans, view.pool(spans))
    for n in range(n_spans):
        row, start = n % 2, n % 8
        expected = slow_scores(model.classifier, tokens.x[row], start, start, start, start + 1)
        torch.testing.assert_close(got[n], expected)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_focal_loss_follows_equation_12(gamma):
    generator = torch.Generator().manual_seed(0)
    binary, positive = torch.randn(8, dtype=torch.float64, generator=generator), torch.arange(8) > 3
    p = binary.sigmoid()
    by_hand = torch.where(positive, -((1 - p) ** gamma) * p.log(), -(p**gamma) * (1 - p).log())
    got = binary_focal(binary, positive, gamma=gamma)
    assert got.shape == (8,)
    torch.testing.assert_close(got, by_hand)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_focal_loss_has_finite_gradients_when_saturated(gamma):
    logits = torch.tensor([300.0, -300.0], requires_grad=True)
    binary_focal(logits, torch.tensor([True, True]), gamma=gamma).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_a_perfect_regression_costs_nothing():
    start, end = torch.tensor([2.0, 0.0]), torch.tensor([5.0, 1.0])
    assert (overlap_loss(start, end, start, end) == 0).all()
    assert (offset_loss(torch.ones(2, 2), torch.ones(2, 2)) == 0).all()
    # Spans that are apart cost more than one, the more the further.
    apart = overlap_loss(start, end, start + 10, end + 10)
    assert (apart > 1).all() and (overlap_loss(start, end, start + 20, end + 20) > apart).all()


def test_empty_slots_change_nothing():
    """On a CPU they are left out; on a GPU they are carried along."""
    module, tokens, gold = make(negatives_per_row=2), make_tokens(), make_gold()
    sample = module.sample(tokens.mask, gold, module.seed_widths)
    assert sample.used.all()
    empty = Spans(*torch.tensor([[0, 0], [0, 0], [1, 1]]))
    spans = Spans(
        torch.cat([sample.spans.row, empty.row]),
        torch.cat([sample.spans.start, empty.start]),
        torch.cat([sample.spans.end, empty.end]),
    )
    overlap, used = F.pad(sample.overlap, (0, 2)), F.pad(sample.used, (0, 2))
    wider = Sample(spans, overlap, F.pad(sample.gold, (0, 0, 0, 2)), used)
    terms = []
    for chosen in (sample, wider):
        module.sample = lambda *args, chosen=chosen: chosen
        terms.append(module.loss_terms(tokens, gold))
    for name, (value, count) in terms[0].items():
        torch.testing.assert_close(terms[1][name][0], value)
        assert terms[1][name][1] == count


class Shapes(TorchDispatchMode):
    """Keeps the shapes that GELU is asked for."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "gelu" in str(func):
            self.seen.add(tuple(args[0].shape))
        return func(*args, **(kwargs or {}))


def test_recurring_pieces_cover_all():
    for total in [*range(1, 200), 4095, 4096, 4097, 99_999]:
        covered = numpy.zeros(total, dtype=int)
        for piece in recurring_pieces(total):
            covered[piece] += 1
        assert covered.min() == 1 and covered.max() <= 2 and (covered == 2).mean() < 0.15


def test_gelu_meets_few_shapes():
    """oneDNN keeps code for each of them for as long as the process runs."""
    width, shapes = 48, Shapes()
    with shapes, torch.no_grad():
        for n_spans in range(1, 2000, 97):
            x = torch.randn(n_spans, width)
            assert torch.allclose(gelu(x), F.gelu(x.double()).float(), atol=1e-5)
    sizes = {shape[0] for shape in shapes.seen if len(shape) == 1}
    # No bits but the first four.
    assert all(size & -size >= 1 << max(size.bit_length() - 4, 0) for size in sizes)
    assert gelu(torch.zeros(0, 3)).shape == (0, 3)
    x = torch.randn(3, 4, requires_grad=True)
    assert torch.allclose(gelu(x), F.gelu(x), atol=1e-5) and gelu(x).requires_grad
    assert torch.allclose(gelu(x.detach().t()), F.gelu(x.detach().t()))
