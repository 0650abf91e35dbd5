"""Blockwise quantisation and error feedback, as compressed collectives use them (AMB-COLL-25), on exact numbers.

Blocks of fp32 lie along the last axis; the last one may be short. A block's scale maps its largest magnitude to the
largest value of the wire format. It is 1 where that gives 0, the next smaller number where it would take that value
beyond fp32, and always 1 for bf16. Every step is rounded in fp32, and the codes saturate.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import Value, finite, float_format, is_zero, tensor_of, values_of
from tessera_conformance.tensors import Tensor

__all__ = ["WIRES", "error_feedback"]

WIRES = ("fp8_e4m3", "fp8_e5m2", "fp16", "bf16")
SINGLE = float_format("fp32")
ONE = Fraction(1)


def error_feedback(g: Tensor, residual: Tensor, *, wire: str, block: int) -> tuple[Tensor, Tensor]:
    """Return the part of a gradient and its old residual that is sent, and the new residual."""
    pairs = zip(values_of(g), values_of(residual), strict=True)
    whole = [SINGLE.round(exact.add(x, y)) for x, y in pairs]
    sent: list[Value] = []
    for places in _blocks(g.shape, block):
        sent += _sent([whole[place] for place in places], wire)
    left = [exact.subtract(x, y) for x, y in zip(whole, sent, strict=True)]
    return tensor_of("fp32", g.shape, sent), tensor_of("fp32", g.shape, left)


def _sent(values: list[Value], wire: str) -> list[Value]:
    """Return the values of a block on arrival: codes of the wire format times the scale."""
    scale = _scale(values, wire)
    codes = (_saturated(SINGLE.round(exact.divide(value, scale)), wire) for value in values)
    return [SINGLE.round(exact.multiply(code, scale)) for code in codes]


def _blocks(shape: tuple[int, ...], block: int) -> Iterator[range]:
    """Return the flat places of each block, row-major."""
    length = shape[-1]
    for row in range(prod(shape[:-1])):
        for start in range(0, length, block):
            yield range(row * length + start, row * length + min(start + block, length))


def _saturated(value: Value, wire: str) -> Value:
    """Return the saturated code: data are finite, so that a larger code is an overflow, in bf16 too."""
    target = float_format(wire)
    code = target.round(value)
    if not exact.is_infinite(code):
        return code
    return -target.largest if exact.is_negative(code) else target.largest


def _scale(values: list[Value], wire: str) -> Value:
    largest = float_format(wire).largest
    scale = SINGLE.round(max(abs(finite(value)) for value in values) / largest)
    if wire == "bf16" or is_zero(scale):
        return ONE
    if exact.is_infinite(SINGLE.round(finite(scale) * largest)):
        return SINGLE.decode(SINGLE.encode(scale) - 1)
    return scale
