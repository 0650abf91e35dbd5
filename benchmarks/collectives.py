"""Collectives: what all ranks compute, when half a million messages travel, and plans.

All figures are processor time, which other work on the machine changes least.
"""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

import numpy as np
from measurement import Measurement, NotMeasured, Outcome, in_turns, seconds

from tessera_reference.collectives.operations import messages, run
from tessera_reference.collectives.planner import Options, plan_function
from tessera_reference.collectives.schedules import algorithm
from tessera_reference.collectives.travel import travel
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.mesh.topology import uniform
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

RANKS, ELEMENTS = 8, 1 << 16
SOME, MANY = 128, 512
SYSTEM_PYTHON = "/usr/bin/python3"
NUMPY, STABLEHLO, ENGINE, PLANNER = 4, 200, 4, 2
"""Times a fold in place at most; times faster than the interpreter at least; seconds."""
DIRECT, CHUNK = 64, 1000
LAYERS = 1000


def measure() -> list[Outcome]:
    """Processor time, also that of first calls, which find routes and schedules."""
    values = np.random.Generator(np.random.Philox(14)).standard_normal((RANKS, ELEMENTS), np.float32)
    buffers = [Array(dtype("fp32"), value) for value in values]
    return [
        *_data(values, buffers),
        _against_stablehlo(values, buffers),
        *_engine(),
        _against_simgrid(),
        _planner(),
        _calls(),
    ]


def _data(values: np.ndarray, buffers: list[Array]) -> list[Outcome]:
    """Against a fold of the same numbers in place."""

    def fold() -> np.ndarray:
        total = values[0].copy()
        for row in values[1:]:
            total += row
        return total

    ours = partial(run, "all_reduce", buffers, op="sum", name="tree")
    first = seconds(ours)
    mine, other = in_turns(ours, fold, 50)
    name, peer = f"all_reduce, {RANKS} x 64 Ki fp32", "a fold in place"
    in_order = partial(run, "all_reduce", buffers, op="sum", name="ring", level="deterministic")
    ring, again = in_turns(in_order, fold, 50)
    return [
        Measurement(name, mine, peer, other, mine / other, "x", NUMPY),
        Measurement(f"{name}, first call", first, peer, other, first * 1e3, "ms", None),
        Measurement("the same, order of a ring", ring, peer, again, ring / again, "x", None),
    ]


PROGRAM = f"""
func.func @main(%x: tensor<{RANKS}x{ELEMENTS}xf32>) -> tensor<{ELEMENTS}xf32> {{
  %zero = stablehlo.constant dense<-0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<{RANKS}x{ELEMENTS}xf32>, tensor<f32>) -> tensor<{ELEMENTS}xf32>
  return %0 : tensor<{ELEMENTS}xf32>
}}
"""
"""The contributions of an all-reduce. The interpreter's own waits for a thread of each rank, and aborts the process
where there are fewer processors than ranks; it adds as many numbers, and takes no less."""


def _against_stablehlo(values: np.ndarray, buffers: list[Array]) -> Outcome:
    """StableHLO's interpreter adds the ranks' rows; reading its program is not counted."""
    name = "all_reduce, times as fast"
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        return NotMeasured(name, "pip install jaxlib")
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context, ir.Location.unknown():
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        module, given = ir.Module.parse(PROGRAM), [ir.DenseElementsAttr.get(values)]
        ours = partial(run, "all_reduce", buffers, op="sum", name="tree")
        mine, other = in_turns(ours, lambda: stablehlo.eval_module(module, given), 5)
    peer = "StableHLO's interpreter, reduce"
    return Measurement(name, mine, peer, other, other / mine, "x", STABLEHLO, at_least=True)


def _engine() -> list[Outcome]:
    """A ring of 512 ranks: 523,264 messages on links with credits, against their list being written."""
    topology, devices = uniform(1, MANY), range(MANY)
    sent = messages("all_reduce", algorithm("ring", MANY), MANY * 1000)
    first = seconds(partial(travel, topology, devices, sent, 4))
    ours = min(first, seconds(partial(travel, topology, devices, sent, 4)))
    writing = seconds(partial(messages, "all_reduce", algorithm("ring", MANY), MANY * 1000))
    name, peer = f"ring of {MANY} ranks, engine", "writing its messages"
    return [
        Measurement(name, ours, peer, writing, ours, "s", ENGINE),
        Measurement(f"{name}, first call", first, peer, writing, first, "s", ENGINE),
        Measurement(f"{name}, messages", writing, "the engine", ours, writing, "s", None),
        _chunks(),
    ]


def _against_simgrid() -> Outcome:
    """A ring of 128 ranks: 32,512 messages, each on a link of its own, against SimGrid's actors in a process."""
    name = f"ring of {SOME} ranks, engine"
    script = [SYSTEM_PYTHON, str(Path(__file__).with_name("simgrid_ring.py")), str(SOME), "4000"]
    done = subprocess.run(script, capture_output=True, text=True) if Path(SYSTEM_PYTHON).exists() else None
    if done is None or done.returncode:
        return NotMeasured(name, "apt-get install python3-simgrid")
    sent = messages("all_reduce", algorithm("ring", SOME), SOME * 1000)
    ours = seconds(partial(travel, uniform(1, SOME), range(SOME), sent, 4))
    other = float(done.stdout.split()[-1])
    return Measurement(name, ours, "SimGrid's actors in Python", other, ours / other, "x", None)


def _chunks() -> Measurement:
    """Chunks that every rank sends directly to every other, most of which wait for links."""
    sent = messages("all_reduce", algorithm("direct", DIRECT), DIRECT * 7 * CHUNK, chunk=CHUNK)
    ours = seconds(partial(travel, uniform(1, DIRECT), range(DIRECT), sent, 4, chunk=CHUNK))
    writing = seconds(partial(messages, "all_reduce", algorithm("direct", DIRECT), DIRECT * 7 * CHUNK, chunk=CHUNK))
    name = f"direct, {DIRECT} ranks, {len(sent)} chunks"
    return Measurement(name, ours, "writing its messages", writing, ours, "s", None)


def _planner() -> Measurement:
    """A function of a product, a sum and two collectives a layer, of which one is sent in chunks."""
    layer = """
    %p{n} = "tessera.graph.multiply"(%y{n}, %y0)
    %f{n} = tessera.collective.all_reduce %p{n} {{op="sum", chunk=1KiB}}
    %g{n} = "tessera.graph.all_reduce"(%p{n}) {{op = "sum", axis = "dp"}}
    %a{n} = tessera.await %f{n}
    %y{next} = "tessera.graph.add"(%a{n}, %g{n})"""
    body = [layer.format(n=n, next=n + 1) for n in range(LAYERS)]
    held = "tensor<1024xfp32>"
    text = PROGRAM_OF_LAYERS.format(body="\n".join(body), last=f"%y{LAYERS}", held=held)
    started = time.process_time()
    (module,) = read_at("graph", text, target_of(DEFAULT))
    reading = time.process_time() - started
    options = Options(tile=256, depth=2, max_inflight=8)
    first = seconds(partial(plan_function, module, module.functions["f"], options))
    return Measurement(f"plan of {LAYERS} layers, first call", first, "reading it", reading, first, "s", PLANNER)


PROGRAM_OF_LAYERS = """
"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp"], shape = [4]}} : () -> ()
  "tessera.graph.func"() ({{
  ^bb0(%y0: {held}):
    {body}
    "tessera.graph.return"({last})
  }}) {{sym_name = "f", function_type = ({held}) -> ({held})}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""


def _calls() -> Outcome:
    """Calls of a collective of 8 ranks and 16 elements, which is all overhead."""
    buffers = [Array(dtype("fp32"), np.ones(16, np.float32)) for _ in range(RANKS)]
    stacked = np.ones((RANKS, 16), np.float32)

    def ours() -> None:
        for _ in range(100):
            run("all_reduce", buffers, op="sum", name="tree")

    def theirs() -> None:
        for _ in range(100):
            np.sum(stacked, axis=0)

    mine, other = in_turns(ours, theirs, 5)
    return Measurement("collectives.run, small", mine, "numpy.sum", other, 100 / mine, "calls/s", None, at_least=True)
