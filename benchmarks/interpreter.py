"""The time of executing Graph IR beside its arithmetic, and of checking and verifying twenty thousand statements."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from measurement import Measurement, NotMeasured, Outcome, in_turns

from tessera_reference.graph.execution import execute
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source, parse
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

TURNS = 5000
LOOP = f"""module m {{ func f(x: fp32) -> fp32 {{
  let y: fp32 = x;
  for (i in 0:{TURNS}) {{ y = y + x; y = y * x; y = y - x; }}
  return y;
}} }}"""
OPERATIONS = 20_000
STRAIGHT = "\n".join(["y = y + x;", "y = op.relu(y);"] * (OPERATIONS // 2))


CHAIN = 1000


def measure() -> list[Outcome]:
    """A loop of three scalar operations against the same three called directly; verification alone."""
    loop = compile_source(LOOP).module
    one = Array(dtype("fp32"), np.float32(1))

    def directly() -> Array:
        y = one
        for _ in range(TURNS):
            y = arithmetic.add(y, one)
            y = arithmetic.multiply(y, one)
            y = arithmetic.subtract(y, one)
        return y

    ours, theirs = in_turns(lambda: execute(loop, "f", {"x": one}), directly, 7)
    overhead = (ours - theirs) / (3 * TURNS) * 1e6
    matrix = "tensor<4x4xfp32>"
    program = f"module m {{ func f(x: {matrix}) -> {matrix} {{ let y: {matrix} = x;\n{STRAIGHT}\nreturn y; }} }}"
    long = compile_source(program).module
    checking, reading = in_turns(lambda: verify(long), lambda: parse(program), 3)
    compiling, reading_again = in_turns(lambda: compile_source(program), lambda: parse(program), 3)
    return [
        Measurement("interpreter, an operation", ours, "direct calls", theirs, overhead, "us", 20),
        _against_onnx(one),
        Measurement(f"verify {OPERATIONS:,} operations", checking, "parsing it", reading, checking, "s", 1),
        Measurement(f"check {OPERATIONS:,} statements", compiling, "parsing it", reading_again, compiling, "s", 1.5),
    ]


def _against_onnx(one: Array) -> Outcome:
    """A thousand sums of numbers, each of which reads the last."""
    name = f"{CHAIN:,} operations on scalars"
    try:
        import onnx_model
    except ImportError:
        return NotMeasured(name, "pip install onnx")
    names = ["x", *(f"v{number}" for number in range(CHAIN))]
    nodes = [("Add", (read, "x"), given) for read, given in pairwise(names)]
    model = onnx_model.evaluator(nodes, {"x": ()}, names[-1])
    sums = "\n".join(["y = y + x;"] * CHAIN)
    chain = compile_source(f"module m {{ func f(x: fp32) -> fp32 {{ let y: fp32 = x;\n{sums}\nreturn y; }} }}").module
    ours, theirs = in_turns(lambda: execute(chain, "f", {"x": one}), lambda: model(x=one.values), 7)
    return Measurement(name, ours, "ONNX's evaluator", theirs, ours / theirs, "x", None)
