from ..relations.conftest import architecture  # noqa: F401
