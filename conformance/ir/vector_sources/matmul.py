"""Matrix products: the order of accumulation, every rounding on the way, and the edges of each type.

The reference: from +0, for ascending k, the product is rounded and then the sum, in the accumulator type; one final
rounding. Data that are meant to tell ways of computing apart are checked to do so, with the oracle, whenever this
module is loaded.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, prod
from typing import Any

from tessera_conformance import oracle
from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.ir.kit import questions
from tessera_conformance.chapters.ir.kit.elements import joined, require_different
from tessera_conformance.oracle.exact import ACCUMULATORS, float_format
from tessera_conformance.oracle.trees import FOLD, Order
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import Question, Topic, codes, counted, tensor

topic = Topic(__doc__)

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
NARROW = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"]
INTEGERS = ["int8", "int16", "int32", "int64"]
WITH_INFINITY = ["fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]


def power(exponent: int) -> Fraction:
    """Two to an integer power."""
    return Fraction(2) ** exponent


def wide(dtype: str) -> tuple[int, int]:
    """A range of exponents so wide that sums round at most steps, within every type's own range."""
    return (-6, 6) if dtype in NARROW else (-9, 9)


@topic.vector("{dtype}/small", "LANG-15-15", dtype=[*FLOATS, *INTEGERS])
def small(dtype: str) -> Question:
    """Two by three times three by two, numbers small enough that every step is exact in every type."""
    return questions.matmul(tensor(dtype, [[1, 2, 3], [-1, 0, 2]]), tensor(dtype, [[2, -1], [0, 1], [1, 3]]))


@topic.vector("{dtype}/operator", dtype=["bf16", "fp32", "int32"])
def operator(dtype: str) -> Question:
    """The sign @ is the same operation as op.matmul."""
    return questions.matmul_operator(counted(dtype, (3, 5), seed=11), counted(dtype, (5, 2), seed=12))


@topic.vector("{dtype}/k-{k}", dtype=[*FLOATS, *INTEGERS], k=["1", "7", "13"])
def k_tail(dtype: str, k: str) -> Question:
    """An inner extent that is no multiple of a tile: the tail takes part, and nothing else does."""
    return questions.matmul(counted(dtype, (3, int(k)), seed=21), counted(dtype, (int(k), 5), seed=22))


@topic.vector("{dtype}/k-0", dtype=["bf16", "fp32", "fp64", "int32"])
def nothing_to_sum(dtype: str) -> Question:
    """Without anything to add up, the accumulator's +0 is the result."""
    return questions.matmul(Tensor(dtype, (2, 0), b""), Tensor(dtype, (0, 3), b""))


@topic.vector("{dtype}/no-rows", dtype=["bf16", "fp32", "int32"])
def no_rows(dtype: str) -> Question:
    """A product without rows is a tensor without elements."""
    return questions.matmul(Tensor(dtype, (0, 3), b""), counted(dtype, (3, 2), seed=23))


@topic.vector("{dtype}/batched", dtype=["bf16", "fp32", "int32"])
def batched(dtype: str) -> Question:
    """Leading dimensions, here 2 and 3, name independent products."""
    return questions.matmul(counted(dtype, (2, 3, 2, 5), seed=24), counted(dtype, (2, 3, 5, 4), seed=25))


def before_infinities(x: Tensor) -> Tensor:
    """A matrix, and behind it one of infinities and NaN."""
    filled = tensor(x.dtype, [(inf, nan)[place % 2] for place in range(prod(x.shape))])
    return codes(x.dtype, (2, *x.shape), joined(x, filled).words().tolist())


@topic.vector("{dtype}/infinities-behind", dtype=["bf16", "fp32"])
def infinities_behind(dtype: str) -> Question:
    """Behind a finite product lies one of infinities and NaN: neither tail of the first one reaches them."""
    a, b = counted(dtype, (3, 13), seed=26), counted(dtype, (13, 5), seed=27)
    return questions.matmul(before_infinities(a), before_infinities(b))


@topic.vector("{dtype}/larger", dtype=[*FLOATS, *INTEGERS])
def larger(dtype: str) -> Question:
    """Sixteen by thirty-two times thirty-two by sixteen, over a wide range of exponents."""
    return questions.matmul(counted(dtype, (16, 32), 31, wide(dtype)), counted(dtype, (32, 16), 32, wide(dtype)))


@topic.vector(
    "{dtype}/{size}", "LANG-10-06", "LANG-10-01", dtype=["bf16", "fp32", "fp64", "fp16"], size=["33x47x65", "70x36x58"]
)
def past_tiles(dtype: str, size: str) -> Question:
    """Rows, inner extent and columns past 32 or 64, with a remainder in each: M by K times K by N. A K that is split
    in two gives other numbers.
    """
    m, k, n = (int(extent) for extent in size.split("x"))
    a, b = counted(dtype, (m, k), 37, wide(dtype)), counted(dtype, (k, n), 38, wide(dtype))
    if dtype == "fp32":
        split = [_fold(0, k // 2), _fold(k // 2, k)]
        require_different([oracle.matmul(a, b), oracle.matmul(a, b, tree=split)], "one left fold, and one of each half")
    return questions.matmul(a, b)


def fused(a: Tensor, b: Tensor) -> Tensor:
    """The product by fused multiply-adds."""
    return replay.matmul(a, b, FOLD, canonical(a.dtype).but(product="fused"))


def _fold(first: int, stop: int) -> Order:
    """A left fold of some leaves."""
    total: Any = first
    for leaf in range(first + 1, stop):
        total = [total, leaf]
    return total


@topic.vector("{dtype}/to-fp32", dtype=NARROW)
def to_fp32(dtype: str) -> Question:
    """Asking for an fp32 result shows the accumulator itself."""
    a, b = counted(dtype, (8, 48), 33, wide(dtype)), counted(dtype, (48, 8), 34, wide(dtype))
    return questions.matmul(a, b, "fp32")


@topic.vector("fp32/to-bf16")
def to_narrower() -> Question:
    """Asking for a bf16 result rounds the fp32 accumulator once."""
    return questions.matmul(counted("fp32", (4, 9), seed=35), counted("fp32", (9, 4), seed=36), "bf16")


@topic.vector("{dtype}/swallowed-ones", "LANG-10-06", "LANG-10-01", dtype=FLOATS)
def swallowed_ones(dtype: str) -> Question:
    """One large term, two units, minus the large term: the left fold loses both units, the pairwise tree one, an exact
    or backward sum none.
    """
    precision = float_format(ACCUMULATORS[dtype]).fraction_bits + 1
    unit, large, larger_ = power(-4), power(precision // 2 - 4), power(precision - precision // 2 - 4)
    a, b = tensor(dtype, [[large, unit, unit, -large]]), tensor(dtype, [[larger_], [unit], [unit], [larger_]])
    orders = [oracle.matmul(a, b, tree=order) for order in ("fold", "pairwise", "backward")]
    require_different(orders, "left fold, pairwise tree and backward fold")
    return questions.matmul(a, b)


@topic.vector("{dtype}/left-fold", "LANG-10-06", "LANG-10-01", dtype=FLOATS)
def left_fold(dtype: str) -> Question:
    """Forty-eight terms over a wide range of exponents, whose left fold, backward fold and pairwise tree differ."""
    a, b = counted(dtype, (4, 48), 41, wide(dtype)), counted(dtype, (48, 4), 42, wide(dtype))
    out = "fp32" if dtype in NARROW else None
    orders = [oracle.matmul(a, b, out=out, tree=order) for order in ("fold", "pairwise", "backward")]
    require_different(orders, "left fold, pairwise tree and backward fold")
    return questions.matmul(a, b, out)


@topic.vector("{dtype}/rounded-product", "LANG-10-01", dtype=["fp32", "fp64"])
def rounded_product(dtype: str) -> Question:
    """The square of 1 + h after -1: its last bit is rounded away before the sum; a fused multiply-add keeps it."""
    h = power(-(float_format(dtype).fraction_bits // 2 + 1))
    a, b = tensor(dtype, [[-1, 1 + h]]), tensor(dtype, [[1], [1 + h]])
    require_different([oracle.matmul(a, b), fused(a, b)], "rounded and fused products")
    return questions.matmul(a, b)


@topic.vector("{dtype}/rounded-products", "LANG-10-01", dtype=["fp32", "fp64"])
def rounded_products(dtype: str) -> Question:
    """Thirteen products with full significands: rounding each of them and fusing them give different sums."""
    a, b = counted(dtype, (4, 13), seed=43), counted(dtype, (13, 4), seed=44)
    require_different([oracle.matmul(a, b), fused(a, b)], "rounded and fused products")
    return questions.matmul(a, b)


@topic.vector("{dtype}/wide-accumulator", dtype=NARROW)
def wide_accumulator(dtype: str) -> Question:
    """Eight units on top of the first number whose neighbour is two away: an accumulator of the operands' type loses
    every one of them, fp32 none.
    """
    large = 2 / float_format(dtype).epsilon
    a, b = tensor(dtype, [[large, *[1] * 8]]), tensor(dtype, [[1]] * 9)
    require_different([oracle.matmul(a, b), oracle.matmul(a, b, accumulator=dtype)], "wide and narrow accumulator")
    return questions.matmul(a, b)


@topic.vector("{dtype}/ties", dtype=[dtype for dtype in FLOATS if dtype != "tf32"])
def ties(dtype: str) -> Question:
    """Halfway between two numbers the even one is the result: downwards, upwards, and with either sign."""
    epsilon = float_format(dtype).epsilon
    rows = [[sign, sign * step * epsilon, sign * epsilon / 2] for sign in (1, -1) for step in (0, 1, 2, 3)]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1]] * 3))


@topic.vector("{dtype}/just-beside-a-tie", dtype=NARROW)
def just_beside_a_tie(dtype: str) -> Question:
    """A little above and a little below halfway, seen only by one rounding from fp32; an intermediate type would make a
    tie of it.
    """
    half = float_format(dtype).epsilon / 2
    rows = [[1, half, power(-8)], [1, half, -power(-8)], [-1, -half, -power(-8)], [1 + 2 * half, half, -power(-8)]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1], [1], [power(-8)]]))


@topic.vector("{dtype}/overflow-threshold", dtype=[dtype for dtype in FLOATS if dtype != "tf32"])
def overflow_threshold(dtype: str) -> Question:
    """Around half a step beyond the largest value: fp8_e4m3 keeps 464 at 448, wider types round up to infinity, and
    both 8-bit types saturate whatever lies beyond.
    """
    format_ = float_format(dtype)
    largest = format_.largest
    step = power(format_.bias - format_.fraction_bits + (0 if format_.has_infinity else 1))
    rows = [[sign * largest, sign * step * part] for sign in (1, -1) for part in (0, power(-2), power(-1), 1, 2)]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1], [1]]))


@topic.vector("fp8_e4m3/above-464")
def above_464() -> Question:
    """464 itself rounds to 448; the next larger sums saturate to the same 448, never to NaN."""
    rows = [[448, 16, 0], [448, 16, power(-9)], [448, 28, 4], [-448, -16, 0], [-448, -16, -power(-9)], [448, 448, 448]]
    return questions.matmul(tensor("fp8_e4m3", rows), tensor("fp8_e4m3", [[1], [1], [1]]))


@topic.vector("{dtype}/passing-overflow", dtype=[dtype for dtype in FLOATS if dtype != "tf32"])
def passing_overflow(dtype: str) -> Question:
    """Twice the largest value, then minus it: where the accumulator holds the sum, the result is the largest value, and
    where it overflows on the way, infinite it stays.
    """
    largest = float_format(dtype).largest
    return questions.matmul(tensor(dtype, [[largest, largest, -largest]]), tensor(dtype, [[1], [1], [1]]))


@topic.vector("{dtype}/negative-zero", dtype=FLOATS)
def negative_zero(dtype: str) -> Question:
    """A product of -0 is added to the accumulator's +0, and terms that cancel leave +0: no result is -0."""
    rows = [[-0.0, -0.0], [1, -1], [-0.0, 0.0], [0, 0]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1], [1]]))


@topic.vector("{dtype}/underflow", dtype=FLOATS)
def underflow(dtype: str) -> Question:
    """Half of the smallest value: a narrow type's final rounding keeps the sign and gives -0, while a product that
    underflows in the accumulator type is added to +0 and gives +0.
    """
    smallest = float_format(dtype).smallest if dtype != "tf32" else float_format(dtype).smallest_normal
    scale = power(-1) if dtype != "tf32" else power(-24)
    return questions.matmul(tensor(dtype, [[smallest], [-smallest], [0]]), tensor(dtype, [[scale]]))


@topic.vector("{dtype}/subnormals", dtype=[dtype for dtype in FLOATS if dtype != "tf32"])
def subnormals(dtype: str) -> Question:
    """Subnormal operands and results count: nothing is flushed to zero."""
    smallest, normal = float_format(dtype).smallest, float_format(dtype).smallest_normal
    rows = [[smallest, 0], [3 * smallest, 0], [normal - smallest, 0], [normal, smallest], [normal, -smallest]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1, 2, -1], [1, 1, 1]]))


@topic.vector("{dtype}/infinities", dtype=WITH_INFINITY)
def infinities(dtype: str) -> Question:
    """An infinity times a number, times zero, and against its opposite; rows without one are not touched. As a result,
    an infinity saturates in fp8_e5m2 like any overflow.
    """
    rows = [[inf, 1], [-inf, 1], [inf, inf], [inf, -inf], [1, 2]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1, 0, -1], [1, 1, 1]]))


@topic.vector("{dtype}/nan", dtype=FLOATS)
def nan_stays_in_its_row(dtype: str) -> Question:
    """A NaN reaches its own row or column of the result and nothing else, times zero too."""
    return questions.matmul(tensor(dtype, [[1, nan], [1, 2]]), tensor(dtype, [[1, nan, 0], [0, 1, 1]]))


@topic.vector("tf32/operand-rounding")
def tf32_operands() -> Question:
    """Operands are rounded to ten fraction bits, ties to even; just above a tie they round up."""
    e = power(-11)
    rows = [[1 + e], [1 + 3 * e], [1 + e + power(-23)], [1 + e - power(-23)], [-1 - 3 * e]]
    a, b = tensor("tf32", rows), tensor("tf32", [[1, 1 + e + power(-23)]])
    unrounded = oracle.matmul(tensor("fp32", rows), tensor("fp32", [[1, 1 + e + power(-23)]]))
    require_different([oracle.matmul(a, b), unrounded], "rounded and unrounded operands")
    return questions.matmul(a, b)


@topic.vector("tf32/result-is-fp32")
def tf32_result() -> Question:
    """The result is not rounded to ten fraction bits: the square of 1 + 2**-10 keeps its last bit."""
    return questions.matmul(tensor("tf32", [[1 + power(-10)]]), tensor("tf32", [[1 + power(-10)]]))


@topic.vector("{dtype}/wraps", dtype=INTEGERS)
def wraps(dtype: str) -> Question:
    """Sums beyond the range wrap, in the accumulator and into the result; nothing saturates."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    rows = [[high, 1], [high, high], [-high - 1, -1], [-high - 1, -high - 1]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[1, 2, high], [1, -1, high]]))


@topic.vector("{dtype}/to-int32", dtype=["int8", "int16"])
def to_int32(dtype: str) -> Question:
    """Asking for an int32 result shows the accumulator; for int16 it has wrapped itself."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    rows = [[high, high, high], [-high - 1, -high - 1, -high - 1]]
    return questions.matmul(tensor(dtype, rows), tensor(dtype, [[high, 1], [high, 2], [high, 3]]), "int32")
