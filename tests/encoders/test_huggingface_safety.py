"""What is refused before anything runs, and what is stored so that nothing has to be fetched."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import torch
from numpy.testing import assert_allclose

from spacy_spanner.encoders.huggingface import build_huggingface_encoder
from spacy_spanner.encoders.huggingface_files import check_folder, load_pretrained

from .tiny_transformers import WIDTH, save

pytestmark = pytest.mark.huggingface
BLOCK = {"@architectures": "spacy-spanner.HuggingFaceEncoder.v1", "width": WIDTH}
TEXT = "The cat sat on the mat while Anna slept."


@pytest.fixture
def folder(tmp_path) -> Path:
    return save(tmp_path / "model", "bert")


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def change(path: Path, **settings) -> None:
    data = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    path.write_text(json.dumps({**data, **settings}), encoding="utf8")


def initialize(folder: Path, **options) -> None:
    build_huggingface_encoder(str(folder), width=WIDTH, **options).initialize()


def test_pickled_weights_are_refused_and_never_read(folder, tmp_path):
    bomb = tmp_path / "ran"
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(bomb)))
    with pytest.raises(ValueError, match=r"S082.*pytorch_model\.bin"):
        initialize(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "pytorch_model.bin"}}), encoding="utf8")
    with pytest.raises(ValueError, match="S082"):
        initialize(folder)
    index.write_text(json.dumps({"weight_map": {"x": "../a.safetensors"}}), encoding="utf8")
    with pytest.raises(ValueError, match="S082"):
        initialize(folder)
    assert not bomb.exists()


def test_pickled_weights_beside_safe_ones_are_not_read(folder, tmp_path):
    bomb = tmp_path / "ran"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(bomb)))
    initialize(folder)
    assert not bomb.exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_a_model_is_refused_and_never_runs(folder, tmp_path, file):
    bomb = tmp_path / "ran"
    (folder / "code.py").write_text(f"open({str(bomb)!r}, 'w')\nclass Model: pass\n")
    change(folder / file, auto_map={"AutoModel": "code.Model", "AutoTokenizer": "code.Model"})
    with pytest.raises(ValueError, match=f"S081.*{file}"):
        initialize(folder)
    assert not bomb.exists()


def test_settings_of_a_model_choose_no_attention_to_fetch(folder):
    config = folder / "config.json"
    change(config, _attn_implementation="someone/kernel", attn_implementation="someone/kernel")
    model = build_huggingface_encoder(str(folder), width=WIDTH)
    model.initialize()
    assert model.shims[0].module.encoder.config._attn_implementation in ("sdpa", "eager")


@pytest.mark.parametrize(
    "settings, told",
    [
        ({"model_type": "gpt2"}, "S083.*gpt2.*modernbert"),
        ({"is_decoder": True}, "S083"),
        ({"quantization_config": {"quant_method": "x"}}, "S080.*quantized"),
        ({"hidden_size": 32}, "S080"),
    ],
)
def test_what_the_encoder_cannot_be_is_refused_by_name(folder, settings, told):
    change(folder / "config.json", **settings)
    with pytest.raises(ValueError, match=told):
        initialize(folder)


def test_folders_that_lack_something(folder, tmp_path):
    with pytest.raises(ValueError, match=r"S080.*no such folder"):
        initialize(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"S080.*revision"):
        initialize(folder, revision="main")
    with pytest.raises(ValueError, match=r"S084.*16.*24"):
        build_huggingface_encoder(str(folder), width=24).initialize()
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"S080.*adapter"):
        initialize(folder)
    (folder / "adapter_config.json").unlink()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"S080.*model\.safetensors"):
        check_folder(folder, "name")
    (folder / "config.json").write_text("[")
    with pytest.raises(ValueError, match=r"S080.*config\.json"):
        initialize(folder)


def test_weights_that_lack_layers_are_refused(folder):
    change(folder / "config.json", num_hidden_layers=4)
    with pytest.raises(ValueError, match=r"S080.*lack .*layer\.3"):
        initialize(folder)


def test_models_of_the_hub_are_not_fetched_when_it_is_off(monkeypatch):
    import huggingface_hub

    def refuse(*args, **kwargs):
        assert kwargs["allow_patterns"] and "*.bin" not in kwargs["allow_patterns"]
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(ValueError, match=r"S080.*no network"):
        load_pretrained("someone/some-model")


def test_stored_code_is_refused_too(folder):
    model = build_huggingface_encoder(str(folder), width=WIDTH)
    model.initialize()
    shim = model.shims[0]
    config = json.loads(shim.sizes["config"])
    shim.sizes["config"] = json.dumps({**config, "auto_map": {"AutoModel": "x.Y"}})
    with pytest.raises(ValueError, match="S081"):
        build_huggingface_encoder("any", width=WIDTH).from_bytes(model.to_bytes())


LOAD = """
import socket, sys
def refuse(*args, **kwargs):
    raise OSError("the network is off")
socket.socket.connect = refuse
import numpy, spacy
nlp = spacy.load(sys.argv[1])
numpy.save(sys.argv[2], nlp(sys.argv[3]).tensor)
"""


def test_saved_pipeline_loads_without_network_and_without_the_folder(folder, tmp_path):
    import numpy

    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {**BLOCK, "name": str(folder)}})
    nlp.initialize()
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "nlp")
    shutil.move(folder, tmp_path / "elsewhere")
    target = tmp_path / "vectors.npy"
    home = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "empty")}
    command = [sys.executable, "-c", LOAD, str(tmp_path / "nlp"), str(target), TEXT]
    result = subprocess.run(command, env={**os.environ, **home}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert_allclose(numpy.load(target), expected, atol=1e-6)


def test_never_initialized_pipeline_is_saved_and_loaded(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {**BLOCK, "name": "nowhere"}})
    nlp.to_disk(tmp_path)
    with pytest.raises(ValueError, match="S007"):
        spacy.load(tmp_path)(TEXT)


def test_stored_file_holds_no_pickle(folder):
    model = build_huggingface_encoder(str(folder), width=WIDTH)
    model.initialize()
    data = model.shims[0].to_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    sizes = json.loads(header["__metadata__"]["spacy-spanner"])
    assert json.loads(sizes["config"])["model_type"] == "bert"
    assert json.loads(sizes["tokenizer"])["model"]["type"] == "WordPiece"
    assert torch.is_tensor(next(iter(model.shims[0].module.state_dict().values())))


def in_config(**settings):
    return lambda sizes: {"config": json.dumps({**json.loads(sizes["config"]), **settings})}


def with_piece(sizes):
    tokenizer = json.loads(sizes["tokenizer"])
    tokenizer["model"]["vocab"]["far"] = 10**6
    return {"tokenizer": json.dumps(tokenizer)}


STORED_CHANGES = {
    "layers": in_config(num_hidden_layers=10**9),
    "more layers": in_config(num_hidden_layers=5),
    "hidden": in_config(hidden_size=10**9),
    "heads": in_config(num_attention_heads=0),
    "vocabulary": in_config(vocab_size=10**9),
    "smaller vocabulary": in_config(vocab_size=3),
    "positions": in_config(max_position_embeddings=10**9),
    "text for a number": in_config(hidden_size="many"),
    "labels": in_config(num_labels=10**9, hidden_size=8),
    "deep config": lambda sizes: {"config": "[" * 200_000},
    "no object": lambda sizes: {"config": "[]"},
    "no JSON": lambda sizes: {"config": "x"},
    "no tokenizer": lambda sizes: {"tokenizer": "{}"},
    "deep tokenizer": lambda sizes: {"tokenizer": "[" * 200_000},
    "far piece": with_piece,
    "long sequences": lambda sizes: {"max_pieces": 10**6},
    "no sequences": lambda sizes: {"max_pieces": 0},
    "negative": lambda sizes: {"max_pieces": -1},
}


@pytest.mark.parametrize("name", STORED_CHANGES)
def test_stored_encoders_that_were_changed_are_refused(folder, name):
    model = build_huggingface_encoder(str(folder), width=WIDTH)
    model.initialize()
    shim = model.shims[0]
    shim.sizes = {**shim.sizes, **STORED_CHANGES[name](shim.sizes)}
    with pytest.raises(ValueError, match=r"\[S0\d\d\]"):
        build_huggingface_encoder("any", width=WIDTH).shims[0].from_bytes(shim.to_bytes())


def test_stored_weights_that_are_not_finite_are_refused(folder):
    model = build_huggingface_encoder(str(folder), width=WIDTH)
    model.initialize()
    with torch.no_grad():
        next(model.shims[0].module.parameters()).view(-1)[0] = float("nan")
    with pytest.raises(ValueError, match=r"S004.*not finite"):
        build_huggingface_encoder("any", width=WIDTH).from_bytes(model.to_bytes())
