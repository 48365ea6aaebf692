"""`make matrix`: the versions of setup.cfg, interpreters that are really of that version, clear notices."""

import subprocess
import sys
from pathlib import Path

import typer
from typer.testing import CliRunner

from scripts import matrix

HERE = "{}.{}".format(*sys.version_info[:2])


def test_versions_and_interpreters():
    assert matrix.versions() == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert matrix.runs(sys.executable, HERE) and not matrix.runs(sys.executable, "3.9")
    assert not matrix.runs(None, HERE) and matrix.runs(matrix.find_python(HERE), HERE)
    assert matrix.torch_line().startswith("torch==")
    root = Path(matrix.__file__).parent.parent
    assert all((root / path).exists() for path in matrix.QUICK)


def test_what_cannot_be_had_is_skipped_with_a_notice(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "find_python", lambda version: None)
    assert matrix.run_tests("3.14", tmp_path) == "skipped: no interpreter found"
    python = tmp_path / HERE / "bin" / "python"  # an environment that is there is kept
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    run = subprocess.run

    def no_network(command, **options):
        install = "install" in command
        return subprocess.CompletedProcess(command, 1) if install else run(command, **options)

    monkeypatch.setattr(matrix, "find_python", lambda version: sys.executable)
    monkeypatch.setattr(matrix.subprocess, "run", no_network)
    outcome = matrix.run_tests(HERE, tmp_path)
    assert outcome.startswith("skipped: no torch==") and "the sources compile" in outcome


def test_a_failure_is_the_exit_code(monkeypatch):
    app = typer.Typer()
    app.command()(matrix.main)
    for outcome, code in (("passed", 0), ("skipped: why", 0), ("failed", 1)):
        monkeypatch.setattr(matrix, "run_tests", lambda version, folder, own=outcome: own)
        result = CliRunner().invoke(app, ["3.10"])
        assert result.exit_code == code and outcome in result.output
