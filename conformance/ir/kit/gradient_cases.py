"""Cases of gradients: a program, its operands, and the gradients that it returns, exactly.

The sign of a zero is left out: no text gives the sign of a gradient without contributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tessera_conformance.check import Check
from tessera_conformance.dsl import Values, func, module, tensor_of, type_of
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

from .programs import evaluate


def without_signed_zeros(found: Any) -> Any:
    """Return a tensor of floats with every zero positive; any other value is unchanged."""
    if not isinstance(found, Tensor) or not found.format.is_float:
        return found
    words = found.words()
    sign = words.dtype.type(1 << (8 * found.format.word_bytes - 1))
    return Tensor(found.dtype, found.shape, np.where(words == sign, words.dtype.type(0), words).tobytes())


def judge_results(
    impl: Implementation,
    check: Check,
    statements: Sequence[str],
    operands: Mapping[str, Tensor],
    expected: Sequence[Tensor],
    *,
    helpers: Sequence[str] = (),
) -> None:
    """Check that a func of these statements over operands, beside other funcs, returns these tensors."""
    parameters = ", ".join(f"{name}: {type_of(given)}" for name, given in operands.items())
    source = module(*helpers, func(*statements, parameters=parameters))
    outputs = evaluate(impl, check, source, "f", **operands)
    check.equal(len(outputs), len(expected), "the number of returned values")
    for number, (actual, wanted) in enumerate(zip(outputs, expected, strict=True)):
        check.bits(without_signed_zeros(actual), wanted, f"result {number}")


def judge_gradients(
    impl: Implementation,
    check: Check,
    expression: str,
    operands: Mapping[str, Values | Tensor],
    expected: Mapping[str, Values],
    dtype: str = "fp32",
    *,
    before: Sequence[str] = (),
    helpers: Sequence[str] = (),
) -> None:
    """Check the gradients of the sum of an expression's elements with respect to the operands in `expected`.

    Operands that are no tensors yet become tensors of `dtype`; `before` are statements before the expression.
    """
    given = {name: x if isinstance(x, Tensor) else tensor_of(dtype, x) for name, x in operands.items()}
    gradients = [f"let Grad{name}: {type_of(given[name])} = op.grad({expression}, {name});" for name in expected]
    returned = f"return {', '.join(f'Grad{name}' for name in expected)};"
    wanted = [tensor_of(given[name].dtype, values) for name, values in expected.items()]
    judge_results(impl, check, [*before, *gradients, returned], given, wanted, helpers=helpers)
