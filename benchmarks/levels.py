"""A product and a softmax at the lower levels of IR against Graph IR, and emission of the whole equality corpus."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import chain

import numpy as np
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS, Program
from tessera_reference.ir.diagnostics import UnsupportedConstruct
from tessera_reference.ir.operation import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.ir.types import Tensor
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit
from tessera_reference.levels.execution import Level, execute_at, lower, run_lowered, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.rounding import cast

EXTENTS = (128, 256, 512)
PROGRAMS_OF_ROWS = {
    "matmul": "module m {{ func f(A: tensor<{0}x{0}xbf16>, B: tensor<{0}x{0}xbf16>) {{ return op.matmul(A, B); }} }}",
    "softmax": "module m {{ func f(A: tensor<{0}x{0}xfp32>) {{ return op.softmax(A); }} }}",
}
MOST: dict[Level, float] = {"tile": 15, "target": 25}
"""The most that each level may take, in times of Graph IR."""


def measure() -> list[Outcome]:
    """Kernels ready to run, as installed; lowering is not counted. Emission is all from Target IR to PTX."""
    rows = [rows_of(work, extent, level) for work in PROGRAMS_OF_ROWS for extent in EXTENTS for level in MOST]
    return [*chain.from_iterable(rows), emission()]


def rows_of(work: str, extent: int, level: Level) -> list[Outcome]:
    """One program at a level against the same at Graph IR, by processor time: the first launches, and later ones."""
    module, target = compile_source(PROGRAMS_OF_ROWS[work].format(extent)).module, target_of(DEFAULT)
    random = np.random.Generator(np.random.PCG64(5))
    inputs = {}
    for parameter in module.functions["f"].parameters:
        assert isinstance(parameter.type, Tensor)
        values = random.uniform(0.5, 1, (extent, extent)).astype(np.float32)
        inputs[parameter.name] = cast(Array(dtype("fp32"), values), parameter.type.dtype)
    lowered = lower(module, level, target)
    warm = lower(module, level, target)
    run_lowered(level, warm, "f", inputs, target)  # compiles what the process compiles once
    once = [seconds(lambda: run_lowered(level, lowered, "f", inputs, target)) for _ in range(3)]
    ours, graph = in_turns(
        lambda: run_lowered(level, lowered, "f", inputs, target),
        lambda: execute_at("graph", module, "f", inputs, target),
        5,
    )
    name = f"{work} {extent} at {level.capitalize()} IR"
    early = [
        Measurement(f"{name}, {which} launch", time_, "Graph IR", graph, 1000 * time_, "ms", None)
        for which, time_ in zip(("first", "second", "third"), once, strict=True)
    ]
    return [Measurement(name, ours, "Graph IR", graph, ours / graph, "x", MOST[level]), *early]


def seconds(run: Callable[[], object]) -> float:
    """The processor time of one call."""
    started = time.process_time()
    run()
    return time.process_time() - started


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
    inputs = {
        name: Array.from_bits(dtype(tensor.dtype), tensor.shape, tensor.data) for name, tensor in program.inputs.items()
    }
    try:
        return lower(specialized(compile_source(program.source).module, "f", inputs), "target", target_of(DEFAULT))
    except UnsupportedConstruct:
        return None
