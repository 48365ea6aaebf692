"""Write a software bill of materials (CycloneDX) of the pinned versions, with the hashes of their files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, List

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

PINS = Path(__file__).parent.parent / "constraints-hashes.txt"


def read_pins(path: Path) -> Dict[str, List[str]]:
    """From `name==version` to the SHA-256 of its files."""
    pins: Dict[str, List[str]] = {}
    for line in path.read_text("utf8").splitlines():
        if pin := re.match(r"([\w.-]+==[\w.+!-]+)", line):
            pins[pin[1]] = []
        if digest := re.search(r"--hash=sha256:([0-9a-f]{64})", line):
            pins[list(pins)[-1]].append(digest[1])
    return pins


def make_bom(pins: Dict[str, List[str]]) -> str:
    """The bill of materials as JSON."""
    bom = Bom()
    for pin, digests in pins.items():
        name, version = pin.split("==")
        bom.components.add(
            Component(
                name=name,
                version=version,
                type=ComponentType.LIBRARY,
                purl=PackageURL("pypi", name=name.lower(), version=version),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=own) for own in digests],
            )
        )
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_5).output_as_string(indent=1)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(make_bom(read_pins(PINS)), encoding="utf8")
