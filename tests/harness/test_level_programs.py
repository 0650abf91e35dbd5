"""Kernels are written as the protocol shows them, and what is asked of an implementation says no more than it must."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit import level_programs
from tessera_conformance.chapters.ir.kit.kernel_texts import (
    FIRST_OPERATION,
    KernelText,
    buffer,
    line,
    returning,
    scheduled,
)
from tessera_conformance.check import Check
from tessera_conformance.observations import Returned
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import Tensor, to_wire

ROOT = Path(__file__).resolve().parents[2]


def test_a_kernel_is_written_as_the_protocol_shows_it() -> None:
    kernel = KernelText({"x": buffer("fp32", 32), "y": buffer("fp32", 32)})
    place = kernel.index("thread_id")
    value = kernel.load(kernel["x"], place)
    kernel.store(kernel.compute("add", value, value), kernel["y"], place)
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    shown = next(block for block in page.split("```") if '= "tss_kernel_k"' in block)
    names = {"%i": "%v1", "%a": "%v2", "%b": "%v3"}
    for written, made in names.items():
        shown = re.sub(rf"{written}\b", made, shown)
    assert kernel.module.split() == shown.split()
    assert kernel.module.splitlines()[FIRST_OPERATION - 1].strip().startswith("%v1 = ")
    assert kernel.line == FIRST_OPERATION + 3


def test_regions_yield_and_are_counted_in_lines() -> None:
    kernel = KernelText({"y": buffer("int32", 1)}, grid=None, stream="s")
    zero, two, one = kernel.constant(0), kernel.constant(2), kernel.constant(1)
    (total,) = kernel.loop(zero, two, one, lambda index, sum: [kernel.compute("add", sum, index)], zero)
    condition = kernel.compute("less", total, two)
    (chosen,) = kernel.branch(condition, lambda: [total], lambda: [kernel.constant(5)])
    lines = kernel.module.splitlines()
    kernel.store(chosen, kernel["y"], zero)
    assert kernel.module.splitlines()[kernel.line - 1].strip().startswith(f'"tessera.tile.store"({chosen.name}, %y, ')
    assert '%v4 = "tessera.tile.for"(%v1, %v2, %v3, %v1) ({' in lines[6]
    assert lines[7].strip() == "^bb0(%v5: int32, %v6: int32):"
    assert lines[9].strip() == '"tessera.graph.yield"(%v7) : (int32) -> ()'
    assert lines[10].strip() == "}) : (int32, int32, int32, int32) -> int32"
    assert ', block = [32, 1, 1], smem_bytes = 0, target = "sm_90", stream = "s"} : () -> ()' in kernel.module
    assert "grid" not in kernel.module


def test_attributes_and_types_are_spelled_as_mlir_has_them() -> None:
    kernel = KernelText({}, block=None)
    kernel.op("some.thing", gives=("fp32", "int32"), flag=True, number=2, real=0.5, word="w", several=(1, 2))
    assert (
        '%v1, %v2 = "some.thing"() {flag = true, number = 2, real = 0.5, word = "w", several = [1, 2]}' in kernel.text
    )
    assert " : () -> (fp32, int32)" in kernel.text
    with pytest.raises(ValueError, match="fp32 is no memref"):
        kernel.load(kernel.constant(1.0, "fp32"))


def test_functions_of_the_host() -> None:
    type_ = "tensor<4x4xfp32>"
    tile = line("%y", "tessera.schedule.tile", {"%x": type_}, type_, m=2, n=2)
    text = scheduled(tile, returning(y=type_), takes=f"%x: {type_}", gives=type_)
    assert f'%y = "tessera.schedule.tile"(%x) {{m = 2, n = 2}} : ({type_}) -> {type_}' in text
    assert f'"tessera.graph.return"(%y) : ({type_}) -> ()' in text
    kernel = KernelText({"x": buffer("fp32", 4), "y": buffer("fp32", 4)})
    assert '%r0 = "tessera.tile.launch"(%x) {kernel = "tss_kernel_k"} : (tensor<4xfp32>) -> tensor<4xfp32>' in (
        kernel.launched("tensor<4xfp32>")
    )


class Recording:
    """An implementation that answers everything with one value, and keeps what it was asked."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.level = "strict"
        self.asked: list[tuple[str, dict[str, Any]]] = []
        methods = ("verify_ir", "execute_ir", "execute", "lower")
        self.language = SimpleNamespace(**{name: self._method(name) for name in methods})

    def _method(self, name: str) -> Any:
        def call(**params: Any) -> Returned:
            self.asked.append((name, params))
            return Returned(self.value)

        return call


ONE = Tensor.from_words("int32", (), [1])


def test_only_what_differs_from_the_default_is_said() -> None:
    asked: Any = Recording({"warnings": []})
    level_programs.verified(asked, "t", "tile")
    level_programs.verified(asked, "t", "target", "gfx942")
    level_programs.executed_text(asked, "t", "tile", x=ONE)
    level_programs.executed(asked, "s", "tile", x=ONE)
    level_programs.executed(asked, "s", "schedule", "sm_80", {"depth": 3}, x=ONE)
    assert [params for _, params in asked.asked] == [
        {"text": "t", "at": "tile"},
        {"text": "t", "at": "target", "target": "gfx942"},
        {"text": "t", "function": "tss_kernel_k", "inputs": {"x": ONE}, "at": "tile"},
        {"source": "s", "function": "f", "inputs": {"x": ONE}, "at": "tile"},
        {
            "source": "s",
            "function": "f",
            "inputs": {"x": ONE},
            "at": "schedule",
            "target": "sm_80",
            "schedule": {"depth": 3},
        },
    ]
    for method, params in asked.asked:
        assert first_problem("tessera:protocol/language", f"{method}.params", to_wire(params)) is None


def test_what_a_program_is_lowered_to_is_read() -> None:
    operation = {"name": "tessera.tile.barrier", "operands": [], "results": [], "attributes": {}}
    entry = {"arguments": [], "results": [], "operations": [operation]}
    functions = [{"name": "@m.f", **entry}, {"name": "k", "kind": "kernel", "attributes": {"grid": [1, 1, 1]}, **entry}]
    asked: Any = Recording({"functions": functions, "text": "t"})
    found = level_programs.lowered(asked, Check(), "s", "tile", schedule={"depth": 2})
    assert list(found.functions) == ["f", "k"]
    assert found.kernels == ["k"]
    assert found.attributes["k"] == {"grid": [1, 1, 1]}
    assert len(found.operations("tessera.tile.barrier")) == 2
    assert level_programs.emitted(asked, Check(), "s", "ptx", "sm_80") == "t"
    assert asked.asked[1] == ("lower", {"source": "s", "to": "ptx", "target": "sm_80"})


def test_a_kernel_has_as_many_outputs_as_buffers() -> None:
    kernel = KernelText({"x": buffer("int32", 1), "n": "int32"})
    asked: Any = Recording({"outputs": [ONE]})
    assert level_programs.buffers_after(asked, Check(), kernel, x=ONE, n=ONE) == [ONE]
    asked.value = {"outputs": []}
    with pytest.raises(AssertionError, match="the number of buffers"):
        level_programs.buffers_after(asked, Check(), kernel, x=ONE, n=ONE)
