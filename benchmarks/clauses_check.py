"""`tessera-conformance clauses check` as a whole process, against starting Python and importing jsonschema."""

from __future__ import annotations

import subprocess
import sys

from measurement import Measurement, cpu_of_children, in_turns


def measure() -> Measurement:
    """Schema, references and lock of the whole registry."""
    check = [sys.executable, "-m", "tessera_conformance", "clauses", "check"]
    start = [sys.executable, "-c", "import jsonschema"]

    def run(command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    ours, peer = in_turns(lambda: run(check), lambda: run(start), 7, cpu_of_children)
    return Measurement("clauses check", ours, "import jsonschema", peer, ours, "s", 1)
