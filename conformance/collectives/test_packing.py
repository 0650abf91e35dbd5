"""Tensors in the bytes of a wire and back, asked of a packer alone (collectives specification, 2.4, 2.5, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import pytest

from tessera_conformance.chapters.collectives.kit.readings import recognize_bare_fp8, recognize_rows
from tessera_conformance.chapters.collectives.kit.wires import WHOLE, WIRES, half_steps, of_values, telling
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import Value, finite, float_format, values_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.building import counted

SHAPES = [[()], [(7,)], [(3, 5), (3, 5)], [(0,), (2, 3)], [(1,), (), (4, 1, 3), (2, 0), (9,)]]
"""The shapes of a buffer's tensors: scalars and empty ones among them."""


def round_trip(impl: Any, check: Any, tensors: Sequence[Tensor], **wire: Any) -> tuple[int, list[Tensor]]:
    """The wire form of tensors: its size in bytes, and the tensors that a receiver restores."""
    observed = impl.collectives.pack(inputs=list(tensors), **wire)
    recognize_bare_fp8(check, observed, wire.get("dtype", ""))
    packed = check.returns(observed)["wire"]
    types = [{"dtype": tensor.dtype, "shape": list(tensor.shape)} for tensor in tensors]
    outputs = check.returns(impl.collectives.unpack(wire=packed, tensors=types, **wire))["outputs"]
    check.equal(
        [(output.dtype, output.shape) for output in outputs],
        [(tensor.dtype, tensor.shape) for tensor in tensors],
        "types",
    )
    return len(packed) // 2, outputs


def named(wires: Sequence[str]) -> list[Any]:
    """Wires as parameters, each with the clause that names it."""
    clauses = {"bf16": "COLL-02.5-06", "fp16": "COLL-02.5-07"}
    return [pytest.param(wire, marks=clause(clauses.get(wire, "COLL-02.5-08")), id=wire) for wire in wires]


@feature("wire-packing")
@clause("COLL-02.4-01")
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("shapes", SHAPES, ids=["scalar", "vector", "twins", "empty-first", "five"])
def test_tensors_of_one_buffer_come_apart_again(impl, check, shapes, dtype):
    """Each with its own bits, and on the wire no more bytes than they have together."""
    tensors = [counted(dtype, shape, seed=420 + place, exponents=(-5, 5)) for place, shape in enumerate(shapes)]
    size, outputs = round_trip(impl, check, tensors)
    check.equal(size, sum(len(tensor.data) for tensor in tensors), "bytes on the wire")
    for place, (output, tensor) in enumerate(zip(outputs, tensors, strict=True)):
        check.bits(output, tensor, f"tensor {place}")


@feature("wire-packing")
@clause("COLL-02.4-05")
@pytest.mark.parametrize("wire", list(WIRES))
def test_elements_have_the_bytes_of_the_wire(impl, check, wire):
    """No more and no fewer, for several tensors of a buffer."""
    tensors = [counted("fp32", shape, seed=425) for shape in ((4, 5), (0,), (3,))]
    size, _ = round_trip(impl, check, tensors, dtype=wire)
    check.equal(size, 23 * ELEMENT_FORMATS[WIRES[wire]].word_bytes, "bytes on the wire")


@feature("wire-packing")
@clause("COLL-06-06")
@pytest.mark.parametrize("source", ["fp32", "bf16"])
@pytest.mark.parametrize("wire", named(list(WIRES)))
def test_elements_are_rounded_to_the_wire_once(impl, check, wire, source):
    """Ties, subnormals, overflow, infinities, NaN and signs of zeros included."""
    target, origin = float_format(WIRES[wire]), float_format(source)
    values = list(telling(target))
    tensors = [of_values(source, values[:20]), of_values(source, values[20:])]
    _, outputs = round_trip(impl, check, tensors, dtype=wire)
    for place, (output, tensor) in enumerate(zip(outputs, tensors, strict=True)):
        back = [origin.encode(target.decode(target.encode(value))) for value in values_of(tensor)]
        check.bits(output, Tensor.from_words(source, tensor.shape, back), f"tensor {place}")


@feature("wire-packing")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize(("shape", "block"), [((40,), 8), ((41,), 8), ((3, 5), 4), ((10,), 100), ((5,), 1)])
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
def test_blocks_are_unpacked_within_half_a_step(impl, check, wire, shape, block):
    """Neighbouring blocks differ by binades, so that the scale of another block shows."""
    words = values_of(counted("fp32", shape, seed=431, exponents=(-1, 1)))
    values = [finite(word) * Fraction(2) ** (11 * (place // block) - 60) for place, word in enumerate(words)]
    x = of_values("fp32", list[Value](values), shape)
    data = list(map(finite, values_of(x)))
    size, (output,) = round_trip(impl, check, [x], dtype=wire, qscheme="blockwise", block=block)
    bounds = partial(half_steps, data, WIRES[wire], block)
    recognize_rows(check, output, data, bounds)
    check.within(output, data, bounds(WHOLE), "half a step of the block")
    least = prod(shape) * ELEMENT_FORMATS[WIRES[wire]].word_bytes
    check.true(size >= least, f"a code of each element travels: at least {least} bytes", size)


@feature("wire-packing")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize("wire", ["fp8", "bf16"])
def test_blocks_of_several_tensors_are_unpacked_with_their_own_scales(impl, check, wire):
    """Five tensors whose sizes lie binades apart, with one, two and no blocks: no scale is that of another tensor."""
    shapes, block = [(9,), (2, 4), (0,), (1,), (3, 5)], 8
    tensors = []
    for place, shape in enumerate(shapes):
        words = values_of(counted("fp32", shape, seed=451 + place, exponents=(-1, 1)))
        values = [finite(word) * Fraction(2) ** (9 * place - 20) for word in words]
        tensors.append(of_values("fp32", list[Value](values), shape))
    _, outputs = round_trip(impl, check, tensors, dtype=wire, qscheme="blockwise", block=block)
    for place, (output, tensor) in enumerate(zip(outputs, tensors, strict=True)):
        data = list(map(finite, values_of(tensor)))
        bounds = partial(half_steps, data, WIRES[wire], block)
        recognize_rows(check, output, data, bounds)
        check.within(output, data, bounds(WHOLE), f"half a step of the blocks of tensor {place}")
