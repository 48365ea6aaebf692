"""Recurrent layers: the same as torch's packed LSTM, whatever stands in the padding."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spacy_spanner.models.recurrent import BiLSTM, make_lstm, read_rows
from spacy_spanner.spans.reversal import take_tokens

WIDTH, HIDDEN = 4, 3


def packed_twin(layer: BiLSTM) -> nn.LSTM:
    """Torch's bidirectional LSTM with the same weights."""
    twin = nn.LSTM(WIDTH, HIDDEN, batch_first=True, bidirectional=True)
    state = dict(layer.forth.state_dict())
    state.update({f"{name}_reverse": value for name, value in layer.back.state_dict().items()})
    twin.load_state_dict(state)
    return twin


@pytest.mark.parametrize("lengths", [[5], [5, 5], [2, 5, 1], [3, 1, 2]])
def test_equals_a_packed_lstm(lengths):
    torch.manual_seed(0)
    layer = BiLSTM(width=WIDTH, hidden=HIDDEN)
    x = torch.randn(len(lengths), 5, WIDTH)  # anything in the padding
    packed = pack_padded_sequence(x, torch.tensor(lengths), True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(packed_twin(layer)(packed)[0], True, total_length=5)
    torch.testing.assert_close(layer(x, lengths), expected)


def test_batch_equals_single_rows():
    torch.manual_seed(0)
    layer = BiLSTM(width=WIDTH, hidden=HIDDEN)
    lengths = [2, 4, 1]
    x = torch.randn(3, 4, WIDTH)
    batch = layer(x, lengths)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(batch[row, :length], layer(x[[row], :length], [length])[0])
        assert not batch[row, length:].any()


def test_several_layers_read_the_same_rows():
    torch.manual_seed(0)
    layers = [BiLSTM(width=WIDTH, hidden=hidden) for hidden in (2, 3)]
    x, lengths = torch.randn(2, 4, WIDTH), [3, 4]
    for layer, found in zip(layers, read_rows(layers, x, lengths), strict=True):
        assert found.equal(layer(x, lengths))


def test_gradient_to_the_input():
    torch.manual_seed(0)
    layer = BiLSTM(width=WIDTH, hidden=HIDDEN).double()
    x = torch.randn(2, 3, WIDTH, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x, [2, 3]), (x,))


def test_runs_without_data():
    layer = BiLSTM(width=WIDTH, hidden=HIDDEN).to("meta")
    x = torch.zeros(2, 3, WIDTH, device="meta", requires_grad=True)
    layer(x, [2, 3]).sum().backward()
    assert x.grad is not None


def test_take_tokens_by_a_loop():
    x = torch.randn(2, 3, WIDTH)
    index = torch.tensor([[2, 0], [1, 1]])
    taken = take_tokens(x, index)
    for row in range(2):
        for place in range(2):
            assert torch.equal(taken[row, place], x[row, index[row, place]])


def test_start_of_an_lstm():
    lstm = make_lstm(width=WIDTH, hidden=HIDDEN)
    for gate in lstm.weight_hh_l0.chunk(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(HIDDEN))
    forget = (lstm.bias_ih_l0 + lstm.bias_hh_l0).chunk(4)
    assert [gate.unique().tolist() for gate in forget] == [[0.0], [1.0], [0.0], [0.0]]
