"""Short programs of several operators, each operator rounding for itself.

A literal factor comes as the text of the program and is rounded once from its decimal value (AMB-LANG-54).
"""

from __future__ import annotations

from fractions import Fraction

from tessera_conformance.oracle.elementwise import add, multiply
from tessera_conformance.oracle.formats import tensor_of
from tessera_conformance.oracle.movement import transpose
from tessera_conformance.oracle.products import matmul
from tessera_conformance.oracle.softmax import softmax
from tessera_conformance.tensors import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, *, factor: str) -> Tensor:
    """softmax(q @ transpose(k) * factor) @ v, every step rounded to the operands' type."""
    return matmul(softmax(scale(matmul(q, transpose(k)), factor=factor)), v)


def scale(a: Tensor, *, factor: str) -> Tensor:
    """a * factor."""
    return multiply(a, tensor_of(a.dtype, (), [Fraction(factor)]))


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c, rounded twice."""
    return add(multiply(a, b), c)


def add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """c + (a @ b): the product is finished and rounded before c is added."""
    return add(c, matmul(a, b))
