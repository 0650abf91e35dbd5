"""The bytes of the arguments in a parameter buffer (runtime specification, 10.1), packed and unpacked.

Padding carries no value: what an implementation writes there is not judged (AMB-RT-55).
"""

from __future__ import annotations

from math import inf, ldexp

import pytest

from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, signature
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.parameter_buffers import SIZES, arguments_of, by_the_rule, padding_of, without_padding
from tessera_conformance.protocol import Returned
from tessera_conformance.vectors.judging import golden, judge

pytestmark = feature("parameter-layout")

SAMPLE_VALUES = [0x1000, 0x2000, 0x3000, 0x4000, 2, 3, 4, 5, 1.0]
SAMPLE_BUFFER = (
    "0010000000000000" "0020000000000000"  # Q, K
    "0030000000000000" "0040000000000000"  # V, O
    "02000000" "03000000" "04000000" "05000000"  # B, H, L, D
    "0000803f" "00000000"  # scale 1.0f, padding
)  # fmt: skip
SAMPLE_ENDS = 0x34

WRITTEN = {
    "pointer": ("x*", 0x0123456789ABCDEF, "efcdab8967452301"),
    "highest-pointer": ("x*", (1 << 64) - 1, "ff" * 8),
    "int8": ("int8 x", -2, "fe"),
    "int16": ("int16 x", 0x1234, "3412"),
    "negative-int16": ("int16 x", -2, "feff"),
    "int32": ("int x", 0x12345678, "78563412"),
    "lowest-int32": ("int x", -(1 << 31), "00000080"),
    "int64": ("int64 x", 0x0102030405060708, "0807060504030201"),
    "negative-int64": ("int64 x", -1, "ff" * 8),
    "float": ("float x", 1.5, "0000c03f"),
    "negative-float": ("float x", -2.0, "000000c0"),
    "whole-float": ("float x", 3, "00004040"),
    "double": ("double x", 0.1, "9a9999999999b93f"),
    "fp16": ("fp16 x", 1.0, "003c"),
    "bf16": ("bf16 x", 1.0, "803f"),
    "fp8_e4m3": ("fp8_e4m3 x", 1.5, "3c"),
    "fp8_e5m2": ("fp8_e5m2 x", 1.5, "3e"),
    "true": ("bool x", True, "01"),
    "false": ("bool x", False, "00"),
}

EXACT = {
    "fp32-nan": ("float x", "0100c07f"),
    "fp32-signalling-nan": ("float x", "010080ff"),
    "fp32-negative-zero": ("float x", "00000080"),
    "fp32-subnormal": ("float x", "01000000"),
    "fp64": ("double x", "182d4454fb210940"),
    "bf16-infinity": ("bf16 x", "807f"),
    "fp8": ("fp8_e4m3 x", "7e"),
    "int32": ("int x", "78563412"),
    "pointer": ("x*", "efcdab8967452301"),
    "complex64": ("complex64 x", "0000803f000000c0"),
    "complex128": ("complex128 x", "000000000000f03f" "00000000000000c0"),
}  # fmt: skip

BEYOND = {
    "int8-above": ("int8 x", 128),
    "int16-below": ("int16 x", -(1 << 15) - 1),
    "int32-above": ("int x", 1 << 31),
    "int64-above": ("int64 x", 1 << 63),
    "pointer-below": ("x*", -1),
    "pointer-above": ("x*", 1 << 64),
    "too-few-bytes": ("int x", {"bits": "000000"}),
    "too-many-bytes": ("int8 x", {"bits": "0000"}),
}


def packed(impl, check, text, values):
    """The buffer of these values, its padding as zeros."""
    buffer = check.returns(impl.abi.pack(signature=text, values=values))["buffer"]
    expected = by_the_rule(arguments_of(text)).size
    check.equal(len(buffer) // 2, expected, "the bytes of the buffer")
    return without_padding(text, bytes.fromhex(buffer)).hex()


def unpacked(impl, check, text, buffer):
    """The bytes of each argument in a buffer."""
    return [value["bits"] for value in check.returns(impl.abi.unpack(signature=text, buffer=buffer))["values"]]


# The sample


@clause("RT-10.1-01", "RT-10.1-02", "RT-10.1-08", "RT-10.1-09", "RT-10.1-10", "RT-10.1-11")
def test_the_sample_is_packed(impl, check):
    """Pointers 0x1000 to 0x4000, 2, 3, 4, 5 and 1.0 fill the buffer of the specification."""
    check.equal(packed(impl, check, SAMPLE, SAMPLE_VALUES), SAMPLE_BUFFER, "the buffer")


@clause("RT-18-03")
def test_the_sample_structure_of_c_is_the_buffer(impl, check):
    """`struct { void *Q, *K, *V, *O; int B, H, L, D; float scale; }` of LP64 compilers, 56 bytes (AMB-RT-54).

    The bytes are those of such a structure as compilers for x86-64 and AArch64 lay it out; a C compiler confirms them
    in the suite's own tests.
    """
    check.equal(packed(impl, check, SAMPLE, SAMPLE_VALUES), SAMPLE_BUFFER, "the bytes of the structure")
    actual = unpacked(impl, check, SAMPLE, SAMPLE_BUFFER)
    expected = [f"00{i}0000000000000" for i in range(1, 5)] + [f"0{i}000000" for i in range(2, 6)] + ["0000803f"]
    check.equal(actual, expected, "the arguments in the structure")


@clause("RT-10.1-12")
@pytest.mark.parametrize("padding", ["00000000", "ffffffff", "efbeadde"])
def test_the_padding_of_the_sample_is_ignored(impl, check, padding):
    """Bytes 0x34 to 0x37 may hold anything (AMB-RT-55)."""
    buffer = SAMPLE_BUFFER[: 2 * SAMPLE_ENDS] + padding
    expected = [f"00{i}0000000000000" for i in range(1, 5)] + [f"0{i}000000" for i in range(2, 6)] + ["0000803f"]
    check.equal(unpacked(impl, check, SAMPLE, buffer), expected, "the arguments")


# One value


@clause("RT-10.1-02")
@pytest.mark.parametrize(("declaration", "value", "bits"), WRITTEN.values(), ids=WRITTEN)
def test_a_value_is_little_endian(impl, check, declaration, value, bits):
    """The least significant byte comes first."""
    text = f"k({declaration})"
    check.equal(packed(impl, check, text, [value]), bits.ljust(2 * by_the_rule(arguments_of(text)).size, "0"))
    check.equal(unpacked(impl, check, text, bits.ljust(16, "0")), [bits], "the argument")


@clause("RT-10.1-02", "RT-10.1-01")
@pytest.mark.parametrize(("declaration", "bits"), EXACT.values(), ids=EXACT)
def test_exact_bits_arrive_unchanged(impl, check, declaration, bits):
    """NaN payloads, signed zeros, subnormals and complex numbers, real part first."""
    text = f"k({declaration}, int8 last)"
    buffer = packed(impl, check, text, [{"bits": bits}, 5])
    check.equal(buffer[: len(bits)], bits, "the bytes in the buffer")
    check.equal(unpacked(impl, check, text, buffer), [bits, "05"], "the arguments")


@clause("RT-10.1-02")
@pytest.mark.parametrize("byte", ["01", "02", "80", "ff"])
def test_any_byte_but_zero_is_true(impl, check, byte):
    """A bool is stored as 0 or 1, and read as true for every other byte (AMB-RT-56)."""
    check.equal(unpacked(impl, check, "k(bool x)", byte + "00" * 7), ["01"], "the argument")
    check.equal(unpacked(impl, check, "k(bool x)", "00" * 8), ["00"], "a zero byte")


@clause("RT-10.1-02")
def test_a_number_is_rounded_once(impl, check):
    """1 + 2**-24 is halfway between two floats and goes to the even one; a little more goes up."""
    check.equal(packed(impl, check, "k(float x)", [1 + 2.0**-24]), "0000803f00000000", "halfway")
    check.equal(packed(impl, check, "k(float x)", [1 + 2.0**-24 + 2.0**-40]), "0100803f00000000", "above halfway")
    check.equal(packed(impl, check, "k(bf16 x)", [1 + 2.0**-8 + 2.0**-40]), "813f000000000000", "not through fp32")


FORMATS = {
    "fp8_e4m3": (8, 3, 7, 0x7E),
    "fp8_e5m2": (8, 2, 15, 0x7B),
    "fp16": (16, 10, 15, 0x7BFF),
    "bf16": (16, 7, 127, 0x7F7F),
    "float": (32, 23, 127, 0x7F7FFFFF),
    "double": (64, 52, 1023, 0x7FEFFFFFFFFFFFFF),
}
"""The bits of each type, those of its fraction, its bias, and the code of its largest number."""


@clause("RT-10.1-02", "RT-10.1-01")
@pytest.mark.parametrize(("dtype", "layout"), FORMATS.items(), ids=FORMATS)
def test_every_kind_of_number_has_its_bytes(impl, check, dtype, layout):
    """Zeros, subnormals, the ends of some binades and the largest number, with both signs; of fp8 every number."""
    bits, fraction, bias, largest = layout
    hidden = 1 << fraction
    ends = {0, 1, hidden // 2 + 1, hidden - 1, hidden, hidden + 1, bias * hidden, (bias + 1) * hidden - 1, largest}
    codes = sorted(range(largest + 1) if bits == 8 else ends)
    numbers = [
        ldexp(code % hidden + hidden * (code >= hidden), max(code // hidden, 1) - bias - fraction) for code in codes
    ]
    expected = b"".join(code.to_bytes(bits // 8, "little") for code in codes)
    expected += b"".join((code | 1 << bits - 1).to_bytes(bits // 8, "little") for code in codes)
    text = signature(*((f"a{place}", dtype) for place in range(2 * len(codes))))
    actual = bytes.fromhex(packed(impl, check, text, [*numbers, *(-number for number in numbers)]))
    check.equal(actual[: len(expected)].hex(), expected.hex(), "the bytes of the numbers, then of those below zero")


LARGE = {
    "above halfway, beyond 2**53": ("float x", 2**53 + 2**29 + 1, "0100005a"),
    "halfway, beyond 2**53": ("float x", 2**53 + 2**29, "0000005a"),
    "below the end of fp16": ("fp16 x", 65519.0, "ff7b"),
    "the end of fp16": ("fp16 x", -65520.0, "00fc"),
    "the end of bf16": ("bf16 x", 2**128 - 2**119, "807f"),
    "beyond fp32": ("float x", 10**39, "0000807f"),
    "above halfway, fp8_e4m3": ("fp8_e4m3 x", 433.0, "7e"),
    "the end of fp8_e4m3": ("fp8_e4m3 x", 463.0, "7e"),
    "far beyond fp8_e4m3": ("fp8_e4m3 x", -1e6, "fe"),
    "beyond fp8_e5m2": ("fp8_e5m2 x", 1e6, "7b"),
    "far beyond fp8_e5m2": ("fp8_e5m2 x", -(10**39), "fb"),
}
"""Numbers, and their bytes by hand: 448 is the largest of fp8_e4m3, 57,344 of fp8_e5m2, 65,504 of fp16."""
NOT_FINITE = {"fp8_e4m3": (464, 0x7F), "fp8_e5m2": (61440, 0x7C)}
"""Up to where numbers round to the largest, and the least byte without sign that is NaN, in fp8_e5m2 also infinity."""


@clause("RT-10.1-02")
@pytest.mark.parametrize(("declaration", "value", "bits"), LARGE.values(), ids=LARGE)
def test_a_large_number_is_rounded_once(impl, check, declaration, value, bits):
    """A whole number of any size too; what rounds past the end is infinity, in fp8 the end itself (AMB-RT-29, -102)."""
    text = f"k({declaration})"
    actual = packed(impl, check, text, [value])
    end, least = NOT_FINITE.get(declaration.split()[0], (inf, 0))
    not_finite = abs(value) > end and int(actual[:2], 16) & 0x7F >= least
    check.reading("AMB-RT-29", "overflow to NaN by default", not_finite)
    check.equal(actual, bits.ljust(2 * by_the_rule(arguments_of(text)).size, "0"))


@clause("RT-10.1-01")
@pytest.mark.parametrize(("declaration", "value"), BEYOND.values(), ids=BEYOND)
def test_a_value_that_does_not_fit_is_refused(impl, check, declaration, value):
    """A number beyond its type, or bytes that are not as many as its own, are an invalid value (AMB-RT-102)."""
    answer = impl.abi.pack(signature=f"k({declaration})", values=[value])
    check.reading("AMB-RT-102", "integers wrap", isinstance(value, int) and isinstance(answer, Returned))
    check.status(answer, "TESS_ERR_INVALID_VALUE")


# Several values


@clause("RT-10.1-01")
@pytest.mark.parametrize("values", [SAMPLE_VALUES[:-1], [*SAMPLE_VALUES, 1]], ids=["fewer", "more"])
def test_every_argument_has_one_value(impl, check, values):
    """One value too few or too many is an invalid value (AMB-RT-102)."""
    check.status(impl.abi.pack(signature=SAMPLE, values=values), "TESS_ERR_INVALID_VALUE")


@clause("RT-10.1-13")
def test_values_take_the_places_of_their_declaration(impl, check):
    """Scalars that are declared before pointers stay before them (AMB-RT-19)."""
    buffer = packed(impl, check, "k(int n, x*, int8 b, y*)", [1, 2, 3, 4])
    check.equal(buffer, "0100000000000000" "0200000000000000" "0300000000000000" "0400000000000000")  # fmt: skip


@clause("RT-10.1-03", "RT-10.1-04")
@pytest.mark.parametrize("first", SIZES)
@pytest.mark.parametrize("second", SIZES)
def test_padding_between_arguments_is_skipped(impl, check, first, second):
    """Whatever the padding holds, two arguments are found where the rule puts them."""
    arguments = [("a", first), ("b", second)]
    layout = by_the_rule(arguments)
    data = bytearray(range(1, layout.size + 1))
    for place in padding_of(layout):
        data[place] = 0xEE
    ends = [(place.offset, place.offset + place.size) for place in layout.places]
    expected = [
        "01" if type_ == "bool" else data[start:stop].hex()
        for (start, stop), (_, type_) in zip(ends, arguments, strict=True)
    ]
    check.equal(unpacked(impl, check, signature(*arguments), data.hex()), expected, "the arguments")


@clause("RT-10.1-04", "RT-10.1-11")
@pytest.mark.parametrize("missing", [8, 56])
def test_a_buffer_that_ends_too_early_is_refused(impl, check, missing):
    """One that ends before the last argument does is an invalid value (AMB-RT-16)."""
    check.status(
        impl.abi.unpack(signature=SAMPLE, buffer=SAMPLE_BUFFER[: 2 * (0x38 - missing)]), "TESS_ERR_INVALID_VALUE"
    )


# Golden vectors


@golden("abi/parameter_layouts")
def test_golden_layouts(impl, check, vector):
    """The frozen offsets and sizes of a signature."""
    judge(impl, check, vector)


@golden("abi/parameter_buffers")
def test_golden_buffers(impl, check, vector):
    """The frozen bytes of a buffer."""
    judge(impl, check, vector)
