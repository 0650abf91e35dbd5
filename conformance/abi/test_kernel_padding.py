"""A kernel's view of padding, and of bytes that are neither false nor true (runtime spec, 10.1; AMB-RT-55, -56).

Padding carries no value, whatever it holds: between arguments, behind a narrow one and behind the last. A bool is one
byte, any but zero reads as true, and what a kernel makes of it is what it makes of 1.
"""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, opened
from tessera_conformance.marks import clause, feature

PADDING = {"zeros": 0x00, "ones": 0xFF, "low bits": 0x01, "high bits": 0x80}
IN_PADDING = pytest.mark.parametrize("byte", PADDING.values(), ids=PADDING)

# Padding

WIDE = """module m {
  kernel wide(a: int32, x: tensor<2xint64>, b: int32, c: int64, d: int32, y: tensor<3xint32>, e: int32) {
    x[0] = c; y[0] = a; y[1] = b; y[2] = d + e;
  }
  kernel fractions(s: fp32, t: fp64, u: fp32, x: tensor<2xfp32>, y: tensor<2xfp64>) {
    x[0] = s; x[1] = u; y[0:2] = t;
  }
}
"""


@clause("RT-10.1-12", "RT-10.1-03")
@IN_PADDING
def test_a_kernel_ignores_the_padding_between_whole_numbers(impl, check, byte):
    """Four bytes before each argument of eight, and four behind the last one."""
    session = opened(impl, check)
    x, y = session.upload(bytes(16)), session.upload(bytes(12))
    pad = bytes([byte]) * 4
    parts = [elements("int32", -5), pad, struct.pack("<Q", x), elements("int32", 6), pad, elements("int64", -(1 << 40))]
    parts += [elements("int32", 7), pad, struct.pack("<Q", y), elements("int32", 8), pad]
    session.launch(session.kernel("wide", WIDE), b"".join(parts))
    check.equal(values_of("int64", session.download(x, 16)), [-(1 << 40), 0], "x")
    check.equal(values_of("int32", session.download(y, 12)), [-5, 6, 15], "y")


@clause("RT-10.1-12", "RT-10.1-03")
@IN_PADDING
def test_a_kernel_ignores_the_padding_between_fractions(impl, check, byte):
    """The four bytes behind each number of four bytes are ignored."""
    session = opened(impl, check)
    x, y = session.upload(bytes(8)), session.upload(bytes(16))
    pad = bytes([byte]) * 4
    parts = [elements("fp32", 0.75), pad, elements("fp64", -0.1), elements("fp32", 2.5), pad, struct.pack("<QQ", x, y)]
    session.launch(session.kernel("fractions", WIDE), b"".join(parts))
    check.equal(values_of("fp32", session.download(x, 8)), [0.75, 2.5], "x")
    check.equal(values_of("fp64", session.download(y, 16)), [-0.1, -0.1], "y")


NARROW = """module m {
  kernel narrow(a: int8, n: int32, c: int16, t: int64, b: int8,
                w: tensor<2xint8>, x: tensor<1xint32>, y: tensor<1xint16>, z: tensor<1xint64>) {
    w[0] = a; w[1] = b; x[0] = n; y[0] = c; z[0] = t;
  }
}
"""


@clause("RT-10.1-12", "RT-10.1-03")
@IN_PADDING
def test_a_kernel_ignores_the_padding_behind_narrow_numbers(impl, check, byte):
    """Three bytes behind one, six behind two, seven behind one."""
    session = opened(impl, check)
    pointers = [session.upload(bytes(8)) for _ in "wxyz"]
    pad = bytes([byte])
    parts = [elements("int8", -3), pad * 3, elements("int32", 70000), elements("int16", -300), pad * 6]
    parts += [elements("int64", 1 << 50), elements("int8", 4), pad * 7, struct.pack("<QQQQ", *pointers)]
    session.launch(session.kernel("narrow", NARROW), b"".join(parts))
    expected = [elements("int8", -3, 4), elements("int32", 70000), elements("int16", -300), elements("int64", 1 << 50)]
    for name, pointer, data in zip("wxyz", pointers, expected, strict=True):
        check.equal(session.download(pointer, len(data)).hex(), data.hex(), name)


# Truth values

TRUTH = """module m {
  kernel store(b: bool, x: tensor<4xbool>) { x[0:4] = b; }
  kernel branch(b: bool, x: tensor<4xint32>) { if (b) { x[0:4] = 7; } else { x[0:4] = 9; } }
  kernel choice(b: bool, x: tensor<4xint32>) { x[0:4] = op.select(b, 7, 9); }
  kernel same(b: bool, c: bool, x: tensor<4xint32>) { if (b == c) { x[0:4] = 7; } else { x[0:4] = 9; } }
  kernel number(b: bool, x: tensor<4xint32>) { x[0:4] = op.cast(b) @{dtype="int32"}; }
  kernel numbers(b: tensor<4xbool>, x: tensor<4xint32>) { x = op.cast(b) @{dtype="int32"}; }
  kernel choices(b: tensor<4xbool>, x: tensor<4xint32>) { x = op.select(b, x, -x); }
  kernel agree(b: tensor<4xbool>, c: tensor<4xbool>, x: tensor<4xint32>) { x = op.select(b == c, x, -x); }
}
"""
BYTES_OF_TRUTH = (0, 1, 2, 0x80, 0xFE, 0xFF)
ODD, LEGAL = bytes([2, 0, 0x80, 0xFF]), bytes([1, 1, 1, 0])

SCALARS = [
    pytest.param("branch", 9, 7, marks=feature("tensor-ops"), id="condition"),
    pytest.param("choice", 9, 7, marks=feature("tensor-ops"), id="choice"),
    pytest.param("number", 0, 1, marks=feature("casts"), id="number"),
]
"""A kernel, and what it leaves for false and for true."""


def left(session: MeshSession, kernel: int, buffer: bytes) -> list[float]:
    """The four numbers that a kernel leaves, which is launched with this buffer and a pointer behind it."""
    x = session.upload(elements("int32", 1, 2, 3, 4))
    session.launch(kernel, buffer + struct.pack("<Q", x))
    return session.integers(x, 4)


@clause("RT-10.1-12", "RT-19.B-11")
@IN_PADDING
def test_a_kernel_stores_any_byte_but_zero_as_true(impl, check, byte):
    """A bool in memory is 0 or 1 for any byte as the argument and any bytes in the seven behind it.

    As AMB-RT-56 has it.
    """
    session = opened(impl, check)
    kernel = session.kernel("store", TRUTH)
    for value in BYTES_OF_TRUTH:
        x = session.upload(bytes([value == 0]) * 4)
        session.launch(kernel, bytes([value]) + bytes([byte]) * 7 + struct.pack("<Q", x))
        check.equal(session.download(x, 4).hex(), f"{value != 0:02x}" * 4, f"what is stored of {value}")


@clause("RT-10.1-12", "RT-19.B-11")
@pytest.mark.parametrize(("kernel", "false", "true"), SCALARS)
def test_a_kernel_reads_any_byte_but_zero_as_true(impl, check, kernel, false, true):
    """The byte counts as true in a condition, a choice and a number; the seven bytes behind it do not count."""
    session = opened(impl, check)
    handle = session.kernel(kernel, TRUTH)
    for value in BYTES_OF_TRUTH:
        for byte in PADDING.values():
            actual = left(session, handle, bytes([value]) + bytes([byte]) * 7)
            check.equal(actual, [true if value else false] * 4, f"what {kernel} makes of {value} before {byte:#x}")


@feature("tensor-ops")
@clause("RT-10.1-12", "RT-19.B-11")
def test_true_is_equal_to_true(impl, check):
    """Any nonzero bytes are equal as truth values; two arguments of one byte are adjacent."""
    session = opened(impl, check)
    kernel = session.kernel("same", TRUTH)
    for values in ((1, 2), (0x80, 1), (0, 0xFF), (0, 0), (4, 0)):
        same = (values[0] != 0) == (values[1] != 0)
        actual = left(session, kernel, bytes(values) + b"\xff" * 6)
        check.equal(actual, [7 if same else 9] * 4, f"{values}, compared")


@clause("RT-19.B-11", "RT-10.1-12")
@pytest.mark.parametrize(
    ("kernel", "tensors", "wanted"),
    [
        pytest.param("choices", [ODD], [1, -2, 3, 4], marks=feature("tensor-ops"), id="choices"),
        pytest.param("agree", [ODD, LEGAL], [1, -2, 3, -4], marks=feature("tensor-ops"), id="compared"),
        pytest.param("numbers", [ODD], [1, 0, 1, 1], marks=feature("casts"), id="numbers"),
    ],
)
def test_a_kernel_reads_truth_values_in_memory(impl, check, kernel, tensors, wanted):
    """A tensor of bytes of which none is 1: as choices, compared with such that are 0 and 1, and as numbers.

    As AMB-RT-56 has it.
    """
    session = opened(impl, check)
    pointers = [session.upload(tensor) for tensor in tensors]
    actual = left(session, session.kernel(kernel, TRUTH), struct.pack(f"<{len(pointers)}Q", *pointers))
    check.equal(actual, wanted, f"what {kernel} leaves")
