"""Thousands of ranks where users call: an all-reduce of the runtime, `collectives.run`, and a program on a mesh.

Every figure is of the first call in a process of its own, in processor time. `python benchmarks/many_ranks.py CALL
RANKS` measures one, CALL being one of `CALLS`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from measurement import Measurement

from tessera_reference.abi.status import Status
from tessera_reference.collectives.operations import run
from tessera_reference.collectives.programs import run_program
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.mesh.topology import MeshAxes, uniform
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.runtime import Runtime

FEW, MANY, DOUBLINGS = 256, 4096, 4
TIMES = 3
ELEMENTS = 4096
GROWTH, MEMORY = 2.3, 1000
"""A doubling at most; megabytes of the runtime at most."""


class Cost(NamedTuple):
    """Seconds of processor time of a call, and the most megabytes of its process."""

    seconds: float
    megabytes: float


def measure() -> list[Measurement]:
    """Measure seconds on 4,096 ranks, the growth from 256 ranks on, and the memory of the runtime."""
    rows = []
    for name, (_, limit, doublings, unit) in CALLS.items():
        few, many = cost(name, FEW), cost(name, MANY)
        growth = (many.seconds / few.seconds) ** (1 / doublings)
        peer = f"{FEW} ranks", few.seconds
        rows.append(Measurement(f"{name}, {MANY} ranks, first", many.seconds, *peer, many.seconds, "s", limit))
        rows.append(Measurement(f"{name}, growth", many.seconds, *peer, growth, unit, GROWTH))
        if name == "tessAllReduce":
            rows.append(Measurement(f"{name}, memory", many.seconds, *peer, many.megabytes, "MB", MEMORY))
    return rows


def cost(name: str, ranks: int) -> Cost:
    """Return the least cost of a call in one of a few new processes."""
    command = [sys.executable, __file__, name, str(ranks)]
    answers = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(TIMES)]
    return min(Cost(float(seconds), float(megabytes)) for seconds, _, megabytes, _ in map(str.split, answers))


def all_reduce(ranks: int) -> Callable[[], object]:
    """Return tessAllReduce of 4,096 elements and the wait for it, on a mesh whose devices one switch joins."""
    runtime = Runtime(uniform(1, ranks))

    def ask(name: str, *arguments: Any) -> Any:
        answer = getattr(runtime, name)(*arguments)
        status, output = answer if isinstance(answer, tuple) else (answer, None)
        assert status is Status.TESS_OK, f"{name}: {status.name}"
        return output

    mesh = ask("tessMeshCreate", ask("tessInit"), list(range(ranks)), ranks, MeshAxes(dp=ranks))
    stream, memory = ask("tessStreamCreate", mesh, 0), ask("tessMalloc", mesh, 4 * ELEMENTS)
    for rank in range(ranks):
        ask("tessxPoke", mesh, rank, memory, np.ones(ELEMENTS, np.float32).tobytes())

    def call() -> None:
        ask("tessAllReduce", mesh, memory, ELEMENTS, dtype("fp32").abi_id, 0, "dp", stream)
        ask("tessStreamSynchronize", stream)

    return call


def run_ring(ranks: int) -> Callable[[], object]:
    """Return `collectives.run` around a ring, in its own order, with an element a share."""
    return _run("ring", ranks)


def run_halving(ranks: int) -> Callable[[], object]:
    """Return `collectives.run` by recursive halving on three quarters of the ranks, which are no power of two."""
    return _run("halving_doubling", ranks * 3 // 4)


def _run(name: str, ranks: int) -> Callable[[], object]:
    values = np.random.Generator(np.random.Philox(14)).standard_normal((ranks, ranks), np.float32)
    buffers = [Array(dtype("fp32"), row) for row in values]
    return lambda: run("all_reduce", buffers, op="sum", name=name, level="deterministic")


PROGRAM = """
"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp"], shape = [{ranks}]}} : () -> ()
  "tessera.graph.func"() ({{
  ^bb0(%x: tensor<8xfp32>):
    %y = "tessera.graph.multiply"(%x, %x)
    %z = "tessera.graph.all_reduce"(%y) {{op = "sum", axis = "dp"}}
    %w = "tessera.graph.add"(%z, %x)
    "tessera.graph.return"(%w)
  }}) {{sym_name = "f", function_type = (tensor<8xfp32>) -> (tensor<8xfp32>)}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""


def mesh_program(ranks: int) -> Callable[[], object]:
    """Return a program of a product, an all-reduce and a sum, on every rank of a mesh."""
    (module,) = read_at("graph", PROGRAM.format(ranks=ranks), target_of(DEFAULT))
    inputs = [{"x": Array(dtype("fp32"), np.full(8, rank, np.float32))} for rank in range(ranks)]
    return lambda: run_program(module, module.functions["f"], inputs)


CALLS: Mapping[str, tuple[Callable[[int], Callable[[], object]], float, int, str]] = {
    "tessAllReduce": (all_reduce, 2, DOUBLINGS, "/ranks"),
    "collectives.run": (run_ring, 1, 2 * DOUBLINGS, "/elems"),
    "collectives.run, halving": (run_halving, 1, 2 * DOUBLINGS, "/elems"),
    "mesh program": (mesh_program, 0.5, DOUBLINGS, "/ranks"),
}
"""By the name of a call: its maker for so many ranks, its limit in seconds on 4,096, the doublings of its size from 256
to 4,096 ranks, and the unit of that size: ranks, or the elements of `run`, the square of its ranks."""


def main(name: str, ranks: int) -> None:
    """Print what a call costs."""
    call = CALLS[name][0](ranks)
    started = time.process_time()
    call()
    seconds = time.process_time() - started
    print(f"{seconds:.3f} s {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
