"""Tools of others read what the levels print, and refuse each forgery of it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EVERY = 295
"""Of so many programs of the corpus one is read, at each level, for each target and with each forgery."""
KNOWN = {("mlir_opt", "target"): "a registered dialect has other attributes: reports/implementations/mlir_opt.md"}


@pytest.fixture
def readers(at_the_root: Path) -> Any:
    """The module of the tools."""
    return importlib.import_module("conformance.adapters.text_readers")


@cache
def corpus(level: str, every: int) -> list[Any]:
    """The texts of every so-manieth program."""
    return list(importlib.import_module("conformance.adapters.texts").texts([level], every))


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
