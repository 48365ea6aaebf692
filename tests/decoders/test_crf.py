"""The CRF against enumeration of all paths."""

import itertools

import pytest
import torch

from spacy_spanner.decoders import crf
from spacy_spanner.decoders.crf import CRF, _log_sums, _scaled_sums
from spacy_spanner.decoders.tags import TagScheme

CASES = [("IO", 2, 5), ("IO", 3, 4), ("BIO", 1, 5), ("BIO", 2, 4), ("BIOES", 1, 5), ("BIOES", 2, 4)]
DTYPES = [torch.float32, torch.float64]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def make_crf(name: str, n_labels: int, dtype: torch.dtype, seed: int = 0) -> CRF:
    torch.manual_seed(seed)
    crf = CRF(TagScheme(name, n_labels)).to(dtype)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def make_rows(crf: CRF, length: int, dtype: torch.dtype, scale: float = 2.0):
    """Rows of all lengths 1..L, with noise in the padding."""
    lengths = list(range(1, length + 1))
    emissions = scale * torch.randn(length, length, crf.scheme.n_tags, dtype=dtype)
    mask = torch.arange(length) < torch.tensor(lengths)[:, None]
    return emissions, mask, lengths


def all_paths(crf: CRF, emissions: torch.Tensor) -> dict:
    """The score of each allowed path of one unpadded row (n, K)."""
    start, trans, end, emit = (x.tolist() for x in (crf.start, crf.trans, crf.end, emissions))
    starts, transitions, ends = (
        x.tolist() for x in (crf.scheme.starts, crf.scheme.transitions, crf.scheme.ends)
    )
    scores = {}
    for path in itertools.product(range(len(start)), repeat=len(emit)):
        steps = list(itertools.pairwise(path))
        if starts[path[0]] and ends[path[-1]] and all(transitions[y][z] for y, z in steps):
            score = start[path[0]] + sum(trans[y][z] for y, z in steps) + end[path[-1]]
            scores[path] = score + sum(emit[t][y] for t, y in enumerate(path))
    return scores


def log_sum(scores) -> torch.Tensor:
    return torch.tensor(list(scores), dtype=torch.float64).logsumexp(0)


def random_paths(crf: CRF, emissions: torch.Tensor, lengths: list) -> list:
    rows = [list(all_paths(crf, row[:n])) for row, n in zip(emissions, lengths, strict=True)]
    return [paths[torch.randint(len(paths), ()).item()] for paths in rows]


def pad_tags(paths: list, length: int) -> torch.Tensor:
    return torch.tensor([[*path, *[0] * (length - len(path))] for path in paths])


@pytest.mark.parametrize("scale", [2.0, 1000.0])  # exponentials of the latter are all zero
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name,n_labels,length", CASES)
def test_likelihood_equals_enumeration(name, n_labels, length, dtype, scale):
    crf = make_crf(name, n_labels, dtype)
    emissions, mask, lengths = make_rows(crf, length, dtype, scale)
    paths = random_paths(crf, emissions, lengths)
    known = (torch.rand(mask.shape) < 0.5) & mask
    tags = pad_tags(paths, length)
    nll = crf.nll(emissions, tags, mask)
    partial = crf.nll(emissions, torch.where(known, tags, 1), mask, known)
    assert nll.dtype == dtype
    alone = [
        crf.nll(emissions[[i]], torch.where(known, tags, 1)[[i]], mask[[i]], known[[i]])
        for i in range(len(paths))
    ]
    torch.testing.assert_close(torch.cat(alone), partial)
    for row, path in enumerate(paths):
        scores = all_paths(crf, emissions[row, : len(path)])
        total = log_sum(scores.values())
        agree = [
            score
            for other, score in scores.items()
            if all(other[t] == path[t] for t in range(len(path)) if known[row, t])
        ]
        close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
        torch.testing.assert_close(nll[row].double(), total - scores[path], **close)
        torch.testing.assert_close(partial[row].double(), total - log_sum(agree), **close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name,n_labels,length", CASES)
def test_best_path_equals_enumeration(name, n_labels, length, dtype):
    crf = make_crf(name, n_labels, dtype)
    emissions, mask, lengths = make_rows(crf, length, dtype)
    tags, score = crf.viterbi(emissions, mask)
    for row, n in enumerate(lengths):
        scores = all_paths(crf, emissions[row, :n])
        close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
        best = torch.tensor(max(scores.values()), dtype=torch.float64)
        torch.testing.assert_close(score[row].double(), best, **close)
        found = torch.tensor(scores[tuple(tags[row, :n].tolist())], dtype=torch.float64)
        torch.testing.assert_close(found, best, **close)
        assert not tags[row, n:].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name,n_labels,length", CASES)
def test_span_marginals_equal_enumeration(name, n_labels, length, dtype):
    crf = make_crf(name, n_labels, dtype)
    emissions, mask, lengths = make_rows(crf, length, dtype)
    spans = [
        (row, start, end, label)
        for row, n in enumerate(lengths)
        for start in range(n)
        for end in range(start + 1, n + 1)
        for label in range(n_labels)
    ]
    found = crf.span_marginals(emissions, mask, torch.tensor(spans))
    mass = dict.fromkeys(spans, 0.0)
    for row, n in enumerate(lengths):
        scores = all_paths(crf, emissions[row, :n])
        total = log_sum(scores.values())
        here = torch.ones((1, n), dtype=torch.bool)
        for path, score in scores.items():
            entities = crf.scheme.tags_to_spans(torch.tensor([path]), here).tolist()
            for _, start, end, label in entities:
                mass[row, start, end, label] += (score - total).exp().item()
    expected = torch.tensor(list(mass.values()), dtype=torch.float64)
    close = {"rtol": 0, "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(found.detach().double(), expected, **close)


@pytest.mark.parametrize("name", ["BIO", "BIOES"])
def test_long_rows_keep_their_digits(name):
    crf = make_crf(name, 3, torch.float32)
    emissions = 10 * torch.randn(2, 600, crf.scheme.n_tags)
    mask = torch.arange(600) < torch.tensor([[600], [411]])
    tags, _ = crf.viterbi(emissions, mask)
    spans = torch.cat((crf.scheme.tags_to_spans(tags, mask), torch.tensor([[0, 3, 590, 1]])))
    wide = make_crf(name, 3, torch.float64)
    wide.load_state_dict(crf.state_dict())
    found = crf.span_marginals(emissions, mask, spans).double()
    torch.testing.assert_close(
        found, wide.span_marginals(emissions.double(), mask, spans), rtol=1e-5, atol=1e-6
    )
    assert (found <= 1 + 1e-6).all() and (found[:-1] > 0).all()


@pytest.mark.parametrize("name", ["BIO", "BIOES", "IO"])
def test_a_constant_changes_nothing(name):
    """Sums over long rows may lie far below the score of a forbidden move."""
    crf = make_crf(name, 2, torch.float64)
    emissions, mask = torch.randn(1, 300, crf.scheme.n_tags).double(), torch.ones((1, 300)) > 0
    tags, score = crf.viterbi(emissions, mask)
    spans = crf.scheme.tags_to_spans(tags, mask)
    lower = emissions - 100
    torch.testing.assert_close(crf.viterbi(lower, mask)[1], score - 300 * 100)
    torch.testing.assert_close(crf.nll(lower, tags, mask), crf.nll(emissions, tags, mask))
    expected = crf.span_marginals(emissions, mask, spans)
    torch.testing.assert_close(crf.span_marginals(lower, mask, spans), expected)


def test_partial_likelihood_of_all_and_nothing():
    crf = make_crf("BIO", 2, torch.float64)
    emissions, mask, lengths = make_rows(crf, 4, torch.float64)
    tags = pad_tags(random_paths(crf, emissions, lengths), 4)
    everything = crf.nll(emissions, tags, mask, torch.ones_like(mask))
    torch.testing.assert_close(everything, crf.nll(emissions, tags, mask))
    nothing = crf.nll(emissions, tags, mask, torch.zeros_like(mask))
    torch.testing.assert_close(nothing, torch.zeros_like(nothing))


def test_empty_rows_cost_nothing():
    crf = make_crf("BIO", 2, torch.float32)
    mask = torch.tensor([[True, True], [False, False]])
    nll = crf.nll(torch.randn(2, 2, 5), torch.zeros((2, 2), dtype=torch.int64), mask)
    assert nll[0] > 0 and nll[1] == 0


@pytest.mark.parametrize("partly", [False, True])
def test_gradients(partly):
    crf = make_crf("BIOES", 1, torch.float64)
    emissions, mask, lengths = make_rows(crf, 3, torch.float64)
    tags = pad_tags(random_paths(crf, emissions, lengths), 3)
    known = torch.arange(3) % 2 == 0
    known = (mask & known) if partly else None

    def loss(emissions, *parameters):
        return crf.nll(emissions, tags, mask, known)

    inputs = (emissions.requires_grad_(True), *crf.parameters())
    assert torch.autograd.gradcheck(loss, inputs)


def test_only_the_scores_are_saved():
    crf = make_crf("BIO", 2, torch.float32)
    assert set(crf.state_dict()) == {"start", "trans", "end"}
    assert not any(p.any() for p in CRF(TagScheme("BIO", 2)).parameters())


def test_a_tag_that_only_improbable_tags_lead_to():
    crf = make_crf("BIO", 1, torch.float64)
    emissions = torch.zeros(1, 3, 3, dtype=torch.float64)
    emissions[0, 0, 0] = 800.0  # O: then I can only follow a B that is less probable by e^-800
    emissions[0, 1, 2] = 1600.0
    emissions.requires_grad_(True)
    scores = all_paths(crf, emissions[0])
    nll = crf.nll(emissions, torch.tensor([[1, 2, 2]]), torch.ones(1, 3, dtype=torch.bool))
    assert nll.item() == pytest.approx((log_sum(scores.values()) - scores[(1, 2, 2)]).item())
    nll.sum().backward()
    assert emissions.grad.isfinite().all() and emissions.grad[0, 1].abs().sum() < 1e-6


@pytest.mark.parametrize("name,n_labels,length", CASES)
def test_both_ways_to_sum_agree(name, n_labels, length):
    crf = make_crf(name, n_labels, torch.float64)
    emissions, _, _ = make_rows(crf, length, torch.float64)
    start, trans, _ = crf.scores()
    fast, is_exact = _scaled_sums(emissions, start, trans)
    assert is_exact.all()
    assert _scaled_sums(1000 * emissions, start, trans)[1].all() == (
        name == "IO"
    )  # which forbids nothing
    torch.testing.assert_close(_log_sums(emissions, start, trans), fast)


@pytest.mark.parametrize("known_share", [None, 0.5])
def test_scaled_sums_have_the_gradients_of_log_space(monkeypatch, known_share):
    torch.manual_seed(0)
    layer = CRF(TagScheme("BIOES", 3))
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    emissions = torch.randn(4, 7, 13, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([7, 3, 1, 5])[:, None]
    tags = torch.zeros(4, 7, dtype=torch.long)
    known = None if known_share is None else torch.rand(4, 7) < known_share

    def gradients():
        inputs = [emissions, *layer.parameters()]
        return torch.autograd.grad(layer.nll(emissions, tags, mask, known).sum(), inputs)

    scaled = gradients()
    log_sums = crf._log_sums
    monkeypatch.setattr(
        crf, "_forward", lambda e, start, trans, counted=None: log_sums(e, start, trans)
    )
    for got, expected in zip(scaled, gradients(), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)


def test_unknown_tokens_take_no_table_of_transitions_a_step():
    """With 500 labels, log space would need 32 MB for each token of a row, and as much for its gradient."""
    layer = CRF(TagScheme("BIOES", 200))
    emissions = torch.randn(1, 30, 801, requires_grad=True)
    mask, tags = torch.ones(1, 30, dtype=torch.bool), torch.zeros(1, 30, dtype=torch.long)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: saved.append(x.numel()) or x, lambda x: x
    ):
        layer.nll(emissions, tags, mask, torch.rand(1, 30) < 0.7).backward()
    assert sum(n >= 801 * 801 for n in saved) < 10
