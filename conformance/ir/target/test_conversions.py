"""Conversions and operations of bits in kernels of Target IR, operation by operation (language spec, 8; AMB-LANG-193).

They are those of MLIR's dialect llvm: floats are rounded once, to nearest even; integers keep their low bits.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, buffers_after
from tessera_conformance.chapters.ir.kit.target_kernels import TargetKernel
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import float_format
from tessera_conformance.tensors import Tensor

pytestmark = [feature("target-ir-text"), clause("LANG-08-01")]

FLOATS = ("fp16", "bf16", "fp32", "fp64")


def infinities(format_):
    """The codes of both infinities."""
    code = format_.largest_code + 1
    return [code, format_.sign_bit | code]


def words_of(dtype, numbers):
    """The codes of numbers that a dtype has exactly, or of numbers that it rounds once."""
    if dtype in FLOATS:
        return [float_format(dtype).encode(Fraction(number)) for number in numbers]
    return tensor_of(dtype, list(numbers)).words().tolist()


def converted(impl, check, name, source, to, words, target="sm_90"):
    """Return the codes of the results of a conversion of these codes, a lane each."""
    kernel = TargetKernel(target, lanes=len(words))
    value = kernel.op("llvm.load", kernel.at(kernel["x"], kernel.thread, source), gives=source)
    result = kernel.op(name, value, gives=to)
    kernel.op("llvm.store", result, kernel.at(kernel["y"], kernel.thread, to))
    x, y = Tensor.from_words(source, (len(words),), words), Tensor.from_words(to, (len(words),), [0] * len(words))
    return buffers_after(impl, check, kernel, x=x, y=y)[1]


def judge(impl, check, name, source, to, words, expected, target="sm_90"):
    """The results have these codes."""
    actual = converted(impl, check, name, source, to, words, target)
    check.bits(actual, Tensor.from_words(to, (len(expected),), expected))


BETWEEN = 2**53 + 2**29 + 1
"""Nearest in fp32 is 2**53 + 2**30, and 2**53 by way of fp64, which has 2**53 + 2**29."""
INTEGERS = {
    "int64-fp32": [0, 1, -1, BETWEEN, -BETWEEN, 2**24 + 1, 2**63 - 1, -(2**63)],
    "int64-fp64": [0, 2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "int32-fp32": [0, 2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31)],
    "int16-fp32": [0, 1, -1, 2**15 - 1, -(2**15)],
    "int8-fp64": [0, 1, -1, 127, -128],
}


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("dtypes", INTEGERS)
def test_an_integer_becomes_the_nearest_float(impl, check, dtypes, target):
    """llvm.sitofp rounds the integer itself, to nearest even."""
    source, to = dtypes.split("-")
    numbers = INTEGERS[dtypes]
    judge(impl, check, "llvm.sitofp", source, to, words_of(source, numbers), words_of(to, numbers), target)


@pytest.mark.parametrize(("name", "to"), [("uitofp", "fp32"), ("uitofp", "fp64"), ("zext", "int8"), ("zext", "int64")])
def test_a_bool_becomes_zero_or_one(impl, check, name, to):
    """llvm.uitofp and llvm.zext take true for 1."""
    judge(impl, check, f"llvm.{name}", "bool", to, [0, 1, 1, 0], words_of(to, [0, 1, 1, 0]))


BITWISE = {
    "and": [0b1000, 0, 5, 0x12340000, 1],
    "or": [0b1110, -1, -3, 0x1234FFFF, -(2**31) + 1],
    "xor": [0b0110, -1, -8, 0x0000FFFF, -(2**31)],
}
"""Results for pairs of integers, bit by bit."""


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("name", BITWISE)
def test_integers_are_combined_bit_by_bit(impl, check, name, target):
    """llvm.and, llvm.or and llvm.xor of 0b1100 and 0b1010, of -1 and 0, of signs and of halves of words."""
    first, second = [0b1100, -1, 5, 0x12345678, 1], [0b1010, 0, -3, 0x1234A987, -(2**31) + 1]
    kernel = TargetKernel(target, lanes=5, buffers="xyz")
    a, b = (kernel.op("llvm.load", kernel.at(kernel[x], kernel.thread), gives="int32") for x in "xy")
    kernel.op("llvm.store", kernel.integers(name, a, b), kernel.at(kernel["z"], kernel.thread))
    x, y, z = (tensor_of("int32", numbers) for numbers in (first, second, [7] * 5))
    check.bits(buffers_after(impl, check, kernel, x=x, y=y, z=z)[2], tensor_of("int32", BITWISE[name]))


WIDTHS = {
    "sext-int8-int16": [0, 1, -1, 127, -128],
    "sext-int8-int64": [0, 1, -1, 127, -128],
    "sext-int16-int32": [0, -1, 2**15 - 1, -(2**15)],
    "sext-int32-int64": [0, -1, 2**31 - 1, -(2**31)],
    "trunc-int16-int8": [128, -129, 255, 256, 0x1234],
    "trunc-int32-int8": [127, 128, -128, -129, 255, 256, 2**31 - 1],
    "trunc-int32-int16": [2**15 - 1, 2**15, -(2**15) - 1, 2**16, -(2**31)],
    "trunc-int64-int32": [2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, 0x123456789ABCDEF],
}


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("conversion", WIDTHS)
def test_an_integer_keeps_its_low_bits(impl, check, conversion, target):
    """llvm.sext repeats the sign, llvm.trunc drops high bits and saturates nothing."""
    name, source, to = conversion.split("-")
    numbers = WIDTHS[conversion]
    bits = int(to.removeprefix("int"))
    low = [(number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for number in numbers]
    judge(impl, check, f"llvm.{name}", source, to, words_of(source, numbers), words_of(to, low), target)


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    ("source", "to"), [("fp16", "fp32"), ("bf16", "fp32"), ("fp16", "fp64"), ("bf16", "fp64"), ("fp32", "fp64")]
)
def test_a_float_is_the_same_number_in_a_wider_type(impl, check, source, to, target):
    """llvm.fpext keeps subnormals, limits, infinities and the signs of zeros."""
    narrow, wide = float_format(source), float_format(to)
    words = [0, narrow.sign_bit, 1, narrow.sign_bit | 3, narrow.largest_code, *infinities(narrow)]
    words += [word | narrow.sign_bit for word in words_of(source, [Fraction(1, 3)])]
    judge(impl, check, "llvm.fpext", source, to, words, [wide.encode(narrow.decode(word)) for word in words], target)


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    ("source", "to"), [("fp64", "fp32"), ("fp64", "fp16"), ("fp64", "bf16"), ("fp32", "fp16"), ("fp32", "bf16")]
)
def test_a_float_becomes_the_nearest_one_of_a_narrower_type(impl, check, source, to, target):
    """llvm.fptrunc rounds once: ties to even, a little more than a tie up, too much to infinity, too little to zero."""
    wide, narrow = float_format(source), float_format(to)
    one, half = Fraction(1), narrow.epsilon / 2
    numbers = [one + half, one + 3 * half, one + half + wide.epsilon, -one - half - wide.epsilon, Fraction(1, 3)]
    numbers += [narrow.largest, narrow.smallest, -narrow.smallest * Fraction(3, 2), narrow.smallest_normal]
    words = [wide.encode(number) for number in numbers if wide.decode(wide.encode(number)) == number or number < one]
    words += [wide.largest_code, wide.sign_bit | wide.largest_code, wide.sign_bit, *infinities(wide)]
    expected = [narrow.encode(wide.decode(word)) for word in words]
    judge(impl, check, "llvm.fptrunc", source, to, words, expected, target)


@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("source", ["fp32", "fp64"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_float_is_truncated_and_saturates_into_an_integer(impl, check, bits, source, target):
    """llvm.intr.fptosi.sat drops the fraction; what is too large is the largest, what is too small the least, NaN 0."""
    format_, limit = float_format(source), 2 ** (bits - 1)
    numbers = [Fraction(5, 2), Fraction(-5, 2), Fraction(-1, 2), Fraction(limit), Fraction(-limit), Fraction(2 * limit)]
    numbers += [Fraction(-2 * limit - 2), Fraction(2**80), Fraction(-(2**80)), Fraction(limit // 2 + 1)]
    exact = [format_.decode(format_.encode(number)) for number in numbers]
    expected = [min(max(int(number), -limit), limit - 1) for number in exact]
    words = [*(format_.encode(number) for number in numbers), *infinities(format_), format_.nan_code]
    to = f"int{bits}"
    expected_words = words_of(to, [*expected, limit - 1, -limit, 0])
    judge(impl, check, "llvm.intr.fptosi.sat", source, to, words, expected_words, target)
