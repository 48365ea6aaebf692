"""Interaction mechanism of the Modularized Interaction Network, by slow loops."""

import torch

from spacy_spanner.models.interaction import (
    Information,
    Interaction,
    LanLabels,
    Mixture,
    QinLabels,
    attend,
)


def test_attention_rows_sum_to_one_over_real_words():
    mask = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
    weights = attend(torch.randn(3, 5, 5), mask)
    torch.testing.assert_close(weights.sum(2), torch.ones(3, 5))
    assert not weights.masked_select(~mask[:, None, :].expand(3, 5, 5)).any()


def test_qin_labels_by_a_loop():
    x, table = torch.randn(2, 3, 4), torch.randn(5, 4)
    found = QinLabels(width=4, n_labels=5, own_table=False)(x, table).vectors()
    for row in range(2):
        for place in range(3):
            weights = torch.stack([x[row, place] @ label for label in table]).softmax(0)
            expected = sum(weights[m] * table[m] for m in range(5))
            torch.testing.assert_close(found[row, place], expected)


def test_lan_labels_are_multi_head_attention_with_relu_and_residual():
    torch.manual_seed(0)
    layer = LanLabels(width=4, n_labels=3, n_heads=2)
    torch.nn.init.normal_(layer.table)
    x = torch.randn(2, 3, 4)
    query = layer.query(x).relu()
    key, value = layer.key(layer.table).relu(), layer.value(layer.table).relu()
    heads = []
    for part in (slice(0, 2), slice(2, 4)):
        weights = (query[..., part] @ key[:, part].T / 2**0.5).softmax(2)
        heads.append(weights @ value[:, part])
    torch.testing.assert_close(layer(x).vectors(), x + torch.cat(heads, dim=2))


def test_each_side_reads_the_other_by_its_own_attention():
    torch.manual_seed(0)
    layer = Interaction(width=4, n_types=3, label_attention="none", n_heads=1)
    boundary, types = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = layer(boundary, types, mask, torch.randn(3, 4))
    new_boundary, new_types = (side.vectors() for side in found)
    for row, length in enumerate([3, 2]):
        h, t = boundary[row, :length], types[row, :length]
        to_types = layer.boundary_scores(h[None], t[None])[0].softmax(1)
        to_boundary = layer.type_scores(t[None], h[None])[0].softmax(1)
        for place in range(length):
            seen = sum(to_types[place, other] * t[other] for other in range(length))
            torch.testing.assert_close(new_boundary[row, place], torch.cat([h[place], seen]))
            seen = sum(to_boundary[place, other] * h[other] for other in range(length))
            torch.testing.assert_close(new_types[row, place], torch.cat([t[place], seen]))


def test_label_vectors_stand_beside_the_states():
    layer = Interaction(width=4, n_types=3, label_attention="qin", n_heads=1)
    boundary, types, table = torch.randn(1, 2, 4), torch.randn(1, 2, 4), torch.randn(3, 4)
    mask = torch.ones(1, 2, dtype=torch.bool)
    new_boundary, new_types = (side.vectors() for side in layer(boundary, types, mask, table))
    assert new_boundary.shape[2] == new_types.shape[2] == layer.output_width == 16
    assert new_types[..., :4].equal(types)
    torch.testing.assert_close(new_types[..., 4:8], layer.type_labels(types, table).vectors())
    torch.testing.assert_close(new_boundary[..., 4:8], layer.boundary_labels(boundary).vectors())


def test_mixtures_are_projected_and_seen_as_what_they_stand_for():
    torch.manual_seed(0)
    mixture = Mixture(torch.rand(2, 3, 2), torch.randn(2, 4))
    information = Information([Mixture(torch.randn(2, 3, 5)), mixture])
    weight, attention = torch.randn(7, 9), torch.rand(2, 3, 3)
    vectors = information.vectors()  # (2, 3, 9)
    torch.testing.assert_close(vectors[..., 5:], mixture.shares @ mixture.table)
    torch.testing.assert_close(information.project(weight), vectors @ weight.T)
    seen = Information(information.seen_by(attention)).vectors()
    torch.testing.assert_close(seen, attention @ vectors)
