"""The elements of operands in golden vectors: edge values of every dtype first, all codes, all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import COMPLEX, FLOATS, codes, complex_of, counted, float_edges, tensor

USUAL = 310
"""The seed of elements that follow edge values."""


def require_different(results: Sequence[Tensor], why: str) -> None:
    """Require that the data of a case distinguish ways of computing: every two results differ.

    Raises `ValueError`: two of them are equal, so the case would not show what it claims.
    """
    if len({result.data for result in results}) < len(results):
        raise ValueError(f"the data do not distinguish: {why}")


def pairs(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two vectors that pair every element of `a` with every element of `b`."""
    lefts, rights = a.words().tolist(), b.words().tolist()
    shape = (len(lefts) * len(rights),)
    return (
        codes(a.dtype, shape, [left for left in lefts for _ in rights]),
        codes(b.dtype, shape, [right for _ in lefts for right in rights]),
    )


def integer_edges(dtype: str, *, zero: bool = True) -> Tensor:
    """Small numbers of both signs and the ends of the range."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    return tensor(dtype, [*([0] if zero else []), 1, -1, 2, -3, 7, high, high - 1, -high, -high - 1])


def every_code(dtype: str) -> Tensor:
    """Return all codes of an 8- or 16-bit dtype, in order."""
    count = 1 << (8 * tensor(dtype, 0).format.word_bytes)
    return codes(dtype, (count,), range(count))


def nearest(dtype: str, *numbers: float | Fraction) -> Tensor:
    """Return the numbers of `dtype` nearest to each of `numbers`, with the next one below and above."""
    format_ = float_format(dtype)
    neighbours: list[int] = []
    for number in numbers:
        code = format_.encode(Fraction(number))
        neighbours += [
            neighbour
            for neighbour in (code - 1, code, code + 1)
            if (neighbour & (format_.sign_bit - 1)) <= format_.largest_code
        ]
    return codes(dtype, (len(neighbours),), neighbours)


def joined(*tensors: Tensor) -> Tensor:
    """Return vectors of one dtype, one after another."""
    words = [word for tensor in tensors for word in tensor.words().tolist()]
    return codes(tensors[0].dtype, (len(words) // tensors[0].format.words,), words)


def every_element(dtype: str, shape: tuple[int, ...], seed: int = USUAL) -> Tensor:
    """Return elements of any dtype to move: edge values first if the seed is the usual one, then counted ones."""
    if dtype in COMPLEX:
        return complex_of(dtype, *(every_element(COMPLEX[dtype], shape, seed_) for seed_ in (seed, seed + 1)))
    elements = counted(dtype, (prod(shape),), seed)
    if seed == USUAL and dtype != "bool":
        edges = float_edges(dtype) if dtype in FLOATS else integer_edges(dtype)
        elements = joined(edges, elements)
    return codes(dtype, shape, elements.words().tolist()[: prod(shape)])


def magnitudes(values: Tensor) -> Tensor:
    """Return the same floats without their signs."""
    sign = float_format(values.dtype).sign_bit
    return codes(values.dtype, values.shape, [word & (sign - 1) for word in values.words().tolist()])
