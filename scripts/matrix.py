"""The quick tests on every Python that setup.cfg names and this machine has (`make matrix`).

Interpreters are those on the PATH, of pyenv, or of uv, which is asked to install what is missing. torch has
to be a build for the CPU; where there is none, the sources are compiled and the tests skipped.
"""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import List, Optional

import typer
from wasabi import msg

ROOT = Path(__file__).parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
QUICK = [
    *("tests/corpus", "tests/analysis", "tests/spans", "tests/decoders", "tests/pipeline"),
    *("tests/cli/test_commands.py", "tests/test_package.py", "tests/test_overlaps.py"),
    *("tests/test_bridge.py", "tests/test_contract.py", "tests/test_saved_pipelines.py"),
]
TOOLS = ["pytest", "hypothesis", "matplotlib"]


def setup() -> ConfigParser:
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "setup.cfg")
    return parser


def versions() -> List[str]:
    """The versions of the classifiers, such as 3.10."""
    return re.findall(r"Python :: (3\.\d+)", setup()["metadata"]["classifiers"])


def runs(python: Optional[str], version: str) -> bool:
    """Whether this is an interpreter of that version: a name on the PATH may belong to another."""
    if python is None:
        return False
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return result.returncode == 0 and result.stdout.strip() == version


def find_python(version: str) -> Optional[str]:
    """An interpreter of this version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = [shutil.which(f"python{version}"), sys.executable]
    known += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
    found = next((own for own in known if runs(own, version)), None)
    if found is not None or shutil.which("uv") is None:
        return found
    subprocess.run(["uv", "python", "install", "--quiet", version], stderr=subprocess.DEVNULL)
    result = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True)
    own = result.stdout.strip()
    return own if result.returncode == 0 and runs(own, version) else None


def torch_line() -> str:
    """The tested torch, for the CPU: on Linux, PyPI has only builds of several gigabytes for CUDA."""
    pinned = re.search(r"^torch==\S+", (ROOT / "constraints.txt").read_text(), flags=re.M)
    assert pinned is not None
    return pinned[0] + ("+cpu" if sys.platform == "linux" else "")


def run_tests(version: str, folder: Path) -> str:
    """Set up an environment and run the tests in it; what came of it."""
    base = find_python(version)
    if base is None:
        return "skipped: no interpreter found"
    python = str(folder / version / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([base, "-m", "venv", str(folder / version)], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    torch = [*pip, "--extra-index-url", CPU_INDEX, torch_line()]
    if subprocess.run(torch, capture_output=True).returncode:
        sources = [python, "-m", "compileall", "-q", "-f", str(ROOT / "spacy_spanner")]
        compiled = subprocess.run(sources, env={**os.environ, "PYTHONPYCACHEPREFIX": str(folder)})
        if compiled.returncode:
            return "failed: the sources do not compile"
        return f"skipped: no {torch_line()} for it; the sources compile"
    if subprocess.run(
        [*pip, "-c", "constraints.txt", "-e", str(ROOT), *TOOLS], cwd=ROOT
    ).returncode:
        return "skipped: the requirements cannot be installed"
    command = [python, "-m", "pytest", "-q", *QUICK]
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return "failed" if result.returncode else "passed"


def main(
    only: List[str] = typer.Argument(None, help="Versions such as 3.12  [all of setup.cfg]"),
    folder: Path = typer.Option(Path(".venv-matrix"), help="Environments, kept for the next time"),
) -> None:
    results = {}
    for version in only or versions():
        msg.divider(f"Python {version}")
        results[version] = run_tests(version, folder.resolve())
    msg.table(list(results.items()), header=("Python", "quick tests"), divider=True)
    if any(own.startswith("failed") for own in results.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
