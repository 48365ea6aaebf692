"""Interaction mechanism of the Modularized Interaction Network, by slow loops."""

import torch

from spacy_spanner.models.information import Information, Segments
from spacy_spanner.models.interaction import Interaction, attend, mean_label


def test_attention_rows_sum_to_one_over_real_words():
    mask = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
    weights = attend(torch.randn(3, 5, 5), mask)
    torch.testing.assert_close(weights.sum(2), torch.ones(3, 5))
    assert not weights.masked_select(~mask[:, None, :].expand(3, 5, 5)).any()


def test_mean_label_by_a_loop():
    x, table = torch.randn(2, 3, 4), torch.randn(5, 4)
    found = mean_label(x, table).vectors()
    for row in range(2):
        for place in range(3):
            weights = torch.stack([x[row, place] @ label for label in table]).softmax(0)
            expected = sum(weights[m] * table[m] for m in range(5))
            torch.testing.assert_close(found[row, place], expected)


def test_each_side_reads_the_other_by_its_own_attention():
    torch.manual_seed(0)
    layer = Interaction(width=4)
    states, type_states, table = torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(3, 4)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = layer(states, type_states, mask, table)
    new_boundary, new_types = (side.vectors() for side in found)
    assert new_boundary.shape[2] == new_types.shape[2] == layer.output_width == 16
    labels = layer.boundary_labels["table"]
    boundary = torch.cat([states, mean_label(states, labels).vectors()], dim=2)
    types = torch.cat([type_states, mean_label(type_states, table).vectors()], dim=2)
    for row, length in enumerate([3, 2]):
        h, t = boundary[row, :length], types[row, :length]
        to_types = layer.boundary_scores(h[None], t[None])[0].softmax(1)
        to_boundary = layer.type_scores(t[None], h[None])[0].softmax(1)
        for place in range(length):
            seen = sum(to_types[place, other] * t[other] for other in range(length))
            torch.testing.assert_close(new_boundary[row, place], torch.cat([h[place], seen]))
            seen = sum(to_boundary[place, other] * h[other] for other in range(length))
            torch.testing.assert_close(new_types[row, place], torch.cat([t[place], seen]))


def test_mixtures_are_projected_and_seen_as_what_they_stand_for():
    torch.manual_seed(0)
    mixture = Information.mixture(torch.rand(2, 3, 2), torch.randn(2, 4))
    information = Information.join([Information.of(torch.randn(2, 3, 5)), mixture])
    weight, attention = torch.randn(7, 9), torch.rand(2, 3, 3)
    vectors = information.vectors()  # (2, 3, 9)
    torch.testing.assert_close(vectors[..., 5:], mixture.shares @ mixture.tables[0])
    torch.testing.assert_close(information.project(weight), vectors @ weight.T)
    torch.testing.assert_close(information.seen_by(attention).vectors(), attention @ vectors)


def test_segments_are_projected_as_what_they_stand_for():
    torch.manual_seed(0)
    first, last, product = torch.randn(3, 2, 3, 4).unbind()
    segments, weight = Segments.made_of(first, last, product), torch.randn(7, 16)
    vectors = torch.cat([first, last, last - first, product], dim=2)
    assert segments.vectors().equal(vectors)
    torch.testing.assert_close(segments.project(weight), vectors @ weight.T)
