"""Edge values of every dtype, which vectors put first."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, prod

from tessera_conformance.oracle.formats import float_format
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import codes, tensor
from tessera_conformance.vectors.counter import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
INTEGERS = ["int8", "int16", "int32", "int64"]
COMPLEX = {"complex64": "fp32", "complex128": "fp64"}
"""The complex dtypes with the dtype of their parts."""

USUAL = 310
"""The seed of elements that edge values come before."""


def pairs(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two vectors in which every element of `a` meets every element of `b`."""
    lefts, rights = a.words().tolist(), b.words().tolist()
    shape = (len(lefts) * len(rights),)
    return (
        codes(a.dtype, shape, [left for left in lefts for _ in rights]),
        codes(b.dtype, shape, [right for _ in lefts for right in rights]),
    )


def float_edges(dtype: str) -> Tensor:
    """Zeros, subnormals, the neighbours of one and of the limits, infinities where the type has them, and NaN."""
    format_ = float_format(dtype)
    epsilon, smallest, normal, largest = format_.epsilon, format_.smallest, format_.smallest_normal, format_.largest
    positive: list[int | Fraction] = [
        smallest,
        3 * smallest,
        normal - smallest,
        normal,
        Fraction(1, 2),
        1,
        1 + epsilon,
        3,
        largest,
    ]
    infinities = [inf, -inf] if format_.has_infinity else []
    return tensor(dtype, [0, -0.0, *positive, *(-number for number in positive[::2]), *infinities, nan])


def integer_edges(dtype: str, *, zero: bool = True) -> Tensor:
    """Small numbers of both signs and the ends of the range."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    return tensor(dtype, [*([0] if zero else []), 1, -1, 2, -3, 7, high, high - 1, -high, -high - 1])


def every_code(dtype: str) -> Tensor:
    """All codes of an 8- or 16-bit dtype, in order."""
    count = 1 << (8 * tensor(dtype, 0).format.word_bytes)
    return codes(dtype, (count,), range(count))


def nearest(dtype: str, *numbers: float | Fraction) -> Tensor:
    """The numbers of `dtype` nearest to each of `numbers`, with the next one below and above."""
    format_ = float_format(dtype)
    found: list[int] = []
    for number in numbers:
        code = format_.encode(Fraction(number))
        found += [
            each for each in (code - 1, code, code + 1) if (each & (format_.sign_bit - 1)) <= format_.largest_code
        ]
    return codes(dtype, (len(found),), found)


def joined(*tensors: Tensor) -> Tensor:
    """Vectors of one dtype, one after another."""
    words = [word for each in tensors for word in each.words().tolist()]
    return codes(tensors[0].dtype, (len(words) // tensors[0].format.words,), words)


def every_element(dtype: str, shape: tuple[int, ...], seed: int = USUAL) -> Tensor:
    """Elements of any dtype to be moved about: edge values first where the seed is the usual one, then counted ones."""
    if dtype in COMPLEX:
        return complex_of(dtype, *(every_element(COMPLEX[dtype], shape, each) for each in (seed, seed + 1)))
    elements = counted(dtype, (prod(shape),), seed)
    if seed == USUAL and dtype != "bool":
        edges = float_edges(dtype) if dtype in FLOATS else integer_edges(dtype)
        elements = joined(edges, elements)
    return codes(dtype, shape, elements.words().tolist()[: prod(shape)])


def complex_of(dtype: str, real: Tensor, imaginary: Tensor) -> Tensor:
    """A complex tensor from its two parts, of one shape."""
    parts = zip(real.words().tolist(), imaginary.words().tolist(), strict=True)
    return codes(dtype, real.shape, [word for pair in parts for word in pair])


def magnitudes(values: Tensor) -> Tensor:
    """The same floats without their signs."""
    sign = float_format(values.dtype).sign_bit
    return codes(values.dtype, values.shape, [word & (sign - 1) for word in values.words().tolist()])
