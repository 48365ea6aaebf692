"""Transformers of every kind, tiny and random, in folders as `save_pretrained` makes them."""

from __future__ import annotations

from pathlib import Path

import torch

WIDTH = 16
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TEXT = ["the cat sat on a mat while Anna and Łukasz slept in Torvik .", "don't 東京 都 1995 (x)"]
BYTES = ("roberta", "modernbert")
SENTENCEPIECES = ("xlm-roberta", "camembert", "deberta-v2", "mpnet")
OPTIONS = {
    "distilbert": {"dim": WIDTH, "hidden_dim": 16, "n_layers": 3, "n_heads": 2},
    "electra": {"embedding_size": 8},
    "deberta-v2": {
        "relative_attention": True,
        "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8},
}


def make_tokenizer(kind: str):
    """Learned from two sentences, so that most words have several pieces."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing

    if kind in BYTES:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=300, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.decoder = decoders.ByteLevel()
    elif kind in SENTENCEPIECES:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=60, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=80, special_tokens=SPECIAL, show_progress=False
        )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def make_model(kind: str, *, n_pieces: int, positions: int = 40):
    from transformers import AutoConfig, AutoModel

    sizes = {
        "vocab_size": n_pieces,
        "max_position_embeddings": positions,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    if kind == "modernbert":
        sizes.update(cls_token_id=0, sep_token_id=2)
    if kind != "distilbert":
        sizes.update(hidden_size=WIDTH, num_hidden_layers=3, num_attention_heads=2)
        sizes.update(intermediate_size=16)
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **sizes, **OPTIONS.get(kind, {}))
    model = AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # random enough to tell words apart
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def save(folder: Path, kind: str = "bert", *, positions: int = 40) -> Path:
    """positions: Longest sequence and more, as the kind counts them."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = make_tokenizer(kind)
    model = make_model(kind, n_pieces=tokenizer.get_vocab_size(), positions=positions)
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
    ).save_pretrained(folder)
    return folder
