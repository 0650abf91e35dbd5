"""One set of math approximations: a function of an element depends on nothing but the element (AMB-LANG-45).

Vector units take elements in groups and what is left over one by one, often by another approximation. Both may lie
within the accuracy that is declared, and yet the same element gives other bits at another place.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import declaring, outputs_in
from tessera_conformance.dsl import returning, type_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

LENGTHS = [1, 2, 3, 7, 8, 9, 31, 33]
LONG = 75
FIRST = 5
"""The first elements of the short tensors in the long one: at no multiple of a vector's width."""

FUNCTIONS = [
    *(pytest.param(name, marks=feature("elementary-functions")) for name in UNARY),
    *(pytest.param(name, marks=feature("activations")) for name in ("sigmoid", "silu", "gelu")),
]
DTYPES = ["fp64", "fp32", "fp16", "bf16"]


def arguments(dtype, count):
    """Positive numbers from 1/8 to 4, of which every function has a value."""
    x = counted(dtype, (count,), seed=411, exponents=(-3, 1))
    positive = x.words() & ((1 << (8 * x.format.word_bytes - 1)) - 1)
    return Tensor(dtype, x.shape, positive.astype(x.words().dtype).tobytes())


def values(impl, check, name, x):
    """Return an operation's result in a func that declares the level of the run, where `fast` is asked for."""
    source = returning(f"op.{name}(X)", f"X: {type_of(x)}")
    (actual,) = outputs_in(impl, check, declaring(source, impl.level), "fast", {"X": x})
    return actual


def part(x, first, shape):
    """Elements from `first` on, in another shape."""
    width, count = x.format.word_bytes, 1
    for extent in shape:
        count *= extent
    return Tensor(x.dtype, shape, x.data[first * width : (first + count) * width])


@clause("LANG-10-07", "LANG-10-11")
@level("deterministic", "strict")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_element_gives_the_same_bits_in_a_tensor_of_any_length(impl, check, name, dtype):
    """Alone, in a short tensor, at another place of a longer one, in a batch, and when asked again."""
    x = arguments(dtype, LONG)
    whole = values(impl, check, name, x)
    for length in LENGTHS:
        short = values(impl, check, name, part(x, FIRST, (length,)))
        check.bits(short, part(whole, FIRST, (length,)), f"{name} of {length} of the elements")
    batch = values(impl, check, name, part(x, 0, (3, 5, 5)))
    check.bits(batch, part(whole, 0, (3, 5, 5)), f"{name} of the elements in three dimensions")
    check.bits(values(impl, check, name, x), whole, f"{name} of the same elements again")


MANY = 4103
"""Elements past the blocks of a library, with a remainder of every vector."""


@clause("LANG-10-07", "LANG-10-11")
@level("deterministic", "strict")
@pytest.mark.parametrize("name", ["softmax", pytest.param("exp", marks=feature("elementary-functions")), FUNCTIONS[-1]])
def test_an_element_of_a_large_tensor_gives_the_bits_that_it_gives_in_a_small_one(impl, check, name):
    """Threads and wide vectors serve large tensors; the rows of a softmax of two elements are as many functions."""
    shape, row = ((MANY, 2), 2) if name == "softmax" else ((MANY,), 1)
    x = counted("fp32", shape, seed=413, exponents=(-3, 1))
    whole = values(impl, check, name, x)
    for first in (0, 2047, MANY - 33):
        few = (33, *shape[1:])
        alone = values(impl, check, name, part(x, first * row, few))
        check.bits(alone, part(whole, first * row, few), f"{name} of the elements from {first} on")


@clause("LANG-10-07", "LANG-10-11")
@level("deterministic", "strict")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_probabilities_alone_and_among_others(impl, check, dtype):
    """The exponentials of a softmax do not depend on what else is computed with them, nor on how often."""
    x = counted(dtype, (9, 13), seed=412, exponents=(-3, 1))
    whole = values(impl, check, "softmax", x)
    for row in range(9):
        alone = values(impl, check, "softmax", part(x, 13 * row, (1, 13)))
        check.bits(alone, part(whole, 13 * row, (1, 13)), f"row {row} alone")
    some = values(impl, check, "softmax", part(x, 13, (7, 13)))
    check.bits(some, part(whole, 13, (7, 13)), "seven of the rows")
    check.bits(values(impl, check, "softmax", x), whole, "all rows again")


@clause("LANG-10-07", "LANG-10-08")
@level("deterministic", "fast")
@feature("elementary-functions")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_keep_to_the_accuracy_that_is_declared(impl, check, name, dtype):
    """No result is further off than the Hello says, nor than 4 units in the last place (AMB-LANG-136)."""
    x = arguments(dtype, 200)
    ulps = min(impl.arithmetic.accuracy(name), bounds.FUNCTION_ULPS)
    flushes = impl.arithmetic.flushes or impl.level == "fast"
    enclosures = bounds.function(name, x, ulps=ulps, flushes=flushes)
    check.enclosed(
        values(impl, check, name, x), enclosures, f"{impl.level}: within {ulps:g} ulp of {name}, as declared"
    )
