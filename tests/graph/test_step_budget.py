"""A program that does not end, ends."""

from __future__ import annotations

import time

import pytest

from tessera_reference.graph.interpreter import Interpreter
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


@pytest.mark.parametrize("loop", ["while (c) { }", "while (true) { }", "for (i in 0:2000000000) { }"])
def test_every_turn_of_a_loop_counts_even_of_an_empty_one(loop: str) -> None:
    module = compile_source(f"module m {{ func f(c: bool) {{\n{loop} }} }}", "t.tsr").module
    interpreter = Interpreter(module, steps=1000)
    with pytest.raises(Rejection) as caught:
        next(interpreter.run(module.functions["f"], (Array.checked(dtype("bool"), True),)))
    (found,) = caught.value.diagnostics
    assert (found.phase, found.span.line) == ("execute", 2)
    assert "has run its most steps" in found.message


SCALARS = """
let i: int32 = 0; let s: fp32 = 0.0;
while (i >= 0) { i = i * 3 + 1; i = i - i; s = s * 2.0 - s / 3.0 + 1.0; if (s > 10.0) { s = op.sin(s); } }
"""


def test_an_endless_loop_on_scalars_ends_within_five_seconds() -> None:
    module = compile_source(f"module m {{ func f(c: bool) {{ {SCALARS} }} }}", "t.tsr").module
    began = time.process_time()
    with pytest.raises(Rejection, match="has run its most steps"):
        next(Interpreter(module).run(module.functions["f"], (Array.checked(dtype("bool"), True),)))
    assert time.process_time() - began < 5
