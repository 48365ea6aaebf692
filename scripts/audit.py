"""Look for known vulnerabilities of the pinned versions; without a network, say so and go on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Tuple

PINS = Path(__file__).parent.parent / "constraints-hashes.txt"
COMMAND = [sys.executable, "-m", "pip_audit", "-r", str(PINS), "--disable-pip", "-f", "json"]


def judge(output: str) -> Tuple[int, str]:
    """The exit code and a message for what pip-audit wrote."""
    try:
        found = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 0, "pip-audit could not run (no network?): the pinned versions were not audited."
    known = [
        f"{one['name']} {one['version']}: {', '.join(vuln['id'] for vuln in one['vulns'])}"
        for one in found
        if one.get("vulns")
    ]
    skipped = sum("skip_reason" in one for one in found)
    if known:
        return 1, "\n".join(["Known vulnerabilities:", *known])
    return 0, f"No known vulnerabilities in {len(found) - skipped} packages; {skipped} not audited."


if __name__ == "__main__":
    try:
        run = subprocess.run(
            [*COMMAND, "--progress-spinner", "off"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
        output = run.stdout.decode("utf8", "replace")
    except subprocess.TimeoutExpired:
        output = ""
    code, message = judge(output)
    print(message)
    # A vulnerability that became known today must not stop a change; it stops a release.
    sys.exit(code if "--strict" in sys.argv else 0)
