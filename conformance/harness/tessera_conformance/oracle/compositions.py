"""Compositions: several operators, attention, normalization, optimizer steps, Fourier transforms, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import ceil, prod
from typing import Any, Literal, TypeAlias

from tessera_conformance.oracle import elementwise, exact
from tessera_conformance.oracle.elementwise import cast, evaluate, multiply, turn
from tessera_conformance.oracle.exact import BadArgument, Complex, FloatFormat, Value
from tessera_conformance.oracle.movement import transpose
from tessera_conformance.oracle.reductions import average, matmul, softmax
from tessera_conformance.oracle.trees import PAIRWISE
from tessera_conformance.tensors import Tensor

# Short programs of several operations, each of which rounds its result, as steps.
#
# A literal is the decimal text of the program, and is rounded once to the dtype of the other operand (AMB-LANG-54). An
# implementation without a parser is asked for the operations one by one (`--via=operations`).


LITERAL = "literal"
"""The literal of the program as an operand."""


@dataclass(frozen=True)
class Step:
    """One operation; an operand is the place of an input, the name of an earlier step, or `LITERAL`."""

    operation: str
    operands: Sequence[int | str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


PROGRAMS: Mapping[str, Sequence[Step]] = {
    "scale": [Step("multiply", [0, LITERAL])],
    "multiply_add": [Step("multiply", [0, 1], name="product"), Step("add", ["product", 2])],
    "add_to_product": [Step("matmul", [0, 1], name="product"), Step("add", [2, "product"])],
    "attention": [
        Step("transpose", [1], name="keys"),
        Step("matmul", [0, "keys"], name="products"),
        Step("multiply", ["products", LITERAL], name="scores"),
        Step("softmax", ["scores"], {"axis": -1}, name="weights"),
        Step("matmul", ["weights", 2]),
    ],
}


def run_program(
    steps: Sequence[Step],
    inputs: Sequence[Tensor],
    factor: str,
    evaluate: Callable[[Step, Sequence[Tensor]], Sequence[Tensor]],
) -> Sequence[Tensor]:
    """Return the results of the last step; `factor` is the literal, and `evaluate` computes one step."""
    values: dict[int | str, Tensor] = dict(enumerate(inputs))
    outputs: Sequence[Tensor] = ()
    for step in steps:
        if LITERAL in step.operands:
            values[LITERAL] = exact.tensor_of(values[step.operands[0]].dtype, (), [Fraction(factor)])
        outputs = evaluate(step, [values[name] for name in step.operands])
        if step.name:
            (values[step.name],) = outputs
    return outputs


# Attention as one operation, which computes everything in the accumulator type and rounds once at the end
# (AMB-LANG-75).


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, causal: bool = False, block: int | None = None
) -> Tensor:
    """softmax(q k' * scale) v of each matrix of a batch; `scale` is 1 / sqrt(D) by default, `block` changes nothing.

    With `causal`, the scores of keys after their query are -inf.
    """
    if causal and q.shape[-2] != k.shape[-2]:
        raise BadArgument("causal", causal, "false where queries and keys are not as many")
    format_ = exact.accumulator_format(q.dtype)
    factor = evaluate("rsqrt", format_, Fraction(q.shape[-1])) if scale is None else Fraction(scale)
    data = b""
    for queries, keys, values in zip(*map(matrices, (q, k, v)), strict=True):
        products = matmul(queries, transpose(keys), out=exact.ACCUMULATORS[q.dtype])
        scores = multiply(products, exact.tensor_of(products.dtype, (), [factor]))
        if causal:
            columns, terms = scores.shape[-1], enumerate(exact.values_of(scores))
            shown = [exact.NEGATIVE_INFINITY if at % columns > at // columns else value for at, value in terms]
            scores = exact.tensor_of(scores.dtype, scores.shape, shown)
        weights = softmax(scores)
        data += matmul(Tensor(values.dtype, weights.shape, weights.data), values, out=q.dtype).data
    return Tensor(q.dtype, (*q.shape[:-1], v.shape[-1]), data)


def matrices(x: Tensor) -> list[Tensor]:
    """Return each matrix of a batch in the accumulator type; tf32 stays tf32, so that `matmul` rounds it."""
    wide = x if x.dtype == "tf32" else exact.tensor_of(exact.ACCUMULATORS[x.dtype], x.shape, exact.values_of(x))
    size = prod(x.shape[-2:]) * wide.format.word_bytes
    parts = (wide.data[size * place : size * (place + 1)] for place in range(prod(x.shape[:-2])))
    return [Tensor(wide.dtype, x.shape[-2:], part) for part in parts]


# Normalization along an axis: every step rounded in the accumulator type, then one rounding to the dtype.
#
# Means follow the canonical tree and are divided by the number of elements; `eps` is an fp64 number, rounded once to
# the accumulator type. A batch norm has running statistics too, and several results.


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, *, axis: int = -1, eps: float = 1e-5) -> Tensor:
    """c * rsqrt(mean(c * c) + eps) * gamma + beta, with c = x - mean(x), from left to right."""
    factors, addends = exact.values_of(gamma), exact.values_of(beta)
    format_ = exact.accumulator_format(x.dtype)

    def normalize(row: Sequence[Value]) -> list[Value]:
        differences = centred(row, average(row, format_), format_)
        return scaled(differences, mean_square(differences, format_), eps, factors, addends, format_)

    return exact.from_rows(x, axis, map(normalize, exact.rows_of(x, axis)))


def rms_norm(x: Tensor, gamma: Tensor, *, axis: int = -1, eps: float = 1e-6) -> Tensor:
    """x * rsqrt(mean(x * x) + eps) * gamma, from left to right."""
    factors, format_ = exact.values_of(gamma), exact.accumulator_format(x.dtype)

    def normalize(row: Sequence[Value]) -> list[Value]:
        nothing = [exact.NEGATIVE_ZERO] * len(row)  # which changes no sum
        return scaled(row, mean_square(row, format_), eps, factors, nothing, format_)

    return exact.from_rows(x, axis, map(normalize, exact.rows_of(x, axis)))


def batch_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    *,
    axis: int = 1,
    momentum: float = 0.1,
    eps: float = 1e-5,
    training: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Every channel normalized, and the running statistics: r * (1 - momentum) + s * momentum of each.

    A channel is a position along the axis, its elements in row-major order. Without `training` the running statistics
    are used, and do not change.
    """
    format_ = exact.accumulator_format(x.dtype)
    results: list[Value] = [exact.ZERO] * x.size
    values, factors, addends = exact.values_of(x), exact.values_of(gamma), exact.values_of(beta)
    means, variances = exact.values_of(running_mean), exact.values_of(running_variance)
    lines = exact.along(x.shape, axis)
    for channel in range(x.shape[axis]):
        places = [line[channel] for line in lines]
        row = [values[place] for place in places]
        middle = average(row, format_) if training else means[channel]
        differences = centred(row, middle, format_)
        spread = mean_square(differences, format_) if training else variances[channel]
        beside = [factors[channel]] * len(places), [addends[channel]] * len(places)
        elements = scaled(differences, spread, eps, *beside, format_)
        for place, element in zip(places, elements, strict=True):
            results[place] = element
        if training:
            means[channel] = moved(means[channel], middle, momentum, format_)
            variances[channel] = moved(variances[channel], spread, momentum, format_)
    return _replaced(x, results), _replaced(running_mean, means), _replaced(running_variance, variances)


def mean_square(row: Sequence[Value], format_: FloatFormat) -> Value:
    """The mean of the squares, each rounded."""
    return average([format_.multiply(value, value) for value in row], format_)


def centred(row: Sequence[Value], middle: Value, format_: FloatFormat) -> list[Value]:
    """Each value less their mean."""
    return [format_.subtract(value, middle) for value in row]


def scaled(
    row: Sequence[Value],
    spread: Value,
    eps: float,
    factors: Sequence[Value],
    addends: Sequence[Value],
    format_: FloatFormat,
) -> list[Value]:
    """Each value times rsqrt(spread + eps) and its factor, plus its addend."""
    if not eps >= 0:
        raise BadArgument("eps", eps, "a number of at least 0")
    root = evaluate("rsqrt", format_, format_.total([spread, format_.round(Fraction(eps))]))
    products = [format_.multiply(format_.multiply(x, root), factor) for x, factor in zip(row, factors, strict=True)]
    return [format_.total(terms) for terms in zip(products, addends, strict=True)]


def moved(old: Value, new: Value, momentum: float, format_: FloatFormat) -> Value:
    """old * (1 - momentum) + new * momentum, the two factors rounded once each."""
    share = Fraction(momentum)
    return format_.total([format_.multiply(old, format_.round(1 - share)), format_.multiply(new, format_.round(share))])


# Steps of optimizers: element by element, every step rounded in the accumulator type; each result rounded once.
#
# A setting such as a learning rate is an fp64 number, rounded once to the accumulator type; so is 1 less a setting.


def sgd(
    parameter: Tensor, gradient: Tensor, velocity: Tensor, *, rate: float, momentum: float = 0.9
) -> tuple[Tensor, Tensor]:
    """velocity = velocity * momentum + gradient; parameter = parameter - velocity * rate."""
    format_ = exact.accumulator_format(parameter.dtype)
    stepped, velocities = [], []
    for p, g, v in zip(exact.values_of(parameter), exact.values_of(gradient), exact.values_of(velocity), strict=True):
        moving = format_.total([format_.multiply(v, format_.round(Fraction(momentum))), g])
        velocities.append(moving)
        stepped.append(format_.subtract(p, format_.multiply(moving, format_.round(Fraction(rate)))))
    return _replaced(parameter, stepped), _replaced(velocity, velocities)


def adamw(
    parameter: Tensor,
    gradient: Tensor,
    m: Tensor,
    v: Tensor,
    step: Tensor,
    *,
    rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    decay: float = 0.01,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of AdamW: the moving averages m and v are each divided by 1 - pow(beta, step) before they are used."""
    format_ = exact.accumulator_format(parameter.dtype)
    (count,) = exact.values_of(step)
    if not isinstance(count, Fraction) or count < 1:
        raise BadArgument("step", count, "a number of at least 1")
    powers = [evaluate("pow", format_, format_.round(Fraction(beta)), format_.round(count)) for beta in (beta1, beta2)]
    parts = [format_.subtract(Fraction(1), power) for power in powers]
    stepped, means, squares = [], [], []
    for p, g, old_mean, old_square in zip(*map(exact.values_of, (parameter, gradient, m, v)), strict=True):
        means.append(moved(g, old_mean, beta1, format_))
        squares.append(moved(format_.multiply(g, g), old_square, beta2, format_))
        mean, square = (format_.divide(x[-1], part) for x, part in zip((means, squares), parts, strict=True))
        root = format_.total([evaluate("sqrt", format_, square), format_.round(Fraction(eps))])
        change = format_.total([format_.divide(mean, root), format_.multiply(p, format_.round(Fraction(decay)))])
        stepped.append(format_.subtract(p, format_.multiply(change, format_.round(Fraction(rate)))))
    return _replaced(parameter, stepped), _replaced(m, means), _replaced(v, squares)


def _replaced(old: Tensor, values: list[Value]) -> Tensor:
    """Return a tensor of the same dtype and shape with other values, rounded once."""
    return exact.tensor_of(old.dtype, old.shape, values)


# The discrete Fourier transform over the last axis, as the reference arithmetic composes it.
#
# For each k the canonical tree over j of x[j] * w[jk mod n], where w[m] = exp(-2 pi i m / n), for the inverse its
# conjugate, has both parts correctly rounded; complex products are (ac - bd, ad + bc), every step rounded; the scale
# comes last, one multiplication of both parts by the correctly rounded factor. A float is a complex number whose
# imaginary part is +0: of fp64 a complex128, of any narrower one a complex64.


Norm: TypeAlias = Literal["ortho", "backward", "forward"]


def fft(x: Tensor, *, norm: Norm = "ortho") -> Tensor:
    """The transform; `norm` names the scaled direction: each by 1/sqrt(n), the inverse by 1/n, or this one by 1/n."""
    return _transform(x, norm, inverse=False)


def ifft(x: Tensor, *, norm: Norm = "ortho") -> Tensor:
    """The inverse transform."""
    return _transform(x, norm, inverse=True)


def scale_factor(n: int, norm: str, inverse: bool, format_: FloatFormat) -> Value | None:
    """Return the last factor of a transform of length n; None if it has none.

    Raises `BadArgument`: there is no such norm.
    """
    if norm not in ("ortho", "backward", "forward"):
        raise BadArgument("norm", norm, "ortho, backward or forward")
    if norm == "ortho":
        return evaluate("rsqrt", format_, Fraction(n))
    return format_.round(Fraction(1, n)) if (norm == "backward") == inverse else None


def rows_to_transform(x: Tensor) -> list[list[Complex]]:
    """The rows along the last axis. Raises `BadArgument`: it is empty or missing."""
    if not x.shape or not x.shape[-1]:
        raise BadArgument("shape", list(x.shape), "a last axis of at least one element")
    return exact.rows_of(x, -1)


def _transform(x: Tensor, norm: str, *, inverse: bool) -> Tensor:
    x = cast(x, dtype=exact.complex_dtype(x.dtype))
    rows, n = rows_to_transform(x), x.shape[-1]
    format_ = exact.component_format(x.dtype)
    factor = scale_factor(n, norm, inverse, format_)
    roots = [turn(m if inverse else -m, n, format_) for m in range(n)]
    tree = PAIRWISE.over(n)
    results: list[Value] = []
    for row, k in product(rows, range(n)):
        terms = [exact.complex_product(element, roots[j * k % n], format_) for j, element in enumerate(row)]
        parts = (tree.folded(list(column).__getitem__, format_.total) for column in zip(*terms, strict=True))
        results.extend(parts if factor is None else (format_.multiply(part, factor) for part in parts))
    return exact.tensor_of(x.dtype, x.shape, results)


# Philox4x32-10, the counter-based generator of the reference arithmetic, and the random operations on it.
#
# Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). The key is the seed and the
# counter holds a block number, low word first, then the stream; word i of a stream is output i mod 4 of block i // 4.
# The index of an element is its row-major one in the whole tensor, of which these functions give the part from
# `offset` on.


WORD = (1 << 32) - 1
LONG = (1 << 64) - 1
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
DOUBLE = exact.float_format("fp64")


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds over a counter of four 32-bit words."""
    a, b, c, d = counter
    low, high = key
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & WORD, (first >> 32) ^ d ^ high, first & WORD
        low, high = (low + WEYL[0]) & WORD, (high + WEYL[1]) & WORD
    return a, b, c, d


def word(seed: int, stream: int, index: int) -> int:
    """Word `index` of a stream of the generator of a seed, both of 64 bits."""
    block, place = divmod(index, 4)
    counter = (block & WORD, block >> 32, stream & WORD, stream >> 32)
    return philox4x32(counter, (seed & WORD, seed >> 32))[place]


def uniform(
    *, seed: int, stream: int = 0, shape: tuple[int, ...] | list[int], dtype: str = "fp32", offset: int = 0
) -> Tensor:
    """Return multiples of 2**-p in [0, 1), p the significand's bits, from the upper bits of a word, of two for fp64."""
    _check(seed, stream, offset)
    format_ = exact.float_format(dtype)
    numbers = [_uniform(seed, stream, offset + place, format_.fraction_bits + 1) for place in range(prod(shape))]
    return exact.tensor_of(dtype, tuple(shape), numbers)


def normal(
    *, seed: int, stream: int = 0, shape: tuple[int, ...] | list[int], dtype: str = "fp32", offset: int = 0
) -> Tensor:
    """Box and Muller's sqrt(-2 log u1) cos(2 pi u2), each step correctly rounded in fp64, then once to the dtype."""
    _check(seed, stream, offset)
    exact.float_format(dtype)
    numbers = [_normal(seed, stream, offset + place) for place in range(prod(shape))]
    return exact.tensor_of(dtype, tuple(shape), numbers)


def dropout(x: Tensor, *, rate: float, seed: int, stream: int = 0, offset: int = 0) -> Tensor:
    """+0 where a word falls below rate * 2**32, elsewhere x / (1 - rate), rounded in the accumulator and once more."""
    _check(seed, stream, offset)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise BadArgument("rate", rate, "a number of at least 0 and below 1")
    format_, share = exact.accumulator_format(x.dtype), Fraction(rate)
    share_kept, threshold = format_.round(1 - share), ceil(share * (1 << 32))
    results: list[Value] = [
        format_.divide(value, share_kept) if word(seed, stream, offset + place) >= threshold else exact.ZERO
        for place, value in enumerate(exact.values_of(x))
    ]
    return _replaced(x, results)


def _uniform(seed: int, stream: int, index: int, bits: int) -> Value:
    if bits <= 32:
        return Fraction(word(seed, stream, index) >> (32 - bits), 1 << bits)
    high, low = word(seed, stream, 2 * index) >> 5, word(seed, stream, 2 * index + 1) >> 6
    return Fraction((high << 26) + low, 1 << 53)


def _normal(seed: int, stream: int, index: int) -> Value:
    """Return an element from two uniform numbers, the first in (0, 1] and the second in [0, 1)."""
    first, second = word(seed, stream, 2 * index), word(seed, stream, 2 * index + 1)
    doubled = DOUBLE.multiply(Fraction(-2), evaluate("log", DOUBLE, Fraction(first + 1, 1 << 32)))
    angle = DOUBLE.multiply(elementwise.two_pi(DOUBLE), Fraction(second, 1 << 32))
    return DOUBLE.multiply(evaluate("sqrt", DOUBLE, doubled), evaluate("cos", DOUBLE, angle))


def _check(seed: int, stream: int, offset: int) -> None:
    for name, value in (("seed", seed), ("stream", stream), ("offset", offset)):
        if type(value) is not int or not 0 <= value <= LONG:
            raise BadArgument(name, value, "an integer of 64 bits that is not negative")
