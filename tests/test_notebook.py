"""The notebook is committed as it ran, and runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parent.parent / "docs" / "start_to_end.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf8"))


def test_notebook_was_run_whole_and_shows_nothing_of_the_machine():
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds  # displaCy and plots
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert re.findall(r"/(?:tmp|home|root|Users|work|mnt|opt)/", json.dumps(outputs)) == []
    assert PATH.stat().st_size < 200_000


def test_links_of_the_notebook_resolve():
    text = "".join(
        line
        for cell in NOTEBOOK["cells"]
        if cell["cell_type"] == "markdown"
        for line in cell["source"]
    )
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links and all((PATH.parent / link).exists() for link in links)


@pytest.mark.slow
def test_notebook_runs():
    pytest.importorskip("nbmake")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbmake", "--nbmake-timeout=1800"]
    result = subprocess.run([sys.executable, *command, str(PATH)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
