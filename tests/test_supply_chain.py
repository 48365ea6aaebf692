"""The pinned versions: their hashes, what an audit says of them, and the bill of materials."""

import json
from pathlib import Path

import pytest

from scripts.audit import PINS, judge

ROOT = Path(__file__).parent.parent


def normal(pin):
    return pin.lower().replace("_", "-").replace(".py==", "-py==")


def test_every_pin_has_hashes():
    pytest.importorskip("cyclonedx")
    from scripts.sbom import read_pins

    lines = (ROOT / "constraints.txt").read_text("utf8").splitlines()
    hashed = read_pins(PINS)
    assert {normal(line) for line in lines if line[0] != "#"} == set(map(normal, hashed))
    assert all(hashed.values())


def test_bill_of_materials():
    pytest.importorskip("cyclonedx")
    from scripts.sbom import make_bom

    (component,) = json.loads(make_bom({"Some.Name==1.0": ["a" * 64]}))["components"]
    assert component["purl"] == "pkg:pypi/some.name@1.0"
    assert component["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]


@pytest.mark.parametrize(
    "output, code, told",
    [
        ("", 0, "not audited"),
        ("<html>", 0, "not audited"),
        ('{"dependencies": [{"name": "a", "skip_reason": "x"}]}', 0, "in 0 packages; 1 not"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "No known"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1"}]}]}', 1, "X-1"),
    ],
)
def test_audit_fails_for_vulnerabilities_alone(output, code, told):
    found, message = judge(output)
    assert found == code and told in message
