"""Engines and tools of others, where they are installed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conformance.adapters.judge import PUBLISHED, implementations, judged, missing, page, summary

# Engines of graphs under `--impl=ops:`: a sixty-fourth of the cases of each whose package is installed.

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_sixty_fourth_of_the_cases(engine: str, at_the_root: Path, tmp_path: Path) -> None:
    """Some pass, what the engine lacks is unsupported, and nothing goes wrong in the adapter."""
    module, extra = ENGINES[engine]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'tessera-conformance[{extra}]'")
    adapter = f"ops:conformance.adapters.{engine}_adapter:OPERATIONS"
    implementation = f"rpc:{sys.executable} -m tessera_conformance serve {adapter}"
    command = [sys.executable, "-m", "tessera_conformance", "run", "--impl", implementation, "--via=operations"]
    command += ["--shard=3/64", f"--report-dir={tmp_path}", "--case=ir/*/golden/*"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(at_the_root), *sys.path])}
    done = subprocess.run(command, cwd=at_the_root, env=environment, capture_output=True, text=True, check=False)
    lines = (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [line.get("verdict") for line in map(json.loads, lines) if line["record"] == "observation"]
    assert not OWN & set(verdicts), done.stdout
    assert {"pass", "unsupported"} <= set(verdicts)


# A sixty-fourth of the cases of each implementation that is a table of operations, where its package is installed.

TABLES = [
    name for name, row in implementations().items() if row["impl"].startswith("ops:") or "serve ops:" in row["impl"]
]


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_part_is_judged(name: str) -> None:
    """Most of what its table has passes, and nothing breaks the protocol or the harness."""
    row = implementations()[name]
    if lacking := missing(row):
        pytest.skip(f"{', '.join(lacking)} is not there: {row['install']}")
    options = [option for option in row["options"] if not option.startswith("--shard")]
    told = summary(row, judged({**row, "options": options}, "--shard=1/64"))
    cases = told["cases"]
    assert {"protocol_error", "harness_error", "not_run"}.isdisjoint(cases)
    assert cases["pass"] > cases.get("fail", 0)


def test_the_comparison_is_current() -> None:
    assert (PUBLISHED / "README.md").read_text(encoding="utf-8") == page(), "run `python -m conformance.adapters.judge`"


def test_every_summary_is_of_a_known_implementation() -> None:
    for path in sorted(PUBLISHED.glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        if "cases" in told:
            assert told["impl"] == implementations()[path.stem]["impl"]
            assert Path(path.with_suffix(".md")).exists()


# Tools of others read what the levels print, and refuse each forgery of it.

EVERY = 295
"""One of this many programs of the corpus is read, at each level, for each target and with each forgery."""
KNOWN = {("mlir_opt", "target"): "a registered dialect has other attributes: reports/implementations/mlir_opt.md"}


@pytest.fixture
def readers(at_the_root: Path) -> Any:
    """The module of the tools."""
    return importlib.import_module("conformance.adapters.text_readers")


@cache
def corpus(level: str, every: int) -> list[Any]:
    """The texts of every so-manieth program."""
    return list(importlib.import_module("conformance.adapters.texts").texts([level], every))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["mlir_opt", "xdsl", "ptxas", "llvm"])
def test_texts_are_read_and_forgeries_refused(name: str, readers: Any, every: Callable[[int], int]) -> None:
    reader = readers.READERS[name]
    if reader.version() is None:
        pytest.skip(f"{name} is not installed: {reader.install}")
    levels = [level for level in reader.levels if (name, level) not in KNOWN]
    if {"llvm", "ptx"} & set(levels):
        pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    judged = readers.judged(reader, [text for level in levels for text in corpus(level, every(EVERY))])
    assert {level: row["refused"] for level, row in judged["texts"].items()} == {level: {} for level in levels}
    assert {mistake: row["read"] for mistake, row in judged["forgeries"].items() if row["read"]} == {}


def test_a_forgery_differs_in_one_place(at_the_root: Path) -> None:
    texts = importlib.import_module("conformance.adapters.texts")
    text = '"builtin.module"() ({\n  %0 = "tessera.graph.add"(%a, %b) : (i1, i2) -> i3\n}) : () -> ()\n'
    forgeries = dict(texts.forged(text, texts.MLIR))
    assert list(forgeries) == list(texts.MLIR)
    assert "(%nothing, %b)" in forgeries["a value that nothing defines"]
    assert forgeries["a second definition"].count("%0 =") == 2
    assert ": (i2) -> i3" in forgeries["an operand without a type"]
    assert '"tessera.graph.add(' in forgeries["a string without an end"]
    assert "})" not in forgeries["a region without an end"]
