"""Short programs of several operators, each operator rounding for itself, and attention as one operation.

A literal factor comes as the text of the program and is rounded once from its decimal value (AMB-LANG-54). Attention as
one operation computes everything in the accumulator type and rounds once at the end (AMB-LANG-75).
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

from tessera_conformance.oracle.elementwise import add, multiply
from tessera_conformance.oracle.errors import BadArgument
from tessera_conformance.oracle.exact import NEGATIVE_INFINITY
from tessera_conformance.oracle.formats import ACCUMULATORS, accumulator_format, tensor_of, values_of
from tessera_conformance.oracle.functions import evaluate
from tessera_conformance.oracle.movement import transpose
from tessera_conformance.oracle.products import matmul
from tessera_conformance.oracle.reductions import softmax
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


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, causal: bool = False, block: int | None = None
) -> Tensor:
    """softmax(q k' * scale) v of each matrix of a batch; `scale` is 1 / sqrt(D) by default, `block` changes nothing.

    With `causal`, the scores of keys after their query are -inf.
    """
    if causal and q.shape[-2] != k.shape[-2]:
        raise BadArgument("causal", causal, "false where queries and keys are not as many")
    format_ = accumulator_format(q.dtype)
    factor = evaluate("rsqrt", format_, Fraction(q.shape[-1])) if scale is None else Fraction(scale)
    data = b""
    for queries, keys, values in zip(*map(matrices, (q, k, v)), strict=True):
        products = matmul(queries, transpose(keys), out=ACCUMULATORS[q.dtype])
        scores = multiply(products, tensor_of(products.dtype, (), [factor]))
        weights = softmax(_masked(scores) if causal else scores)
        data += matmul(Tensor(values.dtype, weights.shape, weights.data), values, out=q.dtype).data
    return Tensor(q.dtype, (*q.shape[:-1], v.shape[-1]), data)


def matrices(x: Tensor) -> list[Tensor]:
    """Each matrix of a batch, in the accumulator type; tf32 is stored as that, and stays for `matmul` to see."""
    wide = x if x.dtype == "tf32" else tensor_of(ACCUMULATORS[x.dtype], x.shape, values_of(x))
    size = prod(x.shape[-2:]) * wide.format.word_bytes
    parts = (wide.data[size * place : size * (place + 1)] for place in range(prod(x.shape[:-2])))
    return [Tensor(wide.dtype, x.shape[-2:], part) for part in parts]


def _masked(scores: Tensor) -> Tensor:
    """-inf above the diagonal."""
    values, columns = values_of(scores), scores.shape[-1]
    hidden = [NEGATIVE_INFINITY if place % columns > place // columns else each for place, each in enumerate(values)]
    return tensor_of(scores.dtype, scores.shape, hidden)
