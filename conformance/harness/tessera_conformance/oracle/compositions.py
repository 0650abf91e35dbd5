"""Short programs of several operators, each operator rounding for itself."""

from __future__ import annotations

from tessera_conformance.oracle.elementwise import add, multiply, transpose
from tessera_conformance.oracle.reductions import matmul
from tessera_conformance.oracle.softmax import softmax
from tessera_conformance.tensors import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    """softmax(q @ transpose(k) * scale) @ v, every step rounded to the operands' type."""
    return matmul(softmax(multiply(matmul(q, transpose(k)), scale)), v)


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c, rounded twice."""
    return add(multiply(a, b), c)


def add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """c + (a @ b): the product is finished and rounded before c is added."""
    return add(c, matmul(a, b))
