"""A BiLSTM over rows of any lengths without a padded cell.

Axes: B rows, T steps of all rows together, D width, H width per direction, n rows that have a step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, List, Tuple

import numpy
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from ..dropout import Dropout


def packed_order(lengths: numpy.ndarray) -> Tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """How steps that lie row after row are put in packed order: all first steps, then all second
    steps, longer rows first. Every row has at least one step.

    RETURNS: The place of each packed step among the flat ones (T,), the same with each row read
        from its end (T,), and how many rows have each step.
    """
    rank = numpy.empty(len(lengths), dtype="int64")
    rank[numpy.argsort(-lengths, kind="stable")] = numpy.arange(len(lengths))
    ends = numpy.cumsum(lengths)
    starts = numpy.repeat(ends - lengths, lengths)  # (T,)
    step = numpy.arange(len(starts)) - starts  # (T,)
    order = numpy.lexsort((numpy.repeat(rank, lengths), step))  # (T,)
    turned = starts + numpy.repeat(ends, lengths) - 1 - numpy.arange(len(starts))  # (T,)
    return order, turned[order], numpy.bincount(step)


def both_ways(order: numpy.ndarray, turned: numpy.ndarray, sizes: numpy.ndarray) -> numpy.ndarray:
    """Packed order of both directions at once: for each step the n rows from their beginning, then
    the n rows from their end; 2 * token + direction.  (2T,)"""
    step = numpy.repeat(numpy.arange(len(sizes)), sizes)
    direction = numpy.repeat([0, 1], len(order))
    mixed = numpy.lexsort((direction, numpy.tile(step, 2)))
    return numpy.concatenate([2 * order, 2 * turned + 1])[mixed]


class Recurrence(torch.autograd.Function):
    """What torch's LSTM computes in one layer, both directions at once. On a CPU, torch adds up the
    gradient of the recurrent matrix step by step. Here that is one product, as are most factors of
    the other gradients; where rows differ in length, a step back takes a quarter of the time."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, weight: Tensor, order: Tensor, bounds: List[int]
    ) -> Tensor:
        """gates: What the inputs give to the gates (input, forget, cell, output).  (2T, 4H)
        weight: Recurrent weights.  (2, H, 4H)
        order: From `both_ways`.
        bounds: Where steps begin and end in that order.
        RETURNS: The states.  (2T, H)
        """
        width = weight.shape[1]
        gates = gates.index_select(0, order)
        cells, states = gates.new_empty((2, len(gates), width))
        state = cell = gates.new_zeros((2, bounds[1] // 2, width))
        for first, last in pairwise(bounds):
            n = (last - first) // 2
            step = gates[first:last].view(2, n, 4 * width)
            step.baddbmm_(state[:, :n], weight)
            step[..., : 2 * width].sigmoid_()
            step[..., 2 * width : 3 * width].tanh_()
            step[..., 3 * width :].sigmoid_()
            enter, forget, new, leave = step.view(2, n, 4, width).unbind(2)
            before, cell = cell[:, :n], cells[first:last].view(2, n, width)
            torch.mul(enter, new, out=cell).addcmul_(forget, before)
            state = states[first:last].view(2, n, width)
            torch.tanh(cell, out=state).mul_(leave)
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        flat = states.index_select(0, places)
        ctx.bounds = bounds
        ctx.save_for_backward(gates, cells, flat, weight, order, places)
        return flat

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_flat: Tensor) -> Any:
        gates, cells, flat, weight, order, places = ctx.saved_tensors
        width, bounds = weight.shape[1], ctx.bounds
        starts = order[: bounds[1]]  # the first step of each row and direction
        enter, forget, new, leave = gates.view(-1, 4, width).unbind(1)
        squashed = cells.tanh()
        # What the gradients of cell and state are multiplied by, for all steps at once.
        slopes = torch.empty_like(gates)
        of_enter, of_forget, of_new, of_leave = slopes.view(-1, 4, width).unbind(1)
        torch.mul(enter, 1 - enter, out=of_enter).mul_(new)
        before = before_each(cells.index_select(0, places), starts).index_select(0, order)
        torch.mul(forget, 1 - forget, out=of_forget).mul_(before)
        torch.mul(1 - new * new, enter, out=of_new)
        torch.mul(leave, 1 - leave, out=of_leave).mul_(squashed)
        to_cell = (1 - squashed * squashed).mul_(leave)  # (2T, H)
        d_states = d_flat.index_select(0, order)
        back = weight.transpose(1, 2)  # (2, 4H, H)
        d_after, d_cell_after = gates.new_zeros((2, 0, 4 * width)), gates.new_zeros((2, 0, width))
        for first, last in reversed(list(pairwise(bounds))):
            n = (last - first) // 2
            d_state = d_states[first:last].view(2, n, width)
            d_state[:, : d_after.shape[1]].baddbmm_(d_after, back)
            d_cell = to_cell[first:last].view(2, n, width).mul_(d_state)
            d_cell[:, : d_after.shape[1]] += d_cell_after
            step = slopes[first:last].view(2, n, 4, width)
            step[:, :, :3].mul_(d_cell[:, :, None])
            step[:, :, 3].mul_(d_state)
            d_cell_after = d_cell * forget[first:last].view(2, n, width)
            d_after = step.view(2, n, 4 * width)
        d_gates = slopes.index_select(0, places)  # (2T, 4H)
        earlier = before_each(flat, starts).view(-1, 2, width).permute(1, 2, 0)  # (2, H, T)
        d_weight = torch.bmm(earlier, d_gates.view(-1, 2, 4 * width).transpose(0, 1))
        return d_gates, d_weight, None, None


def before_each(flat: Tensor, starts: Tensor) -> Tensor:
    """For every token and direction, the values one step earlier; 0 at the start.  (2T, H)"""
    rows = flat.view(-1, 2, flat.shape[1])  # (T, 2, H)
    before = torch.zeros_like(rows)
    before[1:, 0] = rows[:-1, 0]
    before[:-1, 1] = rows[1:, 1]
    return before.view_as(flat).index_fill_(0, starts, 0.0)


class PackedBiLSTM(nn.Module):
    """Time and memory grow with the number of steps, also where one row is much longer than others."""

    def __init__(self, *, width: int, hidden: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        between = dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(width, hidden, layers, bidirectional=True, dropout=between)
        self.dropout = Dropout(between)

    def forward(self, x: Tensor, lengths: numpy.ndarray) -> Tuple[Tensor, Tensor]:
        """x: The steps of all rows, row after row.  (T, D)
        RETURNS: The states in the same order (T, 2H) and the last state of both directions of each
            row (B, 2H).
        """
        learns = torch.is_grad_enabled() and x.device.type == "cpu"
        states = self.learn(x, lengths) if learns else self.run(x, lengths)  # (T, 2H)
        ends = torch.from_numpy(numpy.cumsum(lengths)).to(x.device)
        starts = ends - torch.from_numpy(lengths).to(x.device)
        forth, back = states.chunk(2, dim=1)  # (T, H) each
        last = [forth.index_select(0, ends - 1), back.index_select(0, starts)]
        return states, torch.cat(last, dim=1)

    def run(self, x: Tensor, lengths: numpy.ndarray) -> Tensor:
        """By torch's own kernels, the fastest in prediction and on a GPU."""
        order, _, sizes = packed_order(lengths)
        places = torch.from_numpy(order).to(x.device)
        states, _ = self.lstm(PackedSequence(x.index_select(0, places), torch.from_numpy(sizes)))
        return torch.empty_like(states.data).index_copy(0, places, states.data)

    def learn(self, x: Tensor, lengths: numpy.ndarray) -> Tensor:
        """The same by `Recurrence`."""
        order, turned, sizes = packed_order(lengths)
        both = torch.from_numpy(both_ways(order, turned, sizes))
        bounds = [0, *(2 * numpy.cumsum(sizes)).tolist()]
        weights = iter(self.lstm.all_weights)
        for layer, (forth, back) in enumerate(zip(weights, weights, strict=True)):
            into, recurrent, bias, other_bias = zip(forth, back, strict=True)
            x = self.dropout(x) if layer else x
            gates = F.linear(x, torch.cat(into), torch.cat(bias) + torch.cat(other_bias))  # (T, 8H)
            weight = torch.stack(recurrent).transpose(1, 2)  # (2, H, 4H)
            x = Recurrence.apply(gates.view(2 * len(x), -1), weight, both, bounds).view(len(x), -1)
        return x
