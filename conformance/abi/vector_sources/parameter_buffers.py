"""Parameter buffers: the bytes of arguments, little-endian, each rounded once to its type."""

from __future__ import annotations

from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, buffer
from tessera_conformance.vectors.building import Question, Topic

topic = Topic(__doc__)

MIXED = {
    "ascending": ("int8 a, int16 b, int c, int64 d", [1, 0x0203, 0x04050607, 0x08090A0B0C0D0E0F]),
    "descending": ("int64 a, int b, int16 c, int8 d", [0x0102030405060708, 0x090A0B0C, 0x0D0E, 0x0F]),
    "lowest": ("int8 a, int16 b, int c, int64 d", [-(1 << 7), -(1 << 15), -(1 << 31), -(1 << 63)]),
    "highest": ("int8 a, int16 b, int c, int64 d", [(1 << 7) - 1, (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1]),
    "pointers": ("x*, y*, z*", [0, (1 << 64) - 1, 0x00007FFF12345678]),
    "booleans": ("bool a, x*, bool b, bool c", [True, 0x1000, False, True]),
    "floats": ("fp8_e4m3 a, fp8_e5m2 b, fp16 c, bf16 d, float e, double f", [1.5, -2.0, 0.25, -3.0, 0.5, 1e300]),
    "negative-zeros": ("fp16 a, bf16 b, float c, double d", [-0.0, -0.0, -0.0, -0.0]),
    "complex": (
        "int8 a, complex64 b, int8 c, complex128 d",
        [7, {"bits": "0000803f000000c0"}, 9, {"bits": "000000000000f03f00000000000000c0"}],
    ),
    "patterns": (
        "float a, double b, bf16 c, fp16 d",
        [{"bits": "0100c07f"}, {"bits": "010000000000f87f"}, {"bits": "80ff"}, {"bits": "0100"}],
    ),
}

TIES = {
    "fp32": ("float", 1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-24 + 2.0**-50),
    "fp16": ("fp16", 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-40),
    "bf16": ("bf16", 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-40),
    "fp8_e4m3": ("fp8_e4m3", 1 + 2.0**-4, 1 + 3 * 2.0**-4, 1 + 2.0**-4 + 2.0**-40),
    "fp8_e5m2": ("fp8_e5m2", 1 + 2.0**-3, 1 + 3 * 2.0**-3, 1 + 2.0**-3 + 2.0**-40),
}


@topic.vector("sample/small", "RT-10.1-08", "RT-10.1-09", "RT-10.1-10", "RT-10.1-11")
def small() -> Question:
    """The kernel of the specification with small numbers."""
    return buffer(SAMPLE, [0x1000, 0x2000, 0x3000, 0x4000, 2, 3, 4, 5, 1.0])


@topic.vector("sample/large", "RT-10.1-08", "RT-10.1-09", "RT-10.1-10", "RT-10.1-11")
def large() -> Question:
    """The kernel of the specification with numbers whose bytes all differ."""
    pointers = [0x0807060504030201, 0x100F0E0D0C0B0A09, 0x1817161514131211, 0x201F1E1D1C1B1A19]
    return buffer(SAMPLE, [*pointers, 0x24232221, 0x28272625, 0x2C2B2A29, 0x302F2E2D, {"bits": "31323334"}])


@topic.vector("mixed/{case}", case=list(MIXED))
def mixed(case: str) -> Question:
    """Integers, pointers, booleans, numbers and exact bits of every width."""
    declarations, values = MIXED[case]
    return buffer(f"k({declarations})", values)


@topic.vector("rounded/{dtype}", dtype=list(TIES))
def rounded(dtype: str) -> Question:
    """Halfway down to the even number, halfway up to it, and a little above halfway, which goes up."""
    type_, *values = TIES[dtype]
    return buffer(f"k({type_} a, {type_} b, {type_} c)", values)
