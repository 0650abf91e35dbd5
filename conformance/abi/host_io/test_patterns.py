"""The memory after a MemoryWrite of a pattern: elements, byte order, rounding (D5; AMB-HIO-06, -35, -36)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import EXACT, binary, element, filled
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, host_of
from tessera_conformance.marks import clause, feature


def beside(value, digits=60):
    """A number just above and one just below in magnitude: fp64 tells those of 12 digits apart, and not those of 60."""
    little = EXACT.multiply(value, EXACT.power(Decimal(10), -digits))
    return [EXACT.add(value, little), EXACT.subtract(value, little)]


def near_ties(fraction, least):
    """Numbers halfway between two elements, and beside them: normal, subnormal, at the border of both, and at zero."""
    ties = [
        binary(2 ** (fraction + 1) + 1, -fraction - 1),  # to the even one below
        binary(2 ** (fraction + 1) + 3, -fraction - 1),  # to the even one above
        binary(2 ** (fraction + 2) - 1, -fraction - 1),  # carries into the next exponent
        binary(1, least - fraction - 1),  # half of the least subnormal
        binary(3, least - fraction - 1),
        binary(2 ** (fraction + 1) - 1, least - fraction - 1),  # between the subnormals and the normals
    ]
    return [number for tie in ties for number in (tie, *beside(tie), *beside(tie, 12))]


def largest(fraction, most):
    """The largest element, and what is nearest to it just before infinity."""
    border = binary(2 ** (fraction + 2) - 1, most - fraction - 1)
    return [binary(2 ** (fraction + 1) - 1, most - fraction), beside(border)[1]]


FEW = [Decimal(name) for name in ("0", "1", "0.1", "0.33333333333333333333333", "65504", "2.5e-5", "1e-60")]
VALUES = {
    "fill_u8": [0, 1, 127, 128, 165, 255],
    "fill_u16": [0, 1, 255, 256, 258, 0x7FFF, 0x8000, 0xFF00, 0xFFFF],
    "fill_u32": [0, 1, 0xFF, 0x100, 0x01020304, 0x7FFFFFFF, 0x80000000, 0xDEADBEEF, 0xFFFFFFFF],
    "fill_fp16": [*FEW, 2049, 2051, 65504, *near_ties(10, -14), *largest(10, 15)],
    "fill_fp32": [*FEW, 16777217, 16777219, 2**31 - 1, *near_ties(23, -126), *largest(23, 127)],
}


def through_fp64(value):
    """The number that fp64 makes of one: a reader of JSON may bring every number to it."""
    return Decimal(float(value))


FINE = {
    kind: [value for value in map(Decimal, VALUES[kind]) if element(kind, value) != element(kind, through_fp64(value))]
    for kind in ("fill_fp16", "fill_fp32")
}
"""Numbers that round otherwise by way of fp64; the other cases leave them out."""
PLAIN = {kind: [value for value in values if value not in FINE.get(kind, ())] for kind, values in VALUES.items()}
LARGEST = {"fill_fp16": largest(10, 15)[0], "fill_fp32": largest(23, 127)[0]}
SIZES = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4, "fill_fp16": 2, "fill_fp32": 4}
KINDS = [
    pytest.param("fill_u8", marks=clause("HIO-D5-14")),
    pytest.param("fill_u16", marks=clause("HIO-D5-15")),
    pytest.param("fill_u32", marks=clause("HIO-D5-16")),
    pytest.param("fill_fp16", marks=clause("HIO-D5-17")),
    pytest.param("fill_fp32", marks=clause("HIO-D5-18")),
]
FLOATS = [kind for kind in KINDS if kind.values[0].startswith("fill_fp")]


def judge_values(host, kind, values):
    """Write each value thrice, one after the other with a gap, and compare the whole stretch of memory."""
    place, base = host.spread(1)[0], host.base
    step = 4 * SIZES[kind]
    expected = host.painted(place, base, step * len(values) + step)
    writes, size = [], 3 * SIZES[kind]
    for number, value in enumerate(values):
        at = number * step + 1
        writes.append(host.fill(place, base + at, size, kind, value))
        expected[at : at + size] = filled(kind, value, size)
    host.done(*writes)
    for number, value in enumerate(values):
        what = f"{kind} of {str(value)[:60]}"
        host.holds(place, base + number * step, bytes(expected[number * step : (number + 1) * step]), what)


@clause("HIO-D5-01", "HIO-D5-07", "HIO-D5-19")
@feature("device-memory-probe")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fill_repeats_its_value_with_the_lowest_byte_first(impl, check, kind):
    """Each value three times, at odd addresses; integers to the ends of their range; the bytes between stay."""
    judge_values(host_of(impl, check), kind, PLAIN[kind])


@clause("HIO-D5-01", "HIO-D5-19")
@feature("device-memory-probe")
@pytest.mark.parametrize("kind", FLOATS)
def test_a_fill_of_a_negative_number_has_its_sign(impl, check, kind):
    """The same numbers negative; -0.0 and what rounds to zero from below are zeros with a sign (AMB-HIO-36)."""
    negative = [Decimal(value).copy_negate() for value in PLAIN[kind] if value != 0]
    judge_values(host_of(impl, check), kind, [Decimal("-0.0"), *negative])


@clause("HIO-D5-19")
@feature("device-memory-probe")
@pytest.mark.parametrize("kind", FLOATS)
def test_a_fill_is_rounded_once(impl, check, kind):
    """Numbers that lie beside a tie by less than fp64 can tell, of both signs (AMB-HIO-36)."""
    host = host_of(impl, check)
    place, size = host.spread(1)[0], SIZES[kind]
    values = [signed for value in FINE[kind] for signed in (value, value.copy_negate())]
    completions = host.send(
        *(host.fill(place, host.base + size * at, size, kind, value) for at, value in enumerate(values))
    ).completions
    actual = [host.bytes_of(place, host.base + size * at, size) for at in range(len(values))]
    twice = [
        data == element(kind, through_fp64(value)) if done["ok"] else abs(through_fp64(value)) > LARGEST[kind]
        for value, done, data in zip(values, completions, actual, strict=True)
    ]
    check.reading("AMB-HIO-36", "rounded by way of fp64", all(twice))
    for value, done, data in zip(values, completions, actual, strict=True):
        check.equal(done["ok"], True, f"success of {kind} of {str(value)[:60]}")
        check.equal(data.hex(" "), element(kind, value).hex(" "), f"{kind} of {str(value)[:60]}")


@clause("HIO-D5-01", "HIO-D5-13", "HIO-D5-21")
@feature("device-memory-probe")
@pytest.mark.parametrize("value", [None, 0, 1, 255, -1, 65537, Decimal("0.5"), Decimal("1e30")], ids=str)
def test_zero_writes_zeros_whatever_its_value(impl, check, value):
    """The value of a fill with zero is absent, or any number; bytes before and behind stay."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    expected = host.painted(place, base, 64)
    host.done(host.fill(place, base + 5, 37, "zero", value))
    expected[5:42] = bytes(37)
    host.holds(place, base, bytes(expected), f"zero with the value {value}")


@clause("HIO-D5-01", "HIO-D5-07")
@feature("device-memory-probe")
@pytest.mark.parametrize("nbytes", [1, 2, 7, 4093, 4096, 65521, 65536, 131101])
@pytest.mark.parametrize("offset", [0, 3, 4093])
def test_a_write_fills_as_many_bytes_as_it_says(impl, check, nbytes, offset):
    """Primes and whole pages, across pages, from aligned addresses and others (AMB-HIO-38); neighbours stay."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    size = offset + nbytes + 7
    expected = host.painted(place, base, size)
    host.done(host.fill(place, base + offset, nbytes, "fill_u8", 0x3C))
    expected[offset : offset + nbytes] = filled("fill_u8", 0x3C, nbytes)
    host.holds(place, base, bytes(expected), f"{nbytes} bytes from offset {offset}")


VALUES = {
    "fill_u8": 0x3C,
    "fill_u16": 0x1234,
    "fill_u32": 0x12345678,
    "fill_fp16": Decimal("1.1"),
    "fill_fp32": Decimal("1.1"),
}
"""For each kind a value of which no two bytes are the same."""


@clause("HIO-D5-01", "HIO-D5-07")
@feature("device-memory-probe")
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_fill_repeats_its_value_from_the_first_byte_on(impl, check, kind):
    """From an odd address across three pages of 4 KiB, and a part of one before and behind (AMB-HIO-35)."""
    host = host_of(impl, check)
    place, base, offset, nbytes = host.spread(1)[0], host.base, 4093, 3 * 4096 + 28
    expected = host.painted(place, base, offset + nbytes + 7)
    host.done(host.fill(place, base + offset, nbytes, kind, VALUES[kind]))
    expected[offset : offset + nbytes] = filled(kind, VALUES[kind], nbytes)
    host.holds(place, base, bytes(expected), f"{nbytes} bytes of {kind} from offset {offset}")


@clause("HIO-D5-01", "HIO-D5-07")
@feature("device-memory-probe")
def test_a_write_of_more_than_a_mebibyte_reaches_its_last_byte(impl, check):
    """Three mebibytes and five bytes; those before the first, around each mebibyte and behind the last are looked at.

    Presumes that a memory has as many.
    """
    host = host_of(impl, check)
    place, base, nbytes = host.spread(1)[0], host.base + 9, 3 * (1 << 20) + 5
    check.given(host.machine.memories[0].bytes > nbytes + 32, "there is memory of 3 MiB", host.machine.memories[0])
    edges = {9 + (mebibytes << 20): bytes([0x3C] * 16) for mebibytes in (1, 2)}
    edges |= {0: bytes([BACKGROUND] * 9 + [0x3C] * 7), 5 + nbytes: bytes([0x3C] * 4 + [BACKGROUND] * 12)}
    for offset in edges:
        host.painted(place, host.base + offset, 16)
    host.done(host.fill(place, base, nbytes, "fill_u8", 0x3C))
    for offset, expected in edges.items():
        host.holds(place, host.base + offset, expected, f"the bytes from offset {offset}")


@clause("HIO-D5-01", "HIO-D5-06")
@feature("device-memory-probe")
@pytest.mark.parametrize("kind", KINDS)
def test_elements_begin_at_the_first_byte_wherever_it_lies(impl, check, kind):
    """An element is not turned to fit an aligned address: many elements from offsets 1, 2 and 3, across 64 KiB."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    value = {"fill_u8": 0x12, "fill_u16": 0x1234, "fill_u32": 0x12345678}.get(kind, Decimal("-1.2345"))
    span = 65536 + 4096
    expected = host.painted(place, base, 3 * span)
    writes = []
    for turn in (1, 2, 3):
        at, size = (turn - 1) * span + turn, SIZES[kind] * (65537 // SIZES[kind] + 1)
        writes.append(host.fill(place, base + at, size, kind, value))
        expected[at : at + size] = filled(kind, value, size)
    host.done(*writes)
    host.holds(place, base, bytes(expected), f"{kind} from odd addresses")


@clause("HIO-D5-01", "HIO-D5-09")
@feature("device-memory-probe")
def test_later_writes_lie_over_earlier_ones(impl, check):
    """Overlapping writes of every kind: each byte is that of the last write that covers it."""
    host = host_of(impl, check)
    place, base = host.spread(1)[0], host.base
    expected = host.painted(place, base, 256)
    writes = []
    steps = [
        ("fill_u32", 0x0A0B0C0D, 0, 240),
        ("fill_u16", 0x1122, 33, 100),
        ("fill_fp32", Decimal("0.1"), 70, 24),
        ("zero", None, 77, 5),
        ("fill_fp16", Decimal("-3.25"), 90, 30),
        ("fill_u8", 0x7E, 119, 3),
    ]
    for kind, value, at, size in steps:
        writes.append(host.fill(place, base + at, size, kind, value))
        expected[at : at + size] = filled(kind, value, size)
    host.done(*writes)
    host.holds(place, base, bytes(expected), "what six writes left")
