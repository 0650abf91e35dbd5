"""Enclosures of the results of all-reduce and of the payloads of compressed collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import gmpy2

from tessera_conformance.oracle import collectives
from tessera_conformance.oracle.bounds.elementwise import ONE_ROUNDING, composed, points, rounded_once, unchanged
from tessera_conformance.oracle.bounds.intervals import (
    DOWN,
    EXACT,
    FAST,
    ZERO,
    Enclosures,
    Interval,
    Steps,
    Unpromised,
    enclosure,
)
from tessera_conformance.oracle.bounds.reductions import sums_along
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.oracle.fields import stacked
from tessera_conformance.oracle.formats import FloatFormat, component_format, float_format, values_of
from tessera_conformance.oracle.reductions import Tree
from tessera_conformance.tensors import Tensor

SINGLE = float_format("fp32")


def _quantize(x: Tensor, *, wire: str, block: int) -> Enclosures:
    return _blockwise(
        [x], wire, block, lambda steps, code, scale: code, f"a scale, a quotient and a rounding to {wire}"
    )


def _error_feedback(g: Tensor, residual: Tensor, *, wire: str, block: int) -> Enclosures:
    def sent(steps: Steps, code: Interval, scale: Interval) -> Interval:
        return steps.rounded(code * scale, SINGLE)

    return _blockwise([g, residual], wire, block, sent, f"a sum sent as {wire}, every step rounded")


def _blockwise(
    inputs: list[Tensor],
    wire: str,
    block: int,
    finish: Callable[[Steps, Interval, Interval], Interval],
    rule: str,
) -> Enclosures:
    """Enclosures of what `finish` makes of the codes and scales of the sum of the inputs."""
    collectives.quantize(inputs[0], wire=wire, block=block)
    terms = [points(x) for x in inputs]
    found: Enclosures = [None] * inputs[0].size
    for places in collectives.blocks(inputs[0].shape, block):
        rows = [[term[place] for place in places] for term in terms]
        try:
            ideal, actual = (_codes(steps, rows, wire, finish) for steps in (EXACT, FAST))
        except Unpromised:
            continue
        for place, exact, sent in zip(places, ideal, actual, strict=True):
            found[place] = enclosure(exact, sent, rule)
    return found


def _codes(
    steps: Steps,
    rows: list[list[Interval | None]],
    wire: str,
    finish: Callable[[Steps, Interval, Interval], Interval],
) -> list[Interval]:
    target = float_format(wire)
    whole = [_sum(steps, parts) for parts in zip(*rows, strict=True)]
    scale = _scale(steps, whole, wire, target)
    largest = gmpy2.mpfr(gmpy2.mpq(target.largest))
    found = []
    for value in whole:
        quotient = steps.quotient(value, scale, SINGLE) if wire != "bf16" else value
        code = steps.rounded(quotient.clipped(-largest, largest), target).clipped(-largest, largest)
        found.append(finish(steps, code, scale))
    return found


def _sum(steps: Steps, parts: tuple[Interval | None, ...]) -> Interval:
    known = [steps.operand(part, SINGLE) for part in parts if part is not None]
    if len(known) < len(parts):
        raise Unpromised("an operand that is not finite")
    return known[0] if len(known) == 1 else steps.rounded(known[0] + known[1], SINGLE)


def _scale(steps: Steps, whole: list[Interval], wire: str, target: FloatFormat) -> Interval:
    one = Interval.around(1)
    if wire == "bf16":
        return one
    sizes = [value.hull(-value) for value in whole]
    lows = [ZERO if x.low <= 0 <= x.high else min(DOWN.abs(x.low), DOWN.abs(x.high)) for x in whole]
    largest = Interval(max(lows), max(size.high for size in sizes))
    if largest.high == 0:
        return one
    scale = steps.quotient(largest, Interval.around(target.largest), SINGLE)
    if scale.low < SINGLE.smallest_normal:
        raise Unpromised("a scale that may be flushed to zero")
    return scale


def _dequantize(codes: Tensor, scales: Tensor, *, block: int) -> Enclosures:
    elements, factors = points(codes), points(scales)
    found: Enclosures = [None] * codes.size
    product = rounded_once(Interval.__mul__)
    for scale, places in zip(factors, collectives.blocks(codes.shape, block), strict=True):
        for place in places:
            operands = [elements[place], scale]
            found[place] = composed(product, operands, SINGLE, SINGLE, SINGLE, ONE_ROUNDING)
    return found


def _all_reduce(*inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None) -> Enclosures:
    """In any order; a narrow sum may be rounded to its dtype at every rank, since that is what travels.

    Of products and means nothing is promised.
    """
    stack = stacked(inputs)
    if op in ("prod", "mean"):
        return [None] * inputs[0].size
    if op != "sum":
        return unchanged(values_of(all_reduce(*inputs, op=op)[0]), component_format(stack.dtype))
    return sums_along(stack, 0, component_format(stack.dtype))


def _top_k(x: Tensor, *, k: int) -> Enclosures:
    return unchanged(values_of(collectives.top_k(x, k=k)[0]), float_format(x.dtype))


RULES: Mapping[str, Callable[..., Enclosures]] = {
    "quantize": _quantize,
    "dequantize": _dequantize,
    "error_feedback": _error_feedback,
    "all_reduce": _all_reduce,
    "top_k": _top_k,
}
"""The rule of each function."""
