"""A function becomes a kernel whose results are parameters; its values are those of the function."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.compilation.extents import as_kernel
from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Function, Module
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SOURCE = """module m {
  func scaled(r0: tensor<3xfp32>, x: fp32) -> tensor<3xfp32> { return r0 * x; }
  func number(A: tensor<3xfp32>) -> fp32 { return 2.0; }
  func early(A: tensor<3xfp32>, b: bool) -> tensor<3xfp32> {
    if (b) { return A; }
    return A + A;
  }
  kernel k(A: tensor<3xfp32>) { A = A + A; }
}
"""


def function(name: str) -> tuple[Module, Function]:
    module = compile_source(SOURCE).module
    return module, module.functions[name]


def test_a_result_is_a_parameter_with_a_name_of_its_own() -> None:
    module, kernel = as_kernel(*function("scaled"))
    assert kernel.kernel
    assert [each.name for each in kernel.parameters] == ["r0", "x", "r0_"]
    given = np.float32([1, -2, 3])
    fp32 = dtype("fp32")
    inputs = {name: Array(fp32, np.zeros(3, np.float32)) for name in ("r0_",)}
    inputs |= {"r0": Array(fp32, given), "x": Array(fp32, np.float32(2))}
    left = execute(module, "scaled", inputs)
    assert [each.values.tolist() for each in left] == [[1, -2, 3], [2, -4, 6]]


def test_a_kernel_stays_as_it_is() -> None:
    module, kernel = function("k")
    assert as_kernel(module, kernel) == (module, kernel)


@pytest.mark.parametrize(
    ("name", "problem"), [("number", "a result is fp32"), ("early", "it returns from within a branch or loop")]
)
def test_what_no_kernel_can_be_made_of(name: str, problem: str) -> None:
    with pytest.raises(Rejection, match=f"@{name} cannot be made a kernel: {problem}"):
        as_kernel(*function(name))
