"""What the component promises holds with each of its architectures."""

import pytest

from .examples import ARCHITECTURES


@pytest.fixture(scope="module", params=ARCHITECTURES)
def architecture(request):
    return request.param
