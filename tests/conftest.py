"""Options and settings of the whole test run."""

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the slow tests")


def pytest_collection_modifyitems(config, items):
    skip_slow = pytest.mark.skip(reason="slow: run with --slow")
    skip_gpu = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(skip_slow)
        if "gpu" in item.keywords and not torch.cuda.is_available():
            item.add_marker(skip_gpu)


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run side by side; more threads than cores make everything slower."""
    torch.set_num_threads(1)
