"""The time of executing Graph IR beside its arithmetic, and of verifying ten thousand operations."""

from __future__ import annotations

import numpy as np
from measurement import Measurement, in_turns

from tessera_reference.graph.execution import execute
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

TURNS = 5000
LOOP = f"""module m {{ func f(x: fp32) -> fp32 {{
  let y: fp32 = x;
  for (i in 0:{TURNS}) {{ y = y + x; y = y * x; y = y - x; }}
  return y;
}} }}"""
OPERATIONS = 10_000
STRAIGHT = "\n".join(["y = y + x;", "y = op.relu(y);"] * (OPERATIONS // 2))


def measure() -> list[Measurement]:
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
    checking, reading = in_turns(lambda: verify(long), lambda: program.split(), 5)
    return [
        Measurement("interpreter, an operation", ours, "direct calls", theirs, overhead, "us", 20),
        Measurement("verify 10,000 operations", checking, "splitting its text", reading, checking, "s", 1),
    ]
