"""Pretrained transformers: where their files are, what is refused, and what is taken from them.

Nothing here runs code of a model, reads a pickle, or fetches what was not named.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from torch import Tensor

from ..errors import Errors

# Kinds of encoders that the tests run over; the value is the first position of a text, where a
# model counts positions from behind its padding.
KINDS = {
    "bert": 0,
    "roberta": 2,
    "xlm-roberta": 2,
    "camembert": 2,
    "electra": 0,
    "deberta-v2": 0,
    "distilbert": 0,
    "mpnet": 2,
    "modernbert": 0,
}
FILES = [
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "*.model"),
    *("model.safetensors", "model-*.safetensors", "model.safetensors.index.json"),
]
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
# Settings that make transformers fetch or import more than the files of the model, and those of
# other heads.
FOREIGN = (
    *("quantization_config", "attn_implementation", "experts_implementation", "kernel_config"),
    *("num_labels", "id2label", "label2id"),
)


class Pretrained(NamedTuple):
    config: str  # JSON
    tokenizer: str  # what tokenizer.json holds
    max_pieces: int  # longest sequence, special pieces among them
    state: Dict[str, Tensor]


def find_folder(name: str, revision: Optional[str]) -> Path:
    """The folder of the model: the named one, or the cached files of the named model of the hub."""
    folder = Path(name)
    if folder.is_dir():
        if revision is not None:
            reason = "a folder has no revisions; leave `revision` out"
            raise ValueError(Errors.S080.format(name=name, reason=reason))
        return folder
    if folder.is_absolute() or name.startswith(".") or name.count("/") > 1:
        raise ValueError(Errors.S080.format(name=name, reason="there is no such folder"))
    try:
        from huggingface_hub import snapshot_download
    except ImportError as err:
        raise ImportError(Errors.S086) from err
    try:
        fetched = snapshot_download(
            name, revision=revision, allow_patterns=FILES, ignore_patterns=["*/*"]
        )
    except Exception as err:  # the library has its own error for every way to fail
        reason = f"it is no folder, and could not be fetched ({type(err).__name__}: {err})"
        raise ValueError(Errors.S080.format(name=name, reason=reason)) from err
    return Path(fetched)


def read_json(path: Path, name: str) -> Dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as err:
        reason = f"{path.name} cannot be read ({err})"
        raise ValueError(Errors.S080.format(name=name, reason=reason)) from err
    if not isinstance(data, dict):
        raise ValueError(Errors.S080.format(name=name, reason=f"{path.name} is not an object"))
    return data


def check_folder(folder: Path, name: str) -> None:
    """Refuse code and pickles before transformers sees the folder."""
    for file in ("config.json", "tokenizer_config.json"):
        if (folder / file).is_file() and "auto_map" in read_json(folder / file, name):
            raise ValueError(Errors.S081.format(name=name, file=file))
    if (folder / "adapter_config.json").exists():
        reason = "it is an adapter for another model (adapter_config.json); merge the two first"
        raise ValueError(Errors.S080.format(name=name, reason=reason))
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return
    if not index.is_file():
        pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(pattern))
        if pickled:
            raise ValueError(Errors.S082.format(name=name, files=", ".join(pickled)))
        reason = "there is no model.safetensors in it"
        raise ValueError(Errors.S080.format(name=name, reason=reason))
    shards = read_json(index, name).get("weight_map", {}).values()
    foreign = sorted(
        {str(s) for s in shards if Path(s).name != s or Path(s).suffix != ".safetensors"}
    )
    if foreign:
        raise ValueError(Errors.S082.format(name=name, files=", ".join(foreign)))


def clean_config(data: Dict[str, Any], name: str) -> Dict[str, Any]:
    """The settings that say what the encoder is; refuses kinds it cannot be."""
    kind = data.get("model_type")
    if "auto_map" in data:
        raise ValueError(Errors.S081.format(name=name, file="config.json"))
    if kind not in KINDS or data.get("is_decoder") or data.get("is_encoder_decoder"):
        raise ValueError(Errors.S083.format(name=name, kind=kind, kinds=", ".join(KINDS)))
    if "quantization_config" in data:
        reason = "its weights are quantized; take the model it was made from"
        raise ValueError(Errors.S080.format(name=name, reason=reason))
    kept = {
        key: value
        for key, value in data.items()
        if not key.startswith("_") and key not in FOREIGN and key not in ("dtype", "torch_dtype")
    }
    if kind == "modernbert":
        kept["reference_compile"] = False
    return kept


def make_config(data: Dict[str, Any], name: str = "the stored encoder") -> Any:
    transformers = import_transformers()
    kept = clean_config(data, name)
    return transformers.AutoConfig.for_model(kept.pop("model_type"), **kept)


def make_encoder(config: Any) -> Any:
    """An encoder with random weights, and without the layer that pools whole texts."""
    transformers = import_transformers()
    encoder = transformers.AutoModel.from_config(
        config, trust_remote_code=False, attn_implementation=attention(config)
    )
    return without_pooler(encoder).float()


def without_pooler(encoder: Any) -> Any:
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def attention(config: Any) -> str:
    """Always named, so that no setting of a model chooses a kernel to fetch."""
    kind = import_transformers().AutoModel._model_mapping[type(config)]
    return "sdpa" if getattr(kind, "_supports_sdpa", False) else "eager"


def load_pretrained(name: str, revision: Optional[str] = None) -> Pretrained:
    """Everything an encoder keeps of a pretrained model."""
    transformers = import_transformers()
    folder = find_folder(name, revision)
    check_folder(folder, name)
    data = read_json(folder / "config.json", name)
    config = make_config(data, name)
    safe: Dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    with quiet(transformers):
        try:
            encoder, info = transformers.AutoModel.from_pretrained(
                str(folder),
                config=config,
                use_safetensors=True,
                attn_implementation=attention(config),
                output_loading_info=True,
                **safe,
            )
        except (RuntimeError, ValueError, OSError) as err:
            raise ValueError(Errors.S080.format(name=name, reason=err)) from err
        tokenizer, longest = load_tokenizer(transformers, folder, name, safe)
    missing = sorted(key for key in info["missing_keys"] if not key.startswith("pooler."))
    if missing:
        reason = f"its weights lack {', '.join(missing[:3])} ({len(missing)} in all)"
        raise ValueError(Errors.S080.format(name=name, reason=reason))
    positions = config.max_position_embeddings - KINDS[config.model_type]
    state = without_pooler(encoder).float().state_dict()
    settings = json.dumps(clean_config(config.to_dict(), name))
    return Pretrained(settings, tokenizer, min(longest, positions), state)


def load_tokenizer(
    transformers: Any, folder: Path, name: str, safe: Dict[str, Any]
) -> Tuple[str, int]:
    """The tokenizer as JSON, and the longest sequence it was made for."""
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True, **safe)
    except (ImportError, ValueError, OSError, KeyError, TypeError, AttributeError) as err:
        raise ValueError(Errors.S085.format(name=name, reason=err)) from err
    if not tokenizer.is_fast:
        raise ValueError(Errors.S085.format(name=name, reason="it has no tokenizer.json"))
    return tokenizer.backend_tokenizer.to_str(), int(tokenizer.model_max_length)


def import_transformers() -> Any:
    try:
        import transformers
    except ImportError as err:
        raise ImportError(Errors.S086) from err
    return transformers


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """No progress bar for reading a file, and no report of the pooler that is left out."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
