"""Modularized Interaction Network: its laws and its ablations."""

from typing import List, Optional

import pytest
import torch
from spacy.util import registry
from torch import Tensor

from spacy_spanner.contract import Gold, Tokens
from spacy_spanner.models.information import Information
from spacy_spanner.models.modularized_interaction import (
    Fusion,
    Gate,
    ModularizedInteraction,
    build_modularized_interaction,
)

from ..rows import make_tokens as random_tokens

WIDTH, HIDDEN, LABELS = 5, 2, 2
SPANS = [(0, 0, 2, 0), (0, 4, 5, 1), (1, 1, 3, 1)]
LENGTHS = [5, 3, 1]
OPTIONS = [
    {},
    {"segment_window": 2},
    {"use_interaction": False},
    {"use_boundary": False},
    {"use_type": False},
    {"use_boundary": False, "use_type": False},
]


def mask_of(lengths: List[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def make_tokens(lengths: List[int] = LENGTHS, width: int = WIDTH) -> Tokens:
    return random_tokens(lengths, width)


def make_gold(spans=SPANS, known: Optional[Tensor] = None) -> Gold:
    table = torch.tensor(spans, dtype=torch.int64).view(-1, 4)
    return Gold(table, (len(table),), known)


def make_module(**options) -> ModularizedInteraction:
    torch.manual_seed(1)
    settings = {"hidden": HIDDEN, "dropout": 0.0, **options}
    module = ModularizedInteraction(width=WIDTH, n_labels=LABELS, **settings)
    for parameter in module.parameters():  # away from the start, where much is even or zero
        parameter.data += 0.5 * torch.randn_like(parameter)
    return module


def row_of(tokens: Tokens, row: int) -> Tokens:
    length = tokens.lengths[row]
    return Tokens(tokens.x[[row], :length], tokens.mask[[row], :length], [length])


def gold_of(gold: Gold, row: int) -> Gold:
    table = gold.flat[gold.flat[:, 0] == row].clone()
    table[:, 0] = 0
    known = None if gold.known is None else gold.known[[row]][:, : LENGTHS[row]]
    return Gold(table, (len(table),), known)


def test_gate_by_the_equation():
    gate = Gate(guide_width=3, width=4)
    guide, x = torch.randn(1, 2, 3), torch.randn(1, 2, 4)
    expected = torch.sigmoid(guide @ gate.guide.weight.T + x @ gate.own.weight.T) * x
    torch.testing.assert_close(gate(guide, Information.of(x)), expected)


def test_fusion_starts_as_the_states_themselves():
    fusion = Fusion(width=3, extra_widths={"segment": 4}, dropout=0.5).eval()
    states = torch.randn(2, 5, 3)
    torch.testing.assert_close(
        fusion(states, {"segment": Information.of(torch.zeros(2, 5, 4))}), states
    )


def test_fusion_weighs_gated_information_by_its_width():
    torch.manual_seed(0)
    fusion = Fusion(width=3, extra_widths={"segment": 4, "types": 2}, dropout=0.5).eval()
    torch.nn.init.normal_(fusion.mix.weight)
    states, segment, types = torch.randn(2, 5, 3), torch.randn(2, 5, 4), torch.randn(2, 5, 2)
    extras = {"types": Information.of(types), "segment": Information.of(segment)}
    fused = fusion(states, extras)
    gated = [0.5 * gate(states, extras[name]) for name, gate in fusion.gates.items()]
    parts = [states, *gated]
    expected = sum(
        part @ weight.T for part, weight in zip(parts, fusion.mix.weight.split([3, 4, 2], dim=1))
    )
    torch.testing.assert_close(fused, expected + fusion.mix.bias)


def test_fused_states_are_dropped_out():
    fusion = Fusion(width=30, extra_widths={"types": 20}, dropout=0.5)
    fused = fusion(torch.randn(4, 50, 30), {"types": Information.of(torch.randn(4, 50, 20))})
    assert 0.4 < (fused == 0).float().mean() < 0.6


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("with_known", [False, True])
def test_batch_equals_single_rows(options, with_known):
    module, tokens = make_module(**options), make_tokens()
    known = torch.tensor([[True, True, False, False, True], [False] * 5, [True] * 5])
    gold = make_gold(known=known if with_known else None)
    encoded = module.encode(tokens)
    losses = []
    for row, length in enumerate(LENGTHS):
        single = module.encode(row_of(tokens, row))
        torch.testing.assert_close(encoded.x[row, :length], single.x[0])
        losses.append(module.loss(single, gold_of(gold, row)))
    torch.testing.assert_close(module.loss(encoded, gold), torch.stack(losses).mean())
    found = module.decode(encoded, torch.zeros(LABELS))
    for row in range(len(LENGTHS)):
        alone = module.decode(module.encode(row_of(tokens, row)), torch.zeros(LABELS))
        here = found.spans[:, 0] == row
        assert found.spans[here, 1:].equal(alone.spans[:, 1:])
        torch.testing.assert_close(found.scores[here], alone.scores)


@pytest.mark.parametrize("options", OPTIONS)
def test_gradient_to_the_tokens(options):
    module, tokens, gold = make_module(**options).double(), make_tokens(), make_gold()

    def loss(x: Tensor) -> Tensor:
        return module(Tokens(x, tokens.mask, tokens.lengths), gold)

    x = tokens.x.double().requires_grad_(True)
    assert torch.autograd.gradcheck(loss, (x,), fast_mode=True)


@pytest.mark.parametrize("options", OPTIONS)
def test_every_parameter_learns(options):
    module = make_module(**options)
    module(make_tokens(), make_gold()).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


@pytest.mark.parametrize("options", OPTIONS)
def test_loss_reads_no_values(options):
    module, tokens, gold = make_module(**options).to("meta"), make_tokens(), make_gold()
    x = tokens.x.to("meta").requires_grad_(True)
    known = torch.ones(3, 5, dtype=torch.bool, device="meta")
    moved = Gold(gold.spans.to("meta"), gold.per_level, known)
    module(Tokens(x, tokens.mask.to("meta"), tokens.lengths), moved).backward()
    assert x.grad is not None


def parts_of(module: ModularizedInteraction) -> set:
    """Names of the parameters, cut after the part of the network they belong to."""
    depth = {"encoders": 2, "fusion": 3}
    names = [name.split(".") for name, _ in module.named_parameters()]
    return {".".join(name[: depth.get(name[0], 1)]) for name in names}


BOUNDARY = {"encoders.boundary", "pointer", "fusion.gates.boundary", "fusion.gates.segment"}
TYPES = {"encoders.types", "types", "fusion.gates.types"}
MIX = {"fusion.mix.weight", "fusion.mix.bias"}


@pytest.mark.parametrize(
    "options, removed",
    [
        ({"use_interaction": False}, {"interaction"}),
        ({"use_boundary": False}, {"interaction"} | BOUNDARY),
        ({"use_type": False}, {"interaction"} | TYPES),
        ({"use_boundary": False, "use_type": False}, {"interaction"} | BOUNDARY | TYPES | MIX),
    ],
)
def test_ablation_removes_exactly_its_part(options, removed):
    full = parts_of(make_module())
    assert full == {"encoders.ner", "tagger", "interaction"} | BOUNDARY | TYPES | MIX
    assert parts_of(make_module(**options)) == full - removed


def test_encode_gives_the_states_of_the_tagger():
    module, tokens = make_module(), make_tokens()
    encoded = module.encode(tokens)
    torch.testing.assert_close(encoded.x, module.encoders["ner"](tokens.x, LENGTHS))
    assert encoded.x.shape[2] == module.output_width == 2 * HIDDEN
    assert set(encoded.parts) == {"boundary", "types"}


def test_loss_is_the_weighted_sum_of_its_terms():
    weights = {"ner_weight": 2.0, "boundary_weight": 3.0, "type_weight": 0.5}
    module = make_module(**weights)
    encoded, gold = module.encode(make_tokens()), make_gold()
    terms = module.loss_terms(encoded, gold)
    expected = 2 * terms["ner"] + 3 * terms["boundary"] + 0.5 * terms["types"]
    torch.testing.assert_close(module.loss(encoded, gold), expected)


def test_taggers_start_from_tag_frequencies():
    module = make_module()
    known = torch.tensor([[False] * 5, [True] * 5, [False] * 5])
    module.prepare(make_tokens(), make_gold(known=known))
    # Annotated: two words of one label 0 span, one word of label 1, then O B E of label 1.
    types = torch.tensor([1 + 1, 2 + 1, 3 + 1]) / 9
    torch.testing.assert_close(module.types.project.bias.exp(), types)
    tags = {"B": (1, 1), "I": (0, 0), "E": (1, 1), "S": (0, 1)}
    expected = torch.tensor([1, *(n for counts in tags.values() for n in counts)]) + 1
    torch.testing.assert_close(module.tagger.project.bias.exp(), expected / expected.sum())


def test_rows_without_annotation_cost_nothing():
    module = make_module()
    known = torch.zeros(3, 5, dtype=torch.bool)
    loss = module(make_tokens(), make_gold(spans=[], known=known))
    assert loss.item() == pytest.approx(0.0, abs=1e-5)


def test_dropout_is_off_in_evaluation_and_on_in_training():
    module, tokens = make_module(dropout=0.5), make_tokens()
    first, second = (module.encode(tokens).parts["types"] for _ in range(2))
    assert not first.equal(second)
    module.eval()
    first, second = (module.encode(tokens).parts["types"] for _ in range(2))
    assert first.equal(second)


def test_decode_respects_the_thresholds():
    module = make_module()
    encoded = module.encode(make_tokens())
    found = module.decode(encoded, torch.zeros(LABELS))
    assert len(found.spans) > 0
    assert len(module.decode(encoded, torch.ones(LABELS)).spans) == 0


def test_no_labels():
    module = ModularizedInteraction(width=WIDTH, n_labels=0, hidden=HIDDEN)
    encoded = module.encode(make_tokens())
    assert torch.isfinite(module.loss(encoded, make_gold(spans=[])))
    assert len(module.decode(encoded, torch.zeros(0)).spans) == 0


@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[-1]])
def test_learns_a_toy_language(options):
    """An entity is a run of a's; its label says whether a c stands anywhere in the row."""
    torch.manual_seed(0)
    words = torch.eye(3, WIDTH)
    module = ModularizedInteraction(width=WIDTH, n_labels=LABELS, **{**options, "hidden": 8})
    module.dropout.p = 0.1
    rows = ["aabab", "baacb", "bbbbb", "abbca", "baaab", "cabaa"]
    spans = [
        (row, start, end, int("c" in text))
        for row, text in enumerate(rows)
        for start in range(5)
        for end in range(start + 1, 6)
        if text[start:end] == "a" * (end - start)
        and text[:start][-1:] != "a"
        and text[end:][:1] != "a"
    ]
    x = torch.stack([words[["abc".index(letter) for letter in text]] for text in rows])
    tokens = Tokens(x, torch.ones(6, 5, dtype=torch.bool), [5] * 6)
    gold = make_gold(spans=spans)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    first = None
    for _ in range(80):
        loss = module(tokens, gold)
        first = loss.item() if first is None else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.25 * first
    module.eval()
    found = module.decode(module.encode(tokens), torch.zeros(LABELS))
    assert sorted(map(tuple, found.spans.tolist())) == sorted(spans)


def test_architecture_is_registered():
    build = registry.architectures.get("spacy-spanner.ModularizedInteraction.v1")
    assert build is build_modularized_interaction


def test_more_cells_for_longer_rows_and_more_parts():
    full, plain = make_module(), make_module(use_boundary=False, use_type=False)
    assert full.cells(10) > 3 * 10 * 10
    assert full.cells(20) > 2 * full.cells(10)
    assert plain.cells(20) == 2 * plain.cells(10) < full.cells(20)
