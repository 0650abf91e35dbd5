"""Collectives, and the compression of what they send: every rank's result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from tessera_conformance.oracle import exact
from tessera_conformance.oracle.exact import (
    BadArgument,
    FloatFormat,
    Value,
    finite,
    float_format,
    is_zero,
    stacked,
    tensor_of,
    values_of,
)
from tessera_conformance.oracle.reductions import Tree, max_, mean, min_, prod, sum_
from tessera_conformance.tensors import Tensor

# Blockwise quantisation, error feedback and the choice of the largest elements, as compressed collectives use them.
#
# Reference arithmetic: blocks of fp32 along the last axis, the last one maybe short; a block's scale takes its largest
# magnitude to the largest value of the wire format, is 1 where that gives 0, the next smaller number where it would
# take that value beyond fp32, and always 1 for bf16; every step is rounded in fp32 and the codes saturate. Error
# feedback is AMB-COLL-25.


WIRES = ("fp8_e4m3", "fp8_e5m2", "fp16", "bf16")
SINGLE = float_format("fp32")
ONE = Fraction(1)


def quantize(x: Tensor, *, wire: str, block: int) -> tuple[Tensor, Tensor]:
    """The codes, of x's shape and the wire format, and the fp32 scale of each block."""
    values = _numbers("x", x)
    target = _wire(wire)
    codes: list[Value] = []
    scales: list[Value] = []
    for places in blocks(x.shape, block):
        scale = _scale([values[place] for place in places], wire, target)
        scales.append(scale)
        codes.extend(_saturated(SINGLE.round(exact.divide(values[place], scale)), target) for place in places)
    return tensor_of(wire, x.shape, codes), tensor_of("fp32", scales_shape(x.shape, block), scales)


def dequantize(codes: Tensor, scales: Tensor, *, block: int) -> Tensor:
    """Codes times the scales of their blocks, rounded in fp32."""
    _wire(codes.dtype)
    expected = scales_shape(codes.shape, block)
    if scales.dtype != "fp32" or scales.shape != expected:
        raise BadArgument("scales", f"{scales.dtype} {list(scales.shape)}", f"fp32 of shape {list(expected)}")
    factors, values = _numbers("scales", scales), values_of(codes)
    results: list[Value] = []
    for scale, places in zip(factors, blocks(codes.shape, block), strict=True):
        results.extend(SINGLE.round(exact.multiply(values[place], scale)) for place in places)
    return tensor_of("fp32", codes.shape, results)


def error_feedback(g: Tensor, residual: Tensor, *, wire: str, block: int) -> tuple[Tensor, Tensor]:
    """Return the part of a gradient and its old residual that is sent, and the new residual."""
    if g.shape != residual.shape:
        raise BadArgument("residual", list(residual.shape), f"the gradient's shape, {list(g.shape)}")
    pairs = zip(_numbers("g", g), _numbers("residual", residual), strict=True)
    whole = tensor_of("fp32", g.shape, [SINGLE.round(exact.add(x, y)) for x, y in pairs])
    sent = dequantize(*quantize(whole, wire=wire, block=block), block=block)
    left = zip(values_of(whole), values_of(sent), strict=True)
    return sent, tensor_of("fp32", g.shape, [exact.subtract(x, y) for x, y in left])


def top_k(x: Tensor, *, k: int) -> tuple[Tensor, Tensor]:
    """The k elements of a flat tensor largest in magnitude and their int32 indices, ascending; ties to the lower."""
    if len(x.shape) != 1:
        raise BadArgument("x", list(x.shape), "a tensor of one axis")
    if type(k) is not int or not 0 <= k <= x.size:
        raise BadArgument("k", k, f"an integer from 0 to {x.size}")
    values = values_of(x)
    if exact.NAN in values:
        raise BadArgument("x", "NaN", "numbers and infinities")
    by_magnitude = sorted(range(x.size), key=lambda place: (-_rank(values[place], x), place))
    chosen = sorted(by_magnitude[:k])
    words = x.words()
    return Tensor.from_words(x.dtype, (k,), [int(words[place]) for place in chosen]), Tensor.from_words(
        "int32", (k,), chosen
    )


def blocks(shape: tuple[int, ...], block: int) -> Iterator[list[int]]:
    """The flat places of each block, in row-major order of the scales."""
    length = _length(shape, block)
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    for row in range(rows):
        for start in range(0, length, block):
            yield [row * length + place for place in range(start, min(start + block, length))]


def scales_shape(shape: tuple[int, ...], block: int) -> tuple[int, ...]:
    """The shape of the scales: one for each block along the last axis."""
    return (*shape[:-1], -(-_length(shape, block) // block))


def _saturated(value: Value, target: FloatFormat) -> Value:
    """Data are finite, so that a code beyond the largest is an overflow, in bf16 too."""
    code = target.round(value)
    if not exact.is_infinite(code):
        return code
    return -target.largest if exact.is_negative(code) else target.largest


def _length(shape: tuple[int, ...], block: int) -> int:
    if type(block) is not int or block < 1:
        raise BadArgument("block", block, "an integer of at least 1")
    if not shape:
        raise BadArgument("shape", list(shape), "at least one axis")
    return shape[-1]


def _scale(values: list[Value], wire: str, target: FloatFormat) -> Value:
    if wire == "bf16":
        return ONE
    largest = max(abs(finite(value)) for value in values)
    scale = SINGLE.round(largest / target.largest)
    if exact.is_infinite(SINGLE.round(finite(scale) * target.largest)):
        return SINGLE.decode(SINGLE.encode(scale) - 1)
    return ONE if is_zero(scale) else scale


def _rank(value: Value, x: Tensor) -> Fraction:
    """The magnitude, with the infinities beyond every number of the type."""
    return 2 * float_format(x.dtype).largest if exact.is_infinite(value) else abs(finite(value))


def _wire(wire: str) -> FloatFormat:
    if wire not in WIRES:
        raise BadArgument("wire", wire, f"one of {', '.join(WIRES)}")
    return float_format(wire)


def _numbers(name: str, x: Tensor) -> list[Value]:
    if x.dtype != "fp32":
        raise BadArgument(name, x.dtype, "fp32")
    values = values_of(x)
    if any(value is exact.NAN or exact.is_infinite(value) for value in values):
        raise BadArgument(name, "an infinity or NaN", "finite numbers", "AMB-COLL-25")
    return values


# Collectives: what every rank holds afterwards.
#
# Reference arithmetic: contributions are combined in the accumulator type over the canonical tree in the order of the
# ranks, and rounded once (LANG-15-10, RT-13-01). `algorithm` says how they travel, which changes nothing
# (LANG-09-06).


_ALONG_A_TREE: dict[str, Callable[..., Tensor]] = {"sum": sum_, "prod": prod, "mean": mean}
_EXTREMES: dict[str, Callable[[Tensor, int], Tensor]] = {"max": max_, "min": min_}


def all_reduce(
    *inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """The same tensor for each rank; a sum, product or mean follows a tree (AMB-COLL-31), an extreme none."""
    stack = stacked(inputs)
    if op not in (*_ALONG_A_TREE, *_EXTREMES):
        raise BadArgument("op", op, "sum, prod, mean, max or min")
    result = _ALONG_A_TREE[op](stack, 0, tree=tree) if op in _ALONG_A_TREE else _EXTREMES[op](stack, 0)
    return (result,) * len(inputs)


def reduce_scatter(
    *inputs: Tensor, op: str = "sum", tree: Tree = "pairwise", algorithm: str | None = None
) -> tuple[Tensor, ...]:
    """Rank r of n has the elements from r * count // n up to (r + 1) * count // n of the reduction (AMB-RT-04)."""
    whole, ranks = all_reduce(*inputs, op=op, tree=tree)[0], len(inputs)
    ends = [rank * whole.size // ranks for rank in range(ranks + 1)]
    return tuple(_run(whole, first, last) for first, last in pairwise(ends))


def all_gather(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Every rank has the contributions of all, in order."""
    return (_joined(inputs),) * len(inputs)


def all_to_all(*inputs: Tensor, algorithm: str | None = None) -> tuple[Tensor, ...]:
    """Block s of the input of rank r is block r of the output of rank s (AMB-COLL-10); blocks are of one size."""
    ranks, count = len(inputs), inputs[0].size
    if count % ranks:
        raise BadArgument("inputs", count, f"a multiple of {ranks} elements each")
    block = count // ranks
    return tuple(_joined([_run(x, rank * block, (rank + 1) * block) for x in inputs]) for rank in range(ranks))


def _run(x: Tensor, first: int, last: int) -> Tensor:
    """Consecutive elements of a flat tensor."""
    size = len(x.data) // max(x.size, 1)
    return Tensor(x.dtype, (last - first,), x.data[first * size : last * size])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Flat tensors one after the other."""
    return Tensor(parts[0].dtype, (sum(part.size for part in parts),), b"".join(part.data for part in parts))
