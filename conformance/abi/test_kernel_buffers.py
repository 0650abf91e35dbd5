"""Parameter buffers as kernels read them: order, offsets, widths, byte order and size (runtime spec, 9 and 10.1).

A case writes a buffer byte by byte and launches a kernel that stores each scalar where it can be read. It needs no
method beyond the functions of the specification: a wrong offset shows in what the kernel stored.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import MeshSession, opened
from tessera_conformance.marks import clause

SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "fp32": 4, "fp64": 8}
PATTERNS = {"fp32": ("f", 1.1), "fp64": ("d", -1.1)}
"""Numbers whose bytes all differ: multiples of these."""
FILLS = {"zeros": 0x00, "ones": 0xFF}
ORDERS = {
    "pointers first": "* * * * * * fp64 int8 int32 int16 int64 fp32",
    "words alone": "* * * * int32 int64 fp32 int32 fp64 int32",
    "rising": "int8 int16 int32 int64 fp32 fp64 *",
    "falling": "* fp64 int64 fp32 int32 int16 int8",
    "bytes between": "int8 int64 int8 fp64 int8 fp32 int8 int32 int8 int16 * int8",
    "pointers between": "int32 * int8 * int16 * fp32 * int64 * fp64",
    "halves between": "int16 fp32 int16 int64 int16 int8 int16 fp64 * int16 int32",
    "pairs": "int8 int8 int16 int16 int32 int32 fp32 fp32 int64 int64 fp64 fp64 *",
    "bytes in front": "int8 int8 int8 int16 int8 int8 int8 int8 int32 * int8",
    "fractions": "fp32 fp64 fp32 * fp32 fp64 fp64 fp32 int8",
}
"""The parameters of a kernel in order, `*` for a pointer; a pointer of each type follows where one is missing."""


SAMPLE = """module m {
  kernel flash(Q: tensor<4xint32>, K: tensor<4xint32>, V: tensor<4xint32>, O: tensor<4xfp32>,
               B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    Q[0:4] = B; K[0:4] = H; V[0:2] = L; V[2:4] = D; O[0:4] = scale;
  }
}
"""


class Argument(NamedTuple):
    """A scalar with its bytes, or a pointer to where the kernel stores the scalars of a type."""

    name: str
    type: str
    data: bytes = b""


def arguments_of(order: str) -> list[Argument]:
    """The arguments of an order, and behind them the pointers that it lacks."""
    words = order.split()
    stored = list(dict.fromkeys(word for word in words if word != "*"))
    missing = iter(stored)
    arguments = [
        Argument(f"p{place}", f"*{next(missing)}") if word == "*" else scalar(word, place)
        for place, word in enumerate(words)
    ]
    return arguments + [Argument(f"p{len(words) + place}", f"*{type_}") for place, type_ in enumerate(missing)]


def scalar(type_: str, place: int) -> Argument:
    """A scalar none of whose bytes is another's neighbour by chance."""
    if type_ in PATTERNS:
        letter, number = PATTERNS[type_]
        return Argument(f"a{place}", type_, struct.pack(f"<{letter}", number * (place + 1)))
    return Argument(f"a{place}", type_, bytes((23 * place + 41 * byte + 7) % 255 + 1 for byte in range(SIZES[type_])))


def source_of(arguments: Sequence[Argument]) -> str:
    """A kernel that stores its scalars, those of a type side by side."""
    counts = {type_: sum(argument.type == type_ for argument in arguments) for type_ in SIZES}
    targets = {argument.type[1:]: argument.name for argument in arguments if argument.type.startswith("*")}
    parameters, statements, places = [], [], dict.fromkeys(SIZES, 0)
    for argument in arguments:
        if argument.type.startswith("*"):
            parameters.append(f"{argument.name}: tensor<{counts[argument.type[1:]]}x{argument.type[1:]}>")
        else:
            parameters.append(f"{argument.name}: {argument.type}")
            statements.append(f"{targets[argument.type]}[{places[argument.type]}] = {argument.name};")
            places[argument.type] += 1
    return f"module m {{ kernel k({', '.join(parameters)}) {{ {' '.join(statements)} }} }}"


def buffer_of(arguments: Sequence[Argument], pointers: dict[str, int], fill: int = 0) -> bytes:
    """The buffer by the rule: each argument at a multiple of the smaller of its size and 8, the whole one of 8."""
    buffer = b""
    for argument in arguments:
        data = struct.pack("<Q", pointers[argument.name]) if argument.type.startswith("*") else argument.data
        buffer += bytes([fill]) * (-len(buffer) % min(len(data), 8)) + data
    return buffer + bytes([fill]) * (-len(buffer) % 8)


def judge_read(session: MeshSession, arguments: Sequence[Argument], fill: int = 0) -> None:
    """Launch a kernel with these arguments: it stores the bytes of each scalar."""
    kernel = session.kernel("k", source_of(arguments))
    held = {
        argument.name: b"".join(scalar.data for scalar in arguments if scalar.type == argument.type[1:])
        for argument in arguments
        if argument.type.startswith("*")
    }
    pointers = {name: session.upload(bytes(len(data))) for name, data in held.items()}
    session.launch(kernel, buffer_of(arguments, pointers, fill))
    for argument in arguments:
        if argument.type.startswith("*"):
            actual = session.download(pointers[argument.name], len(held[argument.name]))
            what = f"the {argument.type[1:]} arguments as the kernel reads them"
            session.check.equal(actual.hex(), held[argument.name].hex(), what)


@clause("RT-10.1-01", "RT-10.1-02", "RT-10.1-03", "RT-10.1-13", "RT-09-06")
@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_kernel_reads_every_argument_at_its_place(impl, check, order, fill):
    """Scalars of one to eight bytes and pointers in any order: every byte arrives, whatever the padding holds."""
    judge_read(opened(impl, check), arguments_of(order), fill)


@clause("RT-10.1-03", "RT-09-06")
@pytest.mark.parametrize("type_", SIZES)
@pytest.mark.parametrize("first", ["int8", "int16", "int32"])
def test_a_kernel_reads_a_scalar_at_a_multiple_of_its_size(impl, check, first, type_):
    """Behind a narrower argument a scalar is at the next multiple of its own size, and no further."""
    judge_read(opened(impl, check), arguments_of(f"{first} {type_} {first} {type_} *"))


WIDTHS = {
    "pointers": ("RT-10.1-05", "* int8 * int8 * int16", "int8 int16 fp32"),
    "ints": ("RT-10.1-06", "int32 int32 int8 int32 *", ""),
    "floats": ("RT-10.1-07", "fp32 fp32 int8 fp32 *", ""),
}


@pytest.mark.parametrize(
    "order",
    [pytest.param(f"{order} {more}", marks=clause(name), id=key) for key, (name, order, more) in WIDTHS.items()],
)
def test_an_argument_has_the_width_of_its_type(impl, check, order):
    """An argument after a pointer is eight bytes behind it; one after an int or a float is four bytes behind."""
    judge_read(opened(impl, check), arguments_of(order))


@clause("RT-10.1-04", "RT-10.1-01")
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 15, 16, 17])
def test_a_buffer_of_the_rounded_size_is_launched(impl, check, count):
    """A pointer and some bytes: 16, 24 or 32 in all; a buffer that ends before the last byte is refused (AMB-RT-16)."""
    session = opened(impl, check)
    parameters = ", ".join(f"a{place}: int8" for place in range(count))
    stores = " ".join(f"x[{place}] = a{place};" for place in range(count))
    kernel = session.kernel("k", f"module m {{ kernel k(x: tensor<{count}xint8>, {parameters}) {{ {stores} }} }}")
    x = session.upload(bytes(count))
    data = bytes(100 - place for place in range(count))
    buffer = struct.pack("<Q", x) + data
    buffer += bytes(-len(buffer) % 8)
    check.status(session.launching(kernel, buffer[: 8 + count - 1]), "TESS_ERR_INVALID_VALUE")
    session.launch(kernel, buffer)
    check.equal(session.download(x, count).hex(), data.hex(), "what the kernel reads of a buffer of the rounded size")


@clause("RT-10.1-11", "RT-10.1-04")
def test_the_sample_is_launched_with_0x38_bytes(impl, check):
    """Four pointers, four ints and a float; one that ends at 0x30, before the float, is refused (AMB-RT-16)."""
    session = opened(impl, check)
    kernel = session.kernel("flash", SAMPLE)
    pointers = [session.upload(bytes(16)) for _ in "QKVO"]
    buffer = struct.pack("<QQQQiiiifI", *pointers, 2, 3, 4, 5, 0.5, 0)
    check.status(session.launching(kernel, buffer[:0x30]), "TESS_ERR_INVALID_VALUE")
    session.launch(kernel, buffer, argSize=0x38)
    actual = [session.download(pointer, 16).hex() for pointer in pointers]
    expected = [struct.pack("<4i", *row).hex() for row in ([2] * 4, [3] * 4, [4, 4, 5, 5])]
    check.equal(actual, [*expected, struct.pack("<4f", *[0.5] * 4).hex()], "Q, K, V and O")


class Arguments(ctypes.Structure):
    """The structure of the specification's example, as the C compilers of this machine lay it out."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in "QKVO"),
        *((name, ctypes.c_int) for name in "BHLD"),
        ("scale", ctypes.c_float),
    )


@clause("RT-18-03")
def test_the_sample_structure_of_c_is_a_buffer(impl, check):
    """`struct { void *Q, *K, *V, *O; int B, H, L, D; float scale; }` is launched as it is in memory (AMB-RT-54)."""
    session = opened(impl, check)
    kernel = session.kernel("flash", SAMPLE)
    pointers = [session.upload(bytes(16)) for _ in "QKVO"]
    session.launch(kernel, bytes(Arguments(*pointers, -6, 7, -8, 9, 0.25)), argSize=ctypes.sizeof(Arguments))
    actual = [session.download(pointer, 16).hex() for pointer in pointers]
    expected = [struct.pack("<4i", *row).hex() for row in ([-6] * 4, [7] * 4, [-8, -8, 9, 9])]
    check.equal(actual, [*expected, struct.pack("<4f", *[0.25] * 4).hex()], "Q, K, V and O")
