"""What installing the package brings: names, light imports, and arrows that point one way."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import spacy
from spacy.util import registry

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "spacy_spanner"


def entry_points():
    parser = ConfigParser(delimiters=["="])
    parser.optionxform = str
    parser.read(ROOT / "setup.cfg")
    for group, text in parser["options.entry_points"].items():
        for line in text.strip().splitlines():
            yield group, line.split("=")[0].strip()


@pytest.mark.parametrize("group,name", entry_points())
def test_every_published_name_is_found(group, name):
    if group == "spacy_factories":
        assert spacy.blank("en").has_factory(name)
    else:
        assert callable(registry.get(group.split("_")[1], name))


OURS = ["spacy_spanner.models", "spacy_spanner.encoders", "spacy_spanner.bridge"]
HEAVY = ["transformers", "spacy_transformers", "ray", "pandas", "matplotlib", "pyarrow"]


def test_factories_import_nothing_heavy():
    code = f"""
import spacy, sys
from importlib.metadata import entry_points
before = set(sys.modules)
for point in entry_points(group="spacy_factories"):
    if point.value.startswith("spacy_spanner"):
        point.load()
new = set(sys.modules) - before
ours = [m for m in new if m.startswith(tuple({OURS!r}))]
print(ours + [m for m in new if m.split(".")[0] in {HEAVY!r}])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


# What each part of the package may import from the others; a part is a file or folder.
ALLOWED = {
    "errors": set(),
    "acceleration": {"fast_layers", "migration"},
    "fast_layers": {"forking"},
    "overlaps": set(),
    "words": set(),
    "batch": set(),
    "sentences": set(),
    "schedules": {"errors"},
    "readers": {"acceleration", "corpus"},
    "callbacks": {"errors", "pipeline", "tuning"},
    "recipe": {"corpus", "errors", "training_config"},
    "loggers": {"contract", "shim"},
    "label_axes": {"errors"},
    "span_scores": {"errors"},
    "scorers": {"errors"},
    "contract": set(),
    "dropout": set(),
    "gelu": set(),
    "forking": set(),
    "heap": set(),
    "shim": {"errors", "label_axes"},
    "spans": {"errors"},
    "decoders": {"errors", "spans", "contract", "label_axes"},
    "grouping": {"batch", "contract"},
    "row_tensors": {"batch", "contract"},
    "bridge": {
        *{
            "batch",
            "contract",
            "errors",
            "forking",
            "grouping",
            "heap",
            "row_tensors",
            "shim",
            "words",
        },
    },
    "encoders": {
        *{"bridge", "dropout", "errors", "forking", "grouping", "sentences", "shim", "words"},
    },
    "models": {
        *{"batch", "bridge", "contract", "decoders", "dropout", "errors", "gelu", "grouping"},
        *{"label_axes", "relations", "spans"},
    },
    "pipeline": {"batch", "errors", "overlaps", "scorers", "sentences", "span_scores", "words"},
    "relations": {
        *{"batch", "bridge", "contract", "errors", "forking", "grouping", "pipeline", "scorers"},
        *{"row_tensors", "sentences", "shim", "span_scores"},
    },
    "corpus": {
        *{"errors", "overlaps", "pipeline", "relations", "sentences", "span_scores"},
        "training_config",
    },
    "training_config": {"errors"},
    "analysis": {"corpus", "errors", "relations", "span_scores"},
    "distributed": {
        *{"acceleration", "corpus", "errors", "relations", "span_scores", "training_config"},
    },
    "quantization": {"encoders", "errors", "shim"},
    "service": {"analysis", "distributed"},
    "timing": {"acceleration", "analysis", "errors"},
    "migration": {"encoders", "errors", "training_config"},
    "tuning": {"analysis", "batch", "corpus", "errors", "pipeline", "relations"},
    "cli": {
        *{"acceleration", "analysis", "corpus", "distributed", "errors", "migration"},
        *{"quantization", "recipe", "relations", "service", "timing", "training_config", "tuning"},
    },
}
WITHOUT_TORCH = [
    *("batch", "overlaps", "words", "relations", "scorers", "sentences", "span_scores"),
    *("pipeline", "corpus", "training_config"),
]


def imports(path):
    """Parts of the package and outside modules that a file imports."""
    inside, outside = set(), set()
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            outside.add(node.module.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            inside |= {name.split(".")[0] for name in names}
    return inside, outside


def source_files():
    return sorted(
        p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py" or p.parent != PACKAGE
    )


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    inside, outside = imports(path)
    assert inside - {part} <= ALLOWED[part]
    assert "spacy_spanner" not in outside, "import inside the package relatively"
    if part in WITHOUT_TORCH and path.name != "bridge.py":
        assert "torch" not in outside
    if part in ("spans", "decoders", "contract"):
        assert not outside & {"spacy", "thinc"}


def test_wheels_carry_every_file_of_the_package():
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    patterns = parser["options.package_data"]["spacy_spanner"].split()
    declared = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file()}
    code = {path for path in files if path.suffix in (".py", ".pyc")}
    assert files - code <= declared  # `configs` is a link, which `rglob` does not follow


def test_fits_the_license_and_version():
    import spacy_spanner

    assert spacy_spanner.__version__
    assert "MIT" in (ROOT / "LICENSE").read_text()
