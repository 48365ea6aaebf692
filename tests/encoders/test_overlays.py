"""Configs of encoders that change another one."""

from spacy_spanner.training_config import join_config, put_into, read_overlay


def test_changes_are_put_into_the_base():
    base = {"a": {"@architectures": "X", "n": 1}, "b": {"m": 2}, "c": {"@architectures": "Y"}}
    changes = {"c": {"k": 3}, "a": {"@architectures": "Z"}, "b": 4}
    merged = put_into(base, changes)
    assert merged == {"a": {"@architectures": "Z"}, "b": 4, "c": {"@architectures": "Y", "k": 3}}
    assert list(merged) == ["a", "b", "c"]


def test_vectors_is_hash_with_static_vectors():
    plain, vectors = read_overlay("encoders", "hash"), read_overlay("encoders", "vectors")
    model, own = plain["components"]["tok2vec"]["model"], vectors["components"]["tok2vec"]["model"]
    assert own.pop("embed")["@architectures"] == "spacy-spanner.HashVectors.v1"
    del model["embed"]
    model["encode"]["width"] = 128
    assert vectors == plain


def test_parts_keep_their_order():
    """It is part of what a stored model means."""
    for encoder, chars in [("tuned", "CharBiLSTM"), ("tuned_intnet", "IntNet")]:
        config = join_config("hierarchical_ner", encoder)
        parts = config["components"]["hierarchical_ner"]["model"]["tok2vec"]["*"]
        assert list(parts) == ["words", "chars"]
        assert parts["chars"]["@architectures"] == f"spacy-spanner.{chars}.v1"
    assert list(parts["chars"]) == ["@architectures"]
