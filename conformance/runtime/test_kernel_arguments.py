"""The passing of a kernel's arguments, as seen through launches (runtime specification, 10.1 and 10.2)."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, COUNT, opened
from tessera_conformance.chapters.runtime.kit.readings import INVALID, rejected
from tessera_conformance.marks import clause

MIXED = """module m {
  kernel mixed(a: int32, x: tensor<2xint64>, b: int64, y: tensor<2xint32>, c: int32, d: int64) {
    y[0] = a; y[1] = c; x[0] = b; x[1] = d;
  }
  kernel weighted(s: fp32, x: tensor<2xfp32>, t: fp64, y: tensor<2xfp64>) { x[0:2] = s; y[0:2] = t; }
  kernel both(x: tensor<4xint32>, y: tensor<4xint32>, z: tensor<4xint32>) { z = x * 100 + y; }
}
"""


def many(count: int) -> str:
    """A kernel with so many integers, which it puts into a tensor in order."""
    parameters = ", ".join(f"a{place}: int32" for place in range(count))
    body = " ".join(f"x[{place}] = a{place};" for place in range(count))
    return f"module m {{ kernel many({parameters}, x: tensor<{count}xint32>) {{ {body} }} }}"


@clause("RT-10.1-01", "RT-10.1-13")
@pytest.mark.parametrize("count", [1, 2, 5, 24, 50])
def test_one_buffer_carries_every_argument(impl, check, count):
    """Every argument of the kernel is at its place, the pointer behind them at the next multiple of eight."""
    session = opened(impl, check)
    values = [place * 1001 - 7 for place in range(count)]
    pointer = session.upload(bytes(4 * count))
    arguments = packed(*(("int32", value) for value in values), ("ptr", pointer))
    check.equal(len(arguments), (4 * count + 7) // 8 * 8 + 8, "the size of the buffer")
    session.launch(session.kernel("many", many(count)), arguments)
    check.equal(values_of("int32", session.download(pointer, 4 * count)), values, "what the kernel was given")


@clause("RT-10.1-01", "RT-10.1-13", "RT-04.5-17")
@pytest.mark.parametrize("last", [1, -1, (1 << 63) - 1, -(1 << 63)])
def test_arguments_lie_in_the_order_of_their_declaration(impl, check, last):
    """Pointers and scalars of both sizes mixed: nothing is sorted by kind or size (AMB-RT-19)."""
    session = opened(impl, check)
    x, y = session.upload(bytes(16)), session.upload(bytes(8))
    given = (("int32", -3), ("ptr", x), ("int64", 1 << 40), ("ptr", y), ("int32", 77), ("int64", last))
    session.launch(session.kernel("mixed", MIXED), packed(*given))
    check.equal(values_of("int64", session.download(x, 16)), [1 << 40, last], "the int64 arguments")
    check.equal(values_of("int32", session.download(y, 8)), [-3, 77], "the int32 arguments")


@clause("RT-10.1-13")
@pytest.mark.parametrize("exchanged", [False, True])
def test_pointers_are_assigned_by_position(impl, check, exchanged):
    """Two tensors of one type: the first in the buffer is the first of the declaration."""
    session = opened(impl, check)
    x, y, z = (session.upload(elements("int32", *[value] * 4)) for value in (3, 5, 0))
    first, second = (y, x) if exchanged else (x, y)
    session.launch(session.kernel("both", MIXED), packed(("ptr", first), ("ptr", second), ("ptr", z)))
    expected = 503 if exchanged else 305
    check.equal(
        values_of("int32", session.download(z, 16)), [expected] * 4, "a hundred times the first, and the second"
    )


@clause("RT-10.1-02")
@pytest.mark.parametrize("value", [0x01020304, 0x7FFFFFFF, -2, 256, 0x00FF00])
def test_integers_are_little_endian(impl, check, value):
    """The byte of least weight comes first: the bytes are written here one by one."""
    session = opened(impl, check)
    pointer = session.upload(bytes(BYTES))
    low_first = bytes(value >> shift & 0xFF for shift in (0, 8, 16, 24))
    address = bytes(pointer >> shift & 0xFF for shift in range(0, 64, 8))
    session.launch(session.kernel("fill"), low_first + bytes(4) + address)
    check.equal(session.integers(pointer), [value] * COUNT, "what the kernel was given")


@clause("RT-10.1-02")
@pytest.mark.parametrize(
    ("single", "double"),
    [(1.5, -2.25), (2.0**-126, 2.0**-1022), (-0.0, 3.0), (65504.0, 1.0 + 2.0**-52), (-(2.0**127), 1e300)],
)
def test_numbers_are_little_endian(impl, check, single, double):
    """The bits of fp32 and fp64 arguments, the byte of least weight first."""
    session = opened(impl, check)
    x, y = session.upload(bytes(8)), session.upload(bytes(16))
    bits = struct.pack(">f", single)[::-1], struct.pack(">d", double)[::-1]
    arguments = bits[0] + bytes(4) + elements("ptr", x) + bits[1] + elements("ptr", y)
    session.launch(session.kernel("weighted", MIXED), arguments)
    check.equal(session.download(x, 8).hex(), (bits[0] * 2).hex(), "the bits of the fp32 argument")
    check.equal(session.download(y, 16).hex(), (bits[1] * 2).hex(), "the bits of the fp64 argument")


@clause("RT-10.2-02")
def test_results_arrive_behind_pointers_and_nowhere_else(impl, check):
    """Tensors that are only read, the argument buffer and the memory around stay as they are."""
    session = opened(impl, check)
    memory = session.upload(elements("int32", *range(100, 120)))
    x, y, z = (memory + 16 * place for place in (0, 2, 3))
    arguments = packed(("ptr", x), ("ptr", y), ("ptr", z))
    buffer = session.host(arguments)
    session.launch(session.kernel("both", MIXED), argBuffer=buffer, argSize=len(arguments))
    actual = values_of("int32", session.download(memory, 80))
    results = [100 * (100 + place) + 108 + place for place in range(4)]
    check.equal(actual, [*range(100, 112), *results, *range(116, 120)], "the memory")
    check.equal(session.host_bytes(buffer, len(arguments)).hex(), arguments.hex(), "the argument buffer")


@clause("RT-10.2-02")
def test_a_kernel_may_write_behind_every_pointer(impl, check):
    """Two results of one launch, each behind its own pointer."""
    session = opened(impl, check)
    x, y = session.upload(bytes(8)), session.upload(bytes(16))
    arguments = packed(("fp32", 0.5), ("ptr", x), ("fp64", -8.0), ("ptr", y))
    session.launch(session.kernel("weighted", MIXED), arguments)
    check.equal(values_of("fp32", session.download(x, 8)), [0.5] * 2, "behind the first pointer")
    check.equal(values_of("fp64", session.download(y, 16)), [-8.0] * 2, "behind the second pointer")


@clause("RT-10.2-02")
def test_one_tensor_may_be_read_and_written(impl, check):
    """The same pointer given twice: an operand and the result (AMB-RT-95)."""
    session = opened(impl, check)
    x, y = session.upload(elements("int32", 1, 2, 3, 4)), session.upload(elements("int32", 5, 6, 7, 8))
    answer = session.launching(session.kernel("both", MIXED), packed(("ptr", x), ("ptr", y), ("ptr", y)))
    check.reading("AMB-RT-95", "INVALID_VALUE", rejected(answer, INVALID))
    check.returns(answer, "tessLaunch succeeds")
    check.equal(values_of("int32", session.download(y, 16)), [105, 206, 307, 408], "the result")
    check.equal(values_of("int32", session.download(x, 16)), [1, 2, 3, 4], "the operand")
