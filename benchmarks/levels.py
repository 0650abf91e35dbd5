"""One product at the lower levels of IR against the same at Graph IR, and emission of the whole equality corpus."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
from accelerated_path import numerics
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS, Program
from tessera_reference.ir.diagnostics import UnsupportedConstruct
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import execute_at, lower, run_lowered, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

EXTENT = 256
SQUARE = f"tensor<{EXTENT}x{EXTENT}xbf16>"
PRODUCT = f"module m {{ func f(A: {SQUARE}, B: {SQUARE}) {{ return op.matmul(A, B); }} }}"
MOST = {"tile": 60, "target": 100}
"""The most that each level may take, in times of Graph IR."""


def measure() -> list[Outcome]:
    """Kernels ready to run, plain arithmetic; lowering is not counted. Emission is all from Target IR to PTX."""
    module = compile_source(PRODUCT).module
    random = np.random.Generator(np.random.PCG64(5))
    bits = random.integers(0x3E00, 0x4000, (2, EXTENT, EXTENT), np.uint16)
    inputs = {
        name: Array.from_bits(dtype("bf16"), each.shape, each.tobytes()) for name, each in zip("AB", bits, strict=True)
    }
    target = target_of(DEFAULT)
    found: list[Outcome] = []
    for level, most in MOST.items():
        lowered = lower(module, level, target)
        with numerics(plain=True):
            ours, graph = in_turns(
                lambda level=level, lowered=lowered: run_lowered(level, lowered, "f", inputs, target),
                lambda: execute_at("graph", module, "f", inputs, target),
                3,
            )
        name = f"matmul 256^3 bf16 at {level.capitalize()} IR"
        found.append(Measurement(name, ours, "Graph IR", graph, ours / graph, "x", most))
    return [*found, emission()]


def emission() -> Outcome:
    """PTX of every program of the corpus that a kernel of Target IR can hold, beside lowering it that far."""
    name = "emission of the corpus, PTX"
    if find_spec("llvmlite") is None:
        return NotMeasured(name, "pip install '.[llvm]'")
    target = target_of(DEFAULT)
    started = time.perf_counter()
    modules = [lowered for program in PROGRAMS if (lowered := at_target(program))]
    between = time.perf_counter()
    for lowered in modules:
        emit(lowered, "ptx", target)
    ended = time.perf_counter()
    return Measurement(
        name, ended - between, f"lowering {len(modules)} programs", between - started, ended - between, "s", 10
    )


def at_target(program: Program) -> Module | None:
    """A program at Target IR, for its inputs; nothing where it has no kernel there."""
    inputs = {name: Array.from_bits(dtype(each.dtype), each.shape, each.data) for name, each in program.inputs.items()}
    try:
        return lower(specialized(compile_source(program.source).module, "f", inputs), "target", target_of(DEFAULT))
    except UnsupportedConstruct:
        return None
