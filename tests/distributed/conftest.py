"""What the tests of annotation share."""

import pytest

from .small import save_pipeline


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    """The folder of a small trained pipeline."""
    return save_pipeline(tmp_path_factory.mktemp("pipeline") / "model")
