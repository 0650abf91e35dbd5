"""Engines of graphs under `--impl=ops:`: a sixty-fourth of the cases of each whose package is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENGINES = {
    "onnxruntime": ("onnxruntime", "onnx"),
    "onnx_reference": ("onnx", "onnx"),
    "stablehlo": ("jaxlib", "stablehlo"),
    "tosa": ("tosa_reference_model", "tosa"),
    "tinygrad": ("tinygrad", "tinygrad"),
}
"""The module of each package, and the extra that installs it."""
OWN = {"harness_error", "protocol_error", "hang", "not_run"}
"""Verdicts that say something of the adapter."""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sixty_fourth_of_the_cases(engine: str, at_the_root: Path, tmp_path: Path) -> None:
    """Some pass, what the engine lacks is unsupported, and nothing goes wrong in the adapter."""
    module, extra = ENGINES[engine]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'tessera-conformance[{extra}]'")
    adapter = f"ops:conformance.adapters.{engine}_adapter:OPERATIONS"
    implementation = f"rpc:{sys.executable} -m tessera_conformance serve {adapter}"
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl", implementation, "--door=operations"]
    command += ["--shard=3/64", f"--report-dir={tmp_path}", "--case=ir/*/golden/*"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(at_the_root), *sys.path])}
    done = subprocess.run(command, cwd=at_the_root, env=environment, capture_output=True, text=True, check=False)
    lines = (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [line.get("verdict") for line in map(json.loads, lines) if line["record"] == "observation"]
    assert not OWN & set(verdicts), done.stdout
    assert {"pass", "unsupported"} <= set(verdicts)
