"""What goes beyond Python's stack or the machine is unsupported, in so many words, and never a traceback."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import UnsupportedConstruct
from tessera_reference.language import compile_source, parse
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype


@pytest.mark.parametrize("read", [parse, compile_source])
def test_deep_nesting(read):
    depth = 3000
    source = f"module m {{ func f(a: int32) -> int32 {{ return {'(' * depth}a{')' * depth}; }} }}"
    with pytest.raises(UnsupportedConstruct) as stop:
        read(source, "deep.tsr")
    assert stop.value.feature == "language.deep_nesting"


@pytest.mark.slow
def test_a_long_chain_of_calls():
    calls = "\n".join(f"func f{i}(a: int32) -> int32 {{ return f{i - 1}(a); }}" for i in range(1, 400))
    module = compile_source(f"module m {{ func f0(a: int32) -> int32 {{ return a; }}\n{calls} }}").module
    one = Array(dtype("int32"), np.array(1, np.int32))
    assert execute(module, "f9", {"a": one})[0].values == 1
    with pytest.raises(UnsupportedConstruct) as stop:
        execute(module, "f399", {"a": one})
    assert stop.value.feature == "execute.deep_calls"
