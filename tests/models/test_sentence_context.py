"""Label attention by loops, and the vector of a sentence."""

import pytest
import torch

from spacy_spanner.models.sentence_context import LabelAttention, SentenceContext

WIDTH, WORD_WIDTH = 6, 4
LENGTHS = [5, 3, 1]
MASK = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


def slow_weights(attention, words):
    """Eq. 5-7 for one row (L, E)."""
    length, n_labels = len(words), len(attention.labels)
    cosine = torch.zeros(length, n_labels)
    for i in range(length):
        for j in range(n_labels):
            a, b = words[i], attention.labels[j]
            cosine[i, j] = (a @ b) / (a.norm() * b.norm())
    kernel = attention.kernel.shape[2]
    best = torch.zeros(length)
    for i in range(length):
        found = torch.zeros(n_labels)
        for j in range(n_labels):
            found[j] = attention.bias[j, 0]
            for k in range(kernel):
                at = i + k - (kernel - 1) // 2
                if 0 <= at < length:
                    found[j] += attention.kernel[0, 0, k] * cosine[at, j]
        best[i] = found.max()
    return best.exp() / best.exp().sum()


@pytest.mark.parametrize("kernel", [1, 3, 7])
def test_label_attention_equals_a_loop_and_ignores_padding(kernel):
    torch.manual_seed(1)
    attention = LabelAttention(word_width=WORD_WIDTH, n_labels=3, kernel=kernel)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    words = torch.randn(*MASK.shape, WORD_WIDTH)  # not even zero where padded
    with torch.no_grad():
        weights = attention(words, MASK)
        for row, n in enumerate(LENGTHS):
            expected = slow_weights(attention, words[row, :n])
            torch.testing.assert_close(weights[row, :n], expected)
            assert not weights[row, n:].any()


def test_shared_convolution_starts_as_a_moving_average():
    attention = LabelAttention(word_width=WORD_WIDTH, n_labels=3, kernel=3)
    assert attention.kernel.flatten().tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("with_attention", [True, False])
def test_sentence_vector_is_a_weighted_sum(with_attention):
    attention = LabelAttention(word_width=WORD_WIDTH, n_labels=3) if with_attention else None
    context = SentenceContext(width=WIDTH, hidden=2, dropout=0.5, attention=attention).eval()
    x = torch.randn(*MASK.shape, WIDTH) * MASK[..., None]
    words = x[..., :WORD_WIDTH]
    with torch.no_grad():
        s = context(x, words, MASK, LENGTHS)
        states = context.lstm(x, LENGTHS)
        for row, n in enumerate(LENGTHS):
            weights = attention(words, MASK)[row] if with_attention else torch.full((n,), 1 / n)
            expected = sum(weights[t] * states[row, t] for t in range(n))
            torch.testing.assert_close(s[row], expected)
