"""What the tests of annotation and of training share."""

import pytest

from .small import save_pipeline
from .small_training import write_config


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    """The folder of a small trained pipeline."""
    return save_pipeline(tmp_path_factory.mktemp("pipeline") / "model")


@pytest.fixture(scope="session")
def config(tmp_path_factory):
    return write_config(tmp_path_factory.mktemp("training"))
